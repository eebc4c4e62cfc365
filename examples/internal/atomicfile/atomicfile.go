// Package atomicfile writes files that are whole, or not there.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A File is one to write.
type File struct {
	Name  string // in the folder
	Write func(w io.Writer)
}

// Write makes the folder, if it is not there, and writes the files into it: first under other
// names, which begin with a dot, and when all are whole it renames them, in order. A process that
// is killed between two names leaves new files beside old ones, or beside none. Files of these
// names are replaced. After an error, those that were not renamed are removed; a kill leaves them.
func Write(dir string, files ...File) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var staged []string
	defer func() {
		for _, name := range staged {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	for _, file := range files {
		f, err := os.CreateTemp(dir, "."+file.Name+".*")
		if err != nil {
			return err
		}
		staged = append(staged, f.Name())
		w := bufio.NewWriter(f)
		file.Write(w) // a bufio.Writer keeps its error for Flush
		if err := errors.Join(w.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := os.Rename(staged[0], filepath.Join(dir, file.Name)); err != nil {
			return err
		}
		staged = staged[1:]
	}
	return nil
}
