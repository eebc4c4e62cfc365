package files

import (
	"golang.org/x/sys/unix"

	"gompi/internal/core/layout"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
)

// An access moves data between memory and a file.
type access struct {
	f      *File
	v      *view
	write  bool
	atomic bool
	at, n  int // the bytes of data in the view that the access moves

	buf   abi.Addr // count elements of t
	count int
	t     *dtypes.Datatype
}

// move does a, and returns the number of bytes moved: fewer than all at the end of the file, or
// with an error.
func (a *access) move() (bytes int, err error) {
	if a.n == 0 {
		return 0, nil
	}
	if a.atomic {
		unlock, err := a.lock()
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	if a.v.rep == external32 {
		return a.convert()
	}
	return a.copy(a.t.Layout(a.count), a.buf)
}

// lock locks the whole extent of a in the file, so that other atomic accesses come before or
// after.
func (a *access) lock() (unlock func(), err error) {
	how, from := int16(unix.F_RDLCK), a.v.offset(a.at)
	if a.write {
		how = unix.F_WRLCK
	}
	bytes := max(1, a.v.offset(a.at+a.n-1)+1-from)
	a.f.locks.Lock()
	if err := lock(a.f.fd, how, from, bytes); err != nil {
		a.f.locks.Unlock()
		return nil, failed("lock", a.f.name, err)
	}
	return func() {
		_ = lock(a.f.fd, unix.F_UNLCK, from, bytes)
		a.f.locks.Unlock()
	}, nil
}

// convert does a through a buffer with the data in external32. An element that is incomplete, at
// the end of the file, is not stored.
func (a *access) convert() (bytes int, err error) {
	room := make([]byte, a.n)
	if a.write {
		if _, err := a.t.PackExternal(room, uintptr(a.buf), a.count); err != nil {
			return 0, err
		}
	}
	moved, err := a.copy(layout.Run(a.n), addressOf(room))
	elements := moved / a.t.ExternalSize(1)
	if !a.write && elements > 0 {
		if _, e := a.t.UnpackExternal(uintptr(a.buf), elements, room); err == nil {
			err = e
		}
	}
	return elements * a.t.Size(), err
}

// copy moves the bytes of a layout at base, and returns their number.
func (a *access) copy(memory layout.Layout, base abi.Addr) (moved int, err error) {
	a.v.runs(a.at, a.n, func(off, n int) bool {
		var k int
		k, err = a.run(&memory, base, moved, off, n)
		moved += k
		return err == nil && k == n
	})
	what := "read"
	if a.write {
		what = "write"
	}
	return moved, failed(what, a.f.name, err)
}

// mostVectors is IOV_MAX: the runs in memory that a call of the system takes.
const mostVectors = 1024

// run moves n bytes at off in the file, to or from the memory after its first skip bytes.
func (a *access) run(memory *layout.Layout, base abi.Addr, skip, off, n int) (moved int, err error) {
	var few [4][]byte
	vectors, bytes := few[:0], 0
	flush := func() bool {
		var k int
		k, err = a.call(vectors, off+moved)
		whole := k == bytes
		moved, vectors, bytes = moved+k, vectors[:0], 0
		return err == nil && whole
	}
	more := memory.Part(skip, n, func(at, n int) bool {
		vectors, bytes = append(vectors, base.Plus(at).Bytes(n)), bytes+n
		return len(vectors) < mostVectors || flush()
	})
	if more && bytes > 0 {
		flush()
	}
	return moved, err
}

// call moves vectors at off in the file, and returns the number of bytes moved.
func (a *access) call(vectors [][]byte, off int) (moved int, err error) {
	for len(vectors) > 0 {
		n, err := again(func() (int, error) {
			if a.write {
				return unix.Pwritev(a.f.fd, vectors, int64(off+moved))
			}
			return unix.Preadv(a.f.fd, vectors, int64(off+moved))
		})
		switch {
		case err != nil:
			return moved, err
		case n == 0 && a.write:
			return moved, unix.ENOSPC
		case n == 0:
			return moved, nil // the end of the file
		}
		moved += n
		vectors = behind(vectors, n)
	}
	return moved, nil
}

// behind returns the rest of vectors after n bytes.
func behind(vectors [][]byte, n int) [][]byte {
	for len(vectors) > 0 && n >= len(vectors[0]) {
		n -= len(vectors[0])
		vectors = vectors[1:]
	}
	if n > 0 {
		vectors[0] = vectors[0][n:]
	}
	return vectors
}
