package rank0

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrForged is wrapped by the errors of a contact that another process may have written. A retry
// would not help.
var ErrForged = errors.New("not to be trusted")

// Write writes t to a new file, whole or not at all.
func (t *Contact) Write(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".") // mode 0600
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, t.String())
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// ReadContact reads rank 0's contact. It refuses a file that another user could have written.
func ReadContact(path string) (*Contact, error) {
	os.ReadDir(filepath.Dir(path)) // makes NFS drop a cached lookup that found no file
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() { // opening or reading another kind, such as a FIFO, may block
		return nil, fmt.Errorf("%s is %s, want a file: %w", path, kindOf(st.Mode()), ErrForged)
	}
	if err := private(path, st); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, err
	}
	return ParseContact(strings.TrimSpace(string(b)))
}

// kindOf names a file that is not regular.
func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	}
	return "a device"
}

// private returns an error unless a file or folder is this user's alone.
func private(path string, st os.FileInfo) error {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is of user %d, want %d: %w", path, sys.Uid, os.Geteuid(), ErrForged)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %v, want no access for other users: %w", path, st.Mode(), ErrForged)
	}
	return nil
}

// PrivateDir returns a folder of this host that only this user can access.
func PrivateDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("gompi-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is no folder: %w", dir, ErrForged)
	}
	return dir, private(dir, st)
}
