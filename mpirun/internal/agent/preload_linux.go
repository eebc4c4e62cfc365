package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

// A preload brings programs and files that this host may not have from the launcher,
// piece by piece: programs into the cache that gompirun itself may have come through,
// files into the working directories of the ranks. The ranks are started when all are
// there.
type preload struct {
	waiting bool
	wanted  []item         // that have not been looked at
	paths   map[int]string // by program
	item    item           // that is being fetched
	file    *os.File       // where it is until it is complete, nil if none is fetched
	size    int64          // of what has come
	sum     hash.Hash
	input   [][]byte // that has come for ranks not yet started
}

// An item is a program or a file that this host is to have.
type item struct {
	ctl.File
	number int    // as in ctl.Want
	path   string // where it is to be
}

// fetch sees to it that the next item that is missing here is asked for, and
// reports whether one was.
func (a *agent) fetch() (bool, error) {
	l := &a.preload
	l.waiting = false
	m := a.nextMissing()
	if m == nil {
		return false, nil
	}
	f, err := os.CreateTemp(filepath.Dir(m.path), ".gompi-preload-*")
	if err != nil {
		return false, fmt.Errorf("preloading %q: %w", m.Name, err)
	}
	l.waiting, l.item, l.file, l.size, l.sum = true, *m, f, 0, sha256.New()
	a.report(&ctl.Want{Item: m.number})
	return true, nil
}

// nextMissing returns the next item that is to be here and is not, nil if there is
// none. It looks at each item once.
func (a *agent) nextMissing() *item {
	l := &a.preload
	for len(l.wanted) > 0 {
		m := l.wanted[0]
		l.wanted = l.wanted[1:]
		if !holds(m.path, &m.File) {
			return &m
		}
		a.got(&m)
	}
	return nil
}

// findWanted lists what is to be on this host.
func (a *agent) findWanted() error {
	if !a.launch.Remote {
		return nil
	}
	l, known := &a.preload, map[int]bool{}
	for _, r := range a.launch.Ranks {
		p := &a.launch.Programs[r.Program]
		if known[r.Program] || p.Sum == "" {
			continue
		}
		known[r.Program] = true
		path, err := cachePath(p.Sum, filepath.Base(p.Argv[0]))
		if err != nil {
			return err
		}
		l.wanted = append(l.wanted, item{ctl.File{Name: p.Argv[0], Sum: p.Sum, Size: p.Size, Mode: 0o700}, r.Program, path})
	}
	for _, dir := range a.workingDirs() {
		for i, f := range a.launch.Files {
			l.wanted = append(l.wanted, item{f, len(a.launch.Programs) + i, filepath.Join(dir, filepath.Base(f.Name))})
		}
	}
	return nil
}

// workingDirs returns the working directories of this host's ranks, each once.
func (a *agent) workingDirs() []string {
	var dirs []string
	for _, r := range a.launch.Ranks {
		if dir := cmp.Or(a.launch.Programs[r.Program].Wdir, a.dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// holds reports whether a regular file has the content of another.
func holds(path string, want *ctl.File) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() != want.Size {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return err == nil && fmt.Sprintf("%x", h.Sum(nil)) == want.Sum
}

// got notes that an item is here.
func (a *agent) got(m *item) {
	if m.number >= len(a.launch.Programs) {
		return
	}
	if a.preload.paths == nil {
		a.preload.paths = map[int]string{}
	}
	a.preload.paths[m.number] = m.path
}

// take takes a piece of what is being fetched, and starts the ranks
// when nothing is missing any more.
func (a *agent) take(data []byte) {
	if !a.preload.waiting || a.end.ordered {
		return
	}
	done, err := a.keep(data)
	if err == nil && !done {
		a.report(&ctl.Want{Item: a.preload.item.number, Offset: a.preload.size})
		return
	}
	if err != nil {
		a.preload.waiting = false
		err = fmt.Errorf("preloading %q: %w", a.preload.item.Name, err)
	}
	a.begin(err)
	if a.preload.waiting {
		return
	}
	for _, data := range a.preload.input {
		a.input(data)
	}
	a.preload.input = nil
}

// keep writes a piece; the last one puts the item where it is to be, in place of
// what may be there.
func (a *agent) keep(data []byte) (done bool, err error) {
	l := &a.preload
	if _, err := l.file.Write(data); err != nil {
		return false, err
	}
	l.sum.Write(data)
	l.size += int64(len(data))
	if l.size < l.item.Size && len(data) > 0 {
		return false, nil
	}
	if err := l.file.Chmod(os.FileMode(l.item.Mode)); err != nil {
		return false, err
	}
	if err := l.file.Close(); err != nil {
		return false, err
	}
	if fmt.Sprintf("%x", l.sum.Sum(nil)) != l.item.Sum {
		return false, errors.New("it has changed while it was sent")
	}
	if err := os.Rename(l.file.Name(), l.item.path); err != nil {
		return false, err
	}
	l.file = nil
	a.got(&l.item)
	return true, nil
}

// abandon removes what is not complete.
func (l *preload) abandon() {
	if l.file != nil {
		l.file.Close()
		os.Remove(l.file.Name())
	}
}

// holdInput keeps input for ranks that have not been started.
func (a *agent) holdInput(data []byte) { a.preload.input = append(a.preload.input, bytes.Clone(data)) }

// cachePath returns where a program with a checksum is, or is to be: in a folder
// that is the user's, and that nobody else can write.
func cachePath(sum, name string) (string, error) {
	caches := []string{os.Getenv("XDG_CACHE_HOME"), os.TempDir()}
	if home, err := os.UserHomeDir(); err == nil && caches[0] == "" {
		caches[0] = filepath.Join(home, ".cache")
	}
	var refused error
	for _, dir := range caches {
		if dir == "" {
			continue
		}
		own := filepath.Join(dir, "gompi-"+strconv.Itoa(os.Getuid()))
		at := filepath.Join(own, sum)
		os.MkdirAll(at, 0o700) // what is wrong shows below
		err := ownFolder(own)
		if err == nil {
			err = ownFolder(at)
		}
		if err == nil {
			return filepath.Join(at, name), nil
		}
		refused = errors.Join(refused, err)
	}
	return "", fmt.Errorf("no folder to put a program in: want to write to HOME or TMPDIR: %w", refused)
}

// ownFolder returns an error if path is no folder of this user's that it can write
// and nobody else.
func ownFolder(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case !ok || int(sys.Uid) != os.Getuid():
		return fmt.Errorf("%s is another user's", path)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write %s (%v): want chmod go-w", path, st.Mode().Perm())
	}
	return unix.Access(path, unix.W_OK)
}
