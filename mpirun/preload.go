package mpirun

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
)

// preload brings programs to hosts that do not have them.
type preload struct {
	preloadBinary bool
	sent          []*os.File // by program
}

// preloadFlags declares the flag of preload.
func (o *options) preloadFlags(set *cli.Set) {
	set.BoolVar(&o.preloadBinary, "preload-binary", false, "")
}

// offer opens p's program and says what it is, so that an agent can ask for it.
// The program is found here as it would be there.
func (j *job) offer(p *ctl.Program) error {
	if !j.preloadBinary {
		return nil
	}
	name := p.Argv[0]
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(p.Wdir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("-preload-binary: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("-preload-binary: %w", err)
	}
	h := sha256.New()
	if p.Size, err = io.Copy(h, f); err != nil {
		return fmt.Errorf("-preload-binary: %w", err)
	}
	p.Sum = fmt.Sprintf("%x", h.Sum(nil))
	j.sent = append(j.sent, f)
	return nil
}

// give sends the piece of a program that an agent wants. Where there is none the
// piece is empty.
func (j *job) give(l *link, m *ctl.Want) {
	data := make([]byte, ctl.MaxPiece)
	n := 0
	if m.Program < len(j.sent) {
		n, _ = j.sent[m.Program].ReadAt(data, m.Offset) // what cannot be read is missed there
	}
	l.send(&ctl.Piece{Data: data[:n]})
}
