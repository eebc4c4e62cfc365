package stdio

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// blocking returns a pipe whose ends are made non-blocking after the files are.
func blocking(t *testing.T) (r, w File) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, w = File{os.NewFile(uintptr(fds[0]), "r")}, File{os.NewFile(uintptr(fds[1]), "w")}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestFilesThatBecomeNonBlockingAreReadAndWrittenWhole(t *testing.T) {
	r, w := blocking(t)
	if _, err := r.File.Read(make([]byte, 1)); err == nil {
		t.Fatal("a read of an empty pipe succeeds")
	}
	const size = 1 << 20 // more than a pipe holds
	go func() {
		if n, err := w.Write(make([]byte, size)); n != size || err != nil {
			t.Errorf("%d bytes are written, %v", n, err)
		}
		w.Close()
	}()
	if data, err := io.ReadAll(r); len(data) != size || err != nil {
		t.Errorf("%d bytes are read, %v; want %d", len(data), err, size)
	}
}
