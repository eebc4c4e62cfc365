package output

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gompi/internal/atomicfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// Files names the files that get the output of ranks. The zero Files is none.
type Files struct {
	Dir      string                // has folders of ranks, with a file for each stream; "" for none
	Only     bool                  // output in Dir is not shown on the screen
	Merged   bool                  // the ranks' stderr is their stdout
	Patterns map[ctl.Stream]string // of the file of a stream, which then is not shown on the screen
}

// shows reports whether the output of a source goes to the screen.
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
		path = o.rank(from.rank).Expand(p, o.now())
	} else if o.Files.Dir != "" {
		digits := len(strconv.Itoa(max(0, len(o.Ranks)-1)))
		path = filepath.Join(o.Files.Dir, fmt.Sprintf("rank.%0*d", digits, from.rank), from.stream.String())
	}
	o.paths[from] = path
	return path
}

// flag returns the flag that names the files of a stream.
func (o *Writer) flag(s ctl.Stream) string {
	switch {
	case o.Files.Patterns[s] == "":
		return "-output-filename"
	case s == ctl.Stderr:
		return "-errfile-pattern"
	}
	return "-outfile-pattern"
}

// MakeFolders makes the folders of all files, and returns an obstacle to writing the files. A
// rank's own files are created, and emptied unless Begun, so that their content is this job's.
func (o *Writer) MakeFolders() error {
	checked := map[string]bool{}
	for rank := range o.Ranks {
		for _, stream := range []ctl.Stream{ctl.Stdout, ctl.Stderr} {
			path := o.path(source{rank, stream})
			own := o.Files.Patterns[stream] == ""
			dir := filepath.Dir(path)
			if path == "" || !own && (checked[dir] || exists(path)) || own && o.Files.Merged && stream == ctl.Stderr {
				continue
			}
			err := os.MkdirAll(dir, 0o777)
			switch {
			case err != nil:
			case own && !o.Begun[path]:
				o.Begun[path] = true
				err = empty(path)
			case own:
			default:
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

// empty makes an empty file, unless the path is a special file such as a FIFO.
func empty(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// exists reports whether path can be opened without creating a file, for which its folder may be
// closed.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func (o *Writer) rank(rank int) plan.Label {
	if rank < len(o.Ranks) {
		return o.Ranks[rank]
	}
	return plan.Label{Rank: rank}
}

// file returns the sink of a file. Several sources may share it.
func (o *Writer) file(path string) *sink {
	s := o.files[path]
	if s == nil {
		s = newFile(o, path, o.Begun[path])
		o.files[path], o.Begun[path] = s, true
	}
	return s
}
