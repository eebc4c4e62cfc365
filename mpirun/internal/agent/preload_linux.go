package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

// A preload brings programs that this host may not have from the launcher, piece
// by piece, into the cache that gompirun itself may have come through. The ranks
// are started when all are there.
type preload struct {
	waiting bool
	paths   map[int]string // by program
	program int            // that is being fetched
	path    string         // where it will be
	file    *os.File       // where it is until it is complete
	size    int64          // of what has come
	sum     hash.Hash
	input   [][]byte // that has come for ranks not yet started
}

// fetch sees to it that the next program that is missing here is asked for, and
// reports whether one was.
func (a *agent) fetch() (bool, error) {
	for _, r := range a.launch.Ranks {
		p := &a.launch.Programs[r.Program]
		if _, known := a.preload.paths[r.Program]; known || p.Sum == "" || !a.launch.Remote {
			continue
		}
		path, err := cachePath(p.Sum, filepath.Base(p.Argv[0]))
		if err != nil {
			return false, err
		}
		if st, err := os.Stat(path); err == nil && st.Size() == p.Size {
			a.gotProgram(r.Program, path)
			continue
		}
		f, err := os.OpenFile(path+"."+strconv.Itoa(os.Getpid()), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
		if err != nil {
			return false, err
		}
		l := &a.preload
		l.waiting, l.program, l.path, l.file, l.size, l.sum = true, r.Program, path, f, 0, sha256.New()
		a.report(&ctl.Want{Program: r.Program})
		return true, nil
	}
	a.preload.waiting = false
	return false, nil
}

func (a *agent) gotProgram(program int, path string) {
	if a.preload.paths == nil {
		a.preload.paths = map[int]string{}
	}
	a.preload.paths[program] = path
}

// take takes a piece of the program that is being fetched, and starts the ranks
// when nothing is missing any more.
func (a *agent) take(data []byte) {
	if !a.preload.waiting || a.end.ordered {
		return
	}
	done, err := a.keep(data)
	if err == nil && !done {
		a.report(&ctl.Want{Program: a.preload.program, Offset: a.preload.size})
		return
	}
	if err != nil {
		os.Remove(a.preload.file.Name())
		a.preload.waiting = false
		err = fmt.Errorf("-preload-binary: %w", err)
	}
	a.begin(err)
	for _, data := range a.preload.input {
		a.input(data)
	}
}

// keep writes a piece, and the last one's program to where it is to be.
func (a *agent) keep(data []byte) (done bool, err error) {
	l := &a.preload
	want := a.launch.Programs[l.program]
	if _, err := l.file.Write(data); err != nil {
		return false, err
	}
	l.sum.Write(data)
	l.size += int64(len(data))
	if l.size < want.Size && len(data) > 0 {
		return false, nil
	}
	if err := l.file.Close(); err != nil {
		return false, err
	}
	if fmt.Sprintf("%x", l.sum.Sum(nil)) != want.Sum {
		return false, fmt.Errorf("%q has changed while it was sent", want.Argv[0])
	}
	a.gotProgram(l.program, l.path)
	return true, os.Rename(l.file.Name(), l.path)
}

// holdInput keeps input for ranks that have not been started.
func (a *agent) holdInput(data []byte) { a.preload.input = append(a.preload.input, bytes.Clone(data)) }

// cachePath returns where a program with a checksum is, or is to be: in a folder
// that is the user's alone.
func cachePath(sum, name string) (string, error) {
	uid := os.Getuid()
	caches := []string{os.Getenv("XDG_CACHE_HOME"), os.TempDir()}
	if home, err := os.UserHomeDir(); err == nil && caches[0] == "" {
		caches[0] = filepath.Join(home, ".cache")
	}
	for _, dir := range caches {
		if dir == "" {
			continue
		}
		own := filepath.Join(dir, "gompi-"+strconv.Itoa(uid))
		at := filepath.Join(own, sum)
		os.MkdirAll(at, 0o700) // what is wrong shows below
		st, err := os.Lstat(own)
		if err != nil || !st.IsDir() || unix.Access(at, unix.W_OK) != nil {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) == uid {
			return filepath.Join(at, name), nil
		}
	}
	return "", errors.New("no folder to put a program in: want to write to HOME or TMPDIR")
}
