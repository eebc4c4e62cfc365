// Package program finds the programs that ranks run on this host, as execvp would, and says
// what is wrong with one that cannot be run.
package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit statuses that stand for a rank that could not be started, as shells use
// them.
const (
	CannotStart   = 125
	notExecutable = 126
	notFound      = 127
)

// A Program is what some ranks of this host run.
type Program struct {
	Path string   // of its file, from Dir
	Argv []string // as the user gave it
	Dir  string   // the working directory, "" for this process's
	Env  []string // of all its ranks
}

// Find returns the path of the program called name, as execvp would find it from the
// directory wdir in the folders of path.
func Find(name, wdir, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // exec itself says what is wrong with it
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		candidate := dir + "/" + name
		at := candidate
		if !filepath.IsAbs(at) {
			at = filepath.Join(wdir, at)
		}
		if st, err := os.Stat(at); err != nil || st.IsDir() {
			continue
		}
		if unix.Access(at, unix.X_OK) == nil {
			return candidate, nil
		}
		denied = fmt.Errorf("cannot run %q: %s: %w", name, at, syscall.EACCES)
	}
	if denied != nil {
		return "", denied
	}
	hint := ""
	if st, err := os.Stat(filepath.Join(wdir, name)); err == nil && !st.IsDir() {
		hint = fmt.Sprintf("; there is one in the working directory: want ./%s", name)
	}
	return "", fmt.Errorf("cannot find %q in PATH%s: %w", name, hint, syscall.ENOENT)
}

// file returns where p's file is for this process.
func (p *Program) file() string {
	if filepath.IsAbs(p.Path) {
		return p.Path
	}
	return filepath.Join(p.Dir, p.Path)
}

// StartError says why the kernel would not start p.
func (p *Program) StartError(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	if errno == syscall.ENOENT {
		if _, statErr := os.Stat(p.file()); statErr == nil {
			return fmt.Errorf("cannot run %q: it is there, but not the interpreter or loader that it asks for: %w", p.Argv[0], err)
		}
	}
	return fmt.Errorf("cannot run %q: %w", p.Argv[0], err)
}

// Status returns the exit status that stands for err.
func Status(err error) int {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return notFound
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EPERM):
		return notExecutable
	}
	return CannotStart
}
