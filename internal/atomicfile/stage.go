package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// A file is written under another name beside its target: a dot, the name, a random number, and an
// ending. The writer holds a lock on the file, so that a later writer recognizes and removes a file
// left by a kill.

var stagedName = regexp.MustCompile(`^\.(.*)\.[0-9a-f]{16}\.partial$`)

// stemOf returns the part of a name that a staged file's name contains: file systems bound the
// whole.
func stemOf(name string) string { return name[:min(len(name), 200)] }

// stage creates the file that is to replace target, with target's permissions or, for a new target,
// the umask's.
func stage(target string) (*os.File, error) {
	dir, name := filepath.Split(target)
	removeLeft(dir, name)
	for {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%016x.partial", stemOf(name), rand.Uint64())),
			os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_ = lock(f, syscall.LOCK_EX) // without locks, nothing is removed either
		if !isAt(f, f.Name()) {      // removed between the two calls
			f.Close()
			continue
		}
		if old, err := os.Stat(target); err == nil {
			err = f.Chmod(old.Mode().Perm())
			if err != nil {
				return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
			}
		}
		return f, nil
	}
}

// removeLeft removes files of a name that killed writers have left in a folder, as far as possible.
func removeLeft(dir, name string) {
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if m := stagedName.FindStringSubmatch(e.Name()); m == nil || m[1] != stemOf(name) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil && isAt(f, path) {
			os.Remove(path)
		}
		f.Close()
	}
}

func lock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// isAt reports whether f is the file at path.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	there, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(mine, there)
}

// resolve returns the end of path's symbolic links, which need not exist.
func resolve(path string) (string, error) {
	const mostLinks = 40 // as the kernel follows
	for range mostLinks {
		to, err := os.Readlink(path)
		if err != nil { // not a link, or nothing
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", &os.PathError{Op: "write", Path: path, Err: syscall.ELOOP}
}
