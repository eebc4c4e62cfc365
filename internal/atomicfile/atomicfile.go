// Package atomicfile writes files atomically: whole, or not at all.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// A File is a file to write.
type File struct {
	Name  string // in the folder
	Write func(w io.Writer) error
}

// Replace writes one file in an existing folder, as Write does. The file is always the old one or
// the new one.
func Replace(path string, write func(w io.Writer) error) error {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	return put(dir, []File{{base, write}})
}

// Check returns the error that would keep a new file from being written at path, before expensive
// work for its content. Check creates a file beside path, and removes that file. A device or FIFO
// is always accepted, and so is the empty path, which names no file.
func Check(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	if isDevice(path) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".check.*")
	if err != nil {
		var at *os.PathError
		if errors.As(err, &at) {
			at.Path = path // the path that the user typed
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Write makes the folder, if necessary, and writes the files there: first under temporary names
// that begin with a dot. When all are whole and on the disk, Write renames them, in order. A
// process killed between two renames leaves new files beside old or absent ones. Existing files are
// replaced, and keep their permissions; a symbolic link's target is replaced. After an error, files
// that were not renamed are removed. The next Write of the name removes files left by a kill.
func Write(dir string, files ...File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return put(dir, files)
}

func put(dir string, files []File) (err error) {
	var staged []*os.File
	var targets []string
	defer func() {
		for _, f := range staged {
			err = errors.Join(err, os.Remove(f.Name()), f.Close())
		}
	}()
	for _, file := range files {
		path := filepath.Join(dir, file.Name)
		if isDevice(path) {
			if err := writeThrough(path, file.Write); err != nil {
				return err
			}
			continue
		}
		target, err := resolve(path)
		if err != nil {
			return err
		}
		f, err := stage(target)
		if err != nil {
			return err
		}
		staged, targets = append(staged, f), append(targets, target)
		w := bufio.NewWriter(f)
		if err := errors.Join(file.Write(w), w.Flush(), f.Sync()); err != nil {
			return err
		}
	}
	folders := map[string]bool{}
	for _, target := range targets {
		f := staged[0]
		if err := os.Rename(f.Name(), target); err != nil {
			return err
		}
		staged = staged[1:]
		if err := f.Close(); err != nil {
			return err
		}
		folders[filepath.Dir(target)] = true
	}
	for folder := range folders {
		err = errors.Join(err, syncFolder(folder))
	}
	return err
}

// isDevice reports whether path is a device or a FIFO, which is written to and not replaced.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

func writeThrough(path string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// syncFolder flushes the new names to the disk, if the file system can.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
