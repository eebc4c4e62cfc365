package rank0

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAContactThatOthersCouldHaveWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "contact")
	if err := (&Contact{Port: 1}).Write(path); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", st.Mode(), err)
	}
	if _, err := ReadContact(path); err != nil {
		t.Error(err)
	}
	os.Chmod(path, 0o620)
	if _, err := ReadContact(path); !errors.Is(err, ErrForged) {
		t.Errorf("group-writable: %v, want %v", err, ErrForged)
	}
	link := filepath.Join(dir, "link")
	os.Symlink(path, link)
	if _, err := ReadContact(link); err == nil {
		t.Error("a symbolic link is followed")
	}
}

// A contact file is a regular file; a pipe in its place would be read for ever.
func TestAPipeIsNoContact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contact")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := ReadContact(path)
		read <- err
	}()
	select {
	case err := <-read:
		if !errors.Is(err, ErrForged) || !strings.Contains(err.Error(), "named pipe") {
			t.Errorf("error %v, want that it is a named pipe: %v", err, ErrForged)
		}
	case <-time.After(5 * time.Second):
		t.Error("it is read, and read")
		os.WriteFile(path, nil, 0) // has the reader end
	}
}
