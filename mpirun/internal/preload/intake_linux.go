package preload

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
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

// An Intake brings programs and files that this host may not have from the launcher,
// piece by piece: programs into the cache that gompirun itself may have come through,
// files into the working directories of the ranks. One goroutine uses it.
type Intake struct {
	programs int            // of the job: the items before its files
	wanted   []item         // that have not been looked at
	paths    map[int]string // by program
	item     item           // that is being fetched
	file     *os.File       // where it is until it is complete, nil if none is fetched
	size     int64          // of what has come
	sum      hash.Hash
}

// An item is a program or a file that this host is to have.
type item struct {
	ctl.File
	number int    // as in ctl.Want
	path   string // where it is to be
}

// Find lists what is to be on this host, by an order to start ranks. dir is the working
// directory of programs that have none of their own.
func (in *Intake) Find(l *ctl.Launch, dir string) error {
	in.programs, in.paths = len(l.Programs), map[int]string{}
	if !l.Remote {
		return nil
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
		path, err := cachePath(p.Sum, filepath.Base(p.Argv[0]))
		if err != nil {
			return err
		}
		in.wanted = append(in.wanted, item{ctl.File{Name: p.Argv[0], Sum: p.Sum, Size: p.Size, Mode: 0o700}, r.Program, path})
	}
	for _, d := range dirs {
		for i, f := range l.Files {
			in.wanted = append(in.wanted, item{f, in.programs + i, filepath.Join(d, filepath.Base(f.Name))})
		}
	}
	return nil
}

// Path returns where a program has been put, "" if it is not brought here.
func (in *Intake) Path(program int) string { return in.paths[program] }

// Next begins with the next item that is missing here. It returns what to ask the
// launcher for, nil if nothing is missing.
func (in *Intake) Next() (*ctl.Want, error) {
	m := in.nextMissing()
	if m == nil {
		return nil, nil
	}
	f, err := os.CreateTemp(filepath.Dir(m.path), ".gompi-preload-*")
	if err != nil {
		return nil, fmt.Errorf("preloading %q: %w", m.Name, err)
	}
	in.item, in.file, in.size, in.sum = *m, f, 0, sha256.New()
	return &ctl.Want{Item: m.number}, nil
}

// nextMissing returns the next item that is to be here and is not, nil if there is
// none. It looks at each item once.
func (in *Intake) nextMissing() *item {
	for len(in.wanted) > 0 {
		m := in.wanted[0]
		in.wanted = in.wanted[1:]
		if !holds(m.path, &m.File) {
			return &m
		}
		in.got(&m)
	}
	return nil
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
func (in *Intake) got(m *item) {
	if m.number < in.programs {
		in.paths[m.number] = m.path
	}
}

// Take takes a piece of what is being fetched; the last one puts the item where it is to
// be, in place of what may be there. Take returns what to ask for next, nil if the item is
// complete.
func (in *Intake) Take(data []byte) (*ctl.Want, error) {
	done, err := in.keep(data)
	if err != nil {
		return nil, fmt.Errorf("preloading %q: %w", in.item.Name, err)
	}
	if done {
		return nil, nil
	}
	return &ctl.Want{Item: in.item.number, Offset: in.size}, nil
}

func (in *Intake) keep(data []byte) (done bool, err error) {
	if _, err := in.file.Write(data); err != nil {
		return false, err
	}
	in.sum.Write(data)
	in.size += int64(len(data))
	if in.size < in.item.Size && len(data) > 0 {
		return false, nil
	}
	if err := in.file.Chmod(os.FileMode(in.item.Mode)); err != nil {
		return false, err
	}
	if err := in.file.Close(); err != nil {
		return false, err
	}
	if fmt.Sprintf("%x", in.sum.Sum(nil)) != in.item.Sum {
		return false, errors.New("it has changed while it was sent")
	}
	if err := os.Rename(in.file.Name(), in.item.path); err != nil {
		return false, err
	}
	in.file = nil
	in.got(&in.item)
	return true, nil
}

// Abandon removes what is not complete.
func (in *Intake) Abandon() {
	if in.file != nil {
		in.file.Close()
		os.Remove(in.file.Name())
	}
}

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
