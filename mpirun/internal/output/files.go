package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"gompi/mpirun/internal/ctl"
)

// Files says which files get what ranks write. The zero Files is none.
type Files struct {
	Dir      string                // a folder, which is there, of a file for each rank and stream; "" for none
	Only     bool                  // what is in Dir is not shown
	Patterns map[ctl.Stream]string // of files that get a stream, which is not shown
}

// shows reports whether a stream is shown on the screen.
func (o *Writer) shows(s ctl.Stream) bool {
	return o.Files.Patterns[s] == "" && (o.Files.Dir == "" || !o.Files.Only)
}

// path returns the file of a source, "" if it has none.
func (o *Writer) path(from source) string {
	if path, known := o.paths[from]; known {
		return path
	}
	path := ""
	if pattern := o.Files.Patterns[from.stream]; pattern != "" {
		path = expand(pattern, o.who(from.rank), o.now())
	} else if o.Files.Dir != "" {
		digits := len(strconv.Itoa(max(0, len(o.Ranks)-1)))
		path = filepath.Join(o.Files.Dir, fmt.Sprintf("rank-%0*d.%v", digits, from.rank, from.stream))
	}
	o.paths[from] = path
	return path
}

func (o *Writer) who(rank int) Who {
	if rank < len(o.Ranks) {
		return o.Ranks[rank]
	}
	return Who{Rank: rank}
}

// keep appends what a rank wrote to its file, as it is. Several may share a file.
func (o *Writer) keep(m *ctl.Output) {
	o.mu.Lock()
	path := o.path(source{m.Rank, m.Stream})
	f, known := o.open[path]
	var err error
	if path != "" && !known {
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o666); err != nil {
			f = nil
		}
		o.open[path] = f
	}
	o.mu.Unlock()
	if f != nil {
		if _, err = f.Write(m.Data); err != nil {
			o.mu.Lock()
			o.open[path] = nil
			o.mu.Unlock()
			f.Close()
		}
	}
	if err != nil {
		o.fail(err)
	}
}

// closeFiles closes all files. What comes for them later is dropped.
func (o *Writer) closeFiles() {
	o.mu.Lock()
	var files []*os.File
	for path, f := range o.open {
		if f != nil {
			files = append(files, f)
		}
		o.open[path] = nil
	}
	o.mu.Unlock()
	for _, f := range files {
		if err := f.Close(); err != nil {
			o.fail(err)
		}
	}
}
