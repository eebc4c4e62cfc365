package program

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gompi/mpirun/internal/ctl"
)

// An intake fetches missing programs and files from the launcher, in pieces. Programs go to the
// cache that also has gompirun itself, files to the ranks' working directories. One goroutine at
// a time uses an intake, but any may call Abandon.
type intake struct {
	programs int            // number of the job's programs: the items before its files
	wanted   []item         // not checked yet
	paths    map[int]string // by program
	item     item           // being fetched
	file     *os.File       // the unfinished item
	size     int64          // bytes received
	sum      hash.Hash

	mu        sync.Mutex
	temporary string // the name of file, "" if no item is being fetched
	abandoned bool
}

// An item is a program or a file wanted on this host.
type item struct {
	ctl.File
	number  int      // as in ctl.Want
	program bool     // needs to be executable
	places  []string // possible paths; the first is in use
	refused error    // errors of earlier places
}

// Find lists the items of an order to start ranks. dir is the working directory of programs
// without one.
func (in *intake) Find(l *ctl.Launch, dir string) {
	in.programs, in.paths = len(l.Programs), map[int]string{}
	if !l.Remote {
		return
	}
	known := map[int]bool{}
	var dirs []string // of this host's ranks, each once
	for _, r := range l.Ranks {
		p := &l.Programs[r.Program]
		if d := cmp.Or(p.Wdir, dir); !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
		if known[r.Program] || p.Sum == "" {
			continue
		}
		known[r.Program] = true
		in.wanted = append(in.wanted, item{File: ctl.File{Name: p.Argv[0], Sum: p.Sum, Size: p.Size, Mode: 0o700},
			number: r.Program, program: true, places: cachePaths(p.Sum, filepath.Base(p.Argv[0]))})
	}
	for _, d := range dirs {
		for i, f := range l.Files {
			in.wanted = append(in.wanted, item{File: f, number: in.programs + i,
				places: []string{filepath.Join(d, filepath.Base(f.Name))}})
		}
	}
}

// FindMPI adds gompi's MPI libraries, which this host lacks, to the wanted items. They have a
// folder of their own in the cache.
func (in *intake) FindMPI(l *ctl.Launch) {
	if !l.Remote {
		return
	}
	all := sha256.New()
	for _, f := range l.MPI {
		fmt.Fprintln(all, f.Name, f.Sum)
	}
	sum := fmt.Sprintf("%x", all.Sum(nil))
	for i, f := range l.MPI {
		in.wanted = append(in.wanted, item{File: f, number: in.programs + len(l.Files) + i, program: true,
			places: cachePaths(sum, f.Name)})
	}
}

// MPIFolder returns the libraries' common folder, "" if there is none.
func (in *intake) MPIFolder(l *ctl.Launch) (folder string) {
	for i, f := range l.MPI {
		dir, ok := strings.CutSuffix(in.paths[in.programs+len(l.Files)+i], "/"+f.Name)
		if !ok || folder != "" && dir != folder {
			return ""
		}
		folder = dir
	}
	return folder
}

// Path returns a fetched or cached program's path, "" without preloading.
func (in *intake) Path(program int) string { return in.paths[program] }

// Next begins with the next missing item. The result is the first request to the launcher, nil if
// nothing is missing. The call takes as long as reading all present items.
func (in *intake) Next() (*ctl.Want, error) {
	m := in.nextMissing()
	if m == nil {
		return nil, nil
	}
	in.item = *m
	return in.begin()
}

// nextMissing returns the next missing item, nil if there is none. Each item is checked once.
func (in *intake) nextMissing() *item {
	for len(in.wanted) > 0 {
		m := in.wanted[0]
		in.wanted = in.wanted[1:]
		at := slices.IndexFunc(m.places, m.isAt)
		if at < 0 {
			return &m
		}
		in.got(&m, m.places[at])
	}
	return nil
}

// got notes an item's path.
func (in *intake) got(m *item, path string) {
	if m.program {
		in.paths[m.number] = path
	}
}

// begin requests the item from its start, for the first place that can be written.
func (in *intake) begin() (*ctl.Want, error) {
	m := &in.item
	for len(m.places) > 0 {
		err := in.create(m)
		if err == nil {
			in.size, in.sum = 0, sha256.New()
			return &ctl.Want{Item: m.number}, nil
		}
		m.refuse(err)
	}
	return nil, fmt.Errorf("preloading %q: %w", m.Name, m.refused)
}

// create makes the temporary file of m.
func (in *intake) create(m *item) error {
	dir := filepath.Dir(m.places[0])
	if m.program {
		if err := makeOwnFolder(dir); err != nil {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.abandoned {
		return errors.New("the job has ended")
	}
	f, err := os.CreateTemp(dir, ".gompi-preload-*")
	if err != nil {
		return err
	}
	in.file, in.temporary = f, f.Name()
	err = f.Chmod(os.FileMode(m.Mode))
	if err == nil && m.program {
		err = executable(f.Name())
	}
	if err != nil {
		in.removeTemporary()
	}
	return err
}

// refuse notes the error of m's first place, and continues with the next place.
func (m *item) refuse(err error) {
	if m.refused != nil {
		err = fmt.Errorf("%w; %w", m.refused, err)
	}
	m.refused = err
	m.places = m.places[1:]
}

// Take takes a piece of the current item. The last piece moves the item to its place, over any
// existing file. Take returns the next request, nil if the item is complete. After a write error
// the item is requested again, for its next place.
func (in *intake) Take(data []byte) (*ctl.Want, error) {
	err := in.keep(data)
	if err == nil && in.size < in.item.Size && len(data) > 0 {
		return &ctl.Want{Item: in.item.number, Offset: in.size}, nil
	}
	if err == nil {
		err = in.finish()
	}
	if err == nil {
		return nil, nil
	}
	in.mu.Lock()
	in.removeTemporary()
	in.mu.Unlock()
	in.item.refuse(err)
	return in.begin()
}

func (in *intake) keep(data []byte) error {
	if _, err := in.file.Write(data); err != nil {
		return err
	}
	in.sum.Write(data)
	in.size += int64(len(data))
	return nil
}

// finish moves the item to its place.
func (in *intake) finish() error {
	if err := in.file.Close(); err != nil {
		return err
	}
	if fmt.Sprintf("%x", in.sum.Sum(nil)) != in.item.Sum {
		in.item.places = in.item.places[:1] // other places will not help
		return errors.New("it has changed while it was sent")
	}
	path := in.item.places[0]
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := os.Rename(in.temporary, path); err != nil {
		return err
	}
	in.temporary = ""
	in.got(&in.item, path)
	return nil
}

// removeTemporary removes an incomplete item. The caller has locked mu.
func (in *intake) removeTemporary() {
	if in.temporary != "" {
		in.file.Close() // it may be closed
		os.Remove(in.temporary)
		in.temporary = ""
	}
}

// Abandon removes an incomplete item: the job is over.
func (in *intake) Abandon() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.abandoned = true
	in.removeTemporary()
}

// isAt reports whether m is at a path: a regular file with m's content, and executable if m is a
// program.
func (m *item) isAt(path string) bool {
	if m.program && (checkOwnFolders(filepath.Dir(path)) != nil || executable(path) != nil) {
		return false
	}
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() != m.Size {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return err == nil && fmt.Sprintf("%x", h.Sum(nil)) == m.Sum
}
