package mpirun

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

// An offer is what is to be preloaded, opened: agents can ask for it.
type offer struct {
	programs []ctl.Program // what they are, as far as they are sent
	files    []ctl.File
	sent     []*os.File // programs, nil for those that are not sent, then files
	err      error
}

// awaitOffer opens the programs and files that are to be sent, and finds out what they
// are. That takes long where they are large: the job hears its signals meanwhile. It
// returns an error, too, when the job is to end.
func (j *job) awaitOffer() error {
	if p := j.spec.Preload; j.cause == nil && !p.Binary && p.Files == "" {
		j.offer = j.makeOffer() // at once: a job whose time is up meanwhile does not end for this
		return nil
	}
	offers := make(chan *offer)
	go func() { // until all is read
		o := j.makeOffer()
		select {
		case offers <- o:
		case <-j.done:
			o.close()
		}
	}()
	for j.cause == nil {
		select {
		case j.offer = <-offers:
			return j.offer.err
		case e := <-j.events:
			j.handle(e)
		case s := <-j.signals.c:
			j.signalled(s)
		case <-j.timer:
			j.timeUp(" while reading what is to be preloaded")
		}
	}
	return errors.New("the job ends before its launch")
}

func (j *job) makeOffer() *offer {
	o := &offer{programs: make([]ctl.Program, len(j.spec.Programs)), sent: make([]*os.File, len(j.spec.Programs))}
	if j.spec.Preload.Binary {
		for i, p := range j.spec.Programs {
			if err := o.addProgram(i, p); err != nil {
				o.err = fmt.Errorf("-preload-binary: %w", err)
				return o
			}
		}
	}
	for name := range strings.SplitSeq(j.spec.Preload.Files, ",") {
		if err := o.addFile(name); err != nil {
			o.err = fmt.Errorf("-preload-files %q: %w", j.spec.Preload.Files, err)
			return o
		}
	}
	return o
}

// addProgram finds p's program here as it would be found there.
func (o *offer) addProgram(i int, p cmdline.Program) error {
	name := p.Argv[0]
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(p.Wdir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	f, sum, size, err := openSummed(path)
	o.sent[i], o.programs[i].Sum, o.programs[i].Size = f, sum, size
	return err
}

func (o *offer) addFile(name string) error {
	if name == "" {
		return nil
	}
	base := filepath.Base(name)
	if slices.ContainsFunc(o.files, func(f ctl.File) bool { return f.Name == base }) {
		return fmt.Errorf("two files are named %q, and all go to the working directory: want names that differ", base)
	}
	f, sum, size, err := openSummed(name)
	if err != nil {
		return err
	}
	o.sent = append(o.sent, f)
	st, err := f.Stat()
	if err != nil {
		return err
	}
	o.files = append(o.files, ctl.File{Name: base, Sum: sum, Size: size, Mode: int(st.Mode().Perm())})
	return nil
}

// describe adds what is offered to an order to start ranks.
func (o *offer) describe(l *ctl.Launch) {
	for i, p := range o.programs {
		l.Programs[i].Sum, l.Programs[i].Size = p.Sum, p.Size
	}
	l.Files = o.files
}

// close closes what has been opened. A nil offer has nothing.
func (o *offer) close() {
	if o == nil {
		return
	}
	for _, f := range o.sent {
		f.Close() // of a nil file: an error, and no more
	}
}

// openSummed opens a regular file and returns its SHA-256 and size. Reading a pipe could
// block for ever.
func openSummed(path string) (f *os.File, sum string, size int64, err error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, "", 0, fmt.Errorf("%s: want a regular file, not %v", path, st.Mode().Type())
	}
	if f, err = os.Open(path); err != nil {
		return nil, "", 0, err
	}
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		f.Close()
		return nil, "", 0, err
	}
	return f, fmt.Sprintf("%x", h.Sum(nil)), size, nil
}

// give sends the piece that an agent wants. Where there is none the piece is empty.
func (j *job) give(l *link, m *ctl.Want) {
	data := make([]byte, ctl.MaxPiece)
	n := 0
	if j.offer != nil && m.Item < len(j.offer.sent) && j.offer.sent[m.Item] != nil {
		n, _ = j.offer.sent[m.Item].ReadAt(data, m.Offset) // what cannot be read is missed there
	}
	l.Send(&ctl.Piece{Data: data[:n]})
}
