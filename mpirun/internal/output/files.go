package output

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gompi/internal/atomicfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/pattern"
)

// Files names the files that get what ranks write. The zero Files is none.
type Files struct {
	Dir      string                // a folder, which is there, of a file for each rank and stream; "" for none
	Only     bool                  // what is in Dir is not shown
	Patterns map[ctl.Stream]string // of files that get a stream, which is not shown
}

// shows reports whether what a source writes is shown on the screen.
func (o *Writer) shows(from source) bool {
	if len(o.Shown) > 0 && !slices.Contains(o.Shown, o.rank(from.rank).Local) {
		return false
	}
	return o.Files.Patterns[from.stream] == "" && (o.Files.Dir == "" || !o.Files.Only)
}

// path returns the file of a source, "" if it has none.
func (o *Writer) path(from source) string {
	if path, known := o.paths[from]; known {
		return path
	}
	path := ""
	if p := o.Files.Patterns[from.stream]; p != "" {
		path = pattern.Expand(p, o.rank(from.rank), o.now())
	} else if o.Files.Dir != "" {
		digits := len(strconv.Itoa(max(0, len(o.Ranks)-1)))
		path = filepath.Join(o.Files.Dir, fmt.Sprintf("rank-%0*d.%v", digits, from.rank, from.stream))
	}
	o.paths[from] = path
	return path
}

// flag returns the flag that names the files that get a stream.
func (o *Writer) flag(s ctl.Stream) string {
	switch {
	case o.Files.Patterns[s] == "":
		return "-output-filename"
	case s == ctl.Stderr:
		return "-errfile-pattern"
	}
	return "-outfile-pattern"
}

// MakeFolders makes the folders of all files, and returns what would keep these from being written.
func (o *Writer) MakeFolders() error {
	checked := map[string]bool{}
	for rank := range o.Ranks {
		for _, stream := range []ctl.Stream{ctl.Stdout, ctl.Stderr} {
			path := o.path(source{rank, stream})
			dir := filepath.Dir(path)
			if path == "" || checked[dir] || exists(path) {
				continue
			}
			err := os.MkdirAll(dir, 0o777)
			if err == nil {
				err = atomicfile.Check(path)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", o.flag(stream), err)
			}
			checked[dir] = true
		}
	}
	return nil
}

// exists reports whether there is something to write to: it may be in a folder that takes no files.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func (o *Writer) rank(rank int) pattern.Rank {
	if rank < len(o.Ranks) {
		return o.Ranks[rank]
	}
	return pattern.Rank{Rank: rank}
}

// file returns the sink of a file. Several sources may share it.
func (o *Writer) file(path string) *sink {
	s := o.files[path]
	if s == nil {
		s = newFile(o, path)
		o.files[path] = s
	}
	return s
}
