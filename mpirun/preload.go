package mpirun

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
)

// preload brings programs and files to hosts that do not have them.
type preload struct {
	preloadBinary bool
	preloadFiles  string     // separated by commas
	sent          []*os.File // programs, nil for those that are not sent, then files
}

// preloadFlags declares the flags of preload.
func (o *options) preloadFlags(set *cli.Set) {
	set.BoolVar(&o.preloadBinary, "preload-binary", false, "")
	set.StringVar(&o.preloadFiles, "preload-files", "", "")
}

// offer opens the programs and files that are to be sent and says what they are, so
// that agents can ask for them.
func (j *job) offer(l *ctl.Launch) error {
	j.sent = make([]*os.File, len(l.Programs))
	for i := range l.Programs {
		if j.preloadBinary {
			if err := j.offerProgram(&l.Programs[i], &j.sent[i]); err != nil {
				return fmt.Errorf("-preload-binary: %w", err)
			}
		}
	}
	for name := range strings.SplitSeq(j.preloadFiles, ",") {
		if name == "" {
			continue
		}
		base := filepath.Base(name)
		if slices.ContainsFunc(l.Files, func(f ctl.File) bool { return f.Name == base }) {
			return fmt.Errorf("-preload-files %q: two files are named %q, and all go to the working directory: want names that differ", j.preloadFiles, base)
		}
		f, sum, size, err := openSummed(name)
		if err != nil {
			return fmt.Errorf("-preload-files: %w", err)
		}
		st, err := f.Stat()
		if err != nil {
			return fmt.Errorf("-preload-files: %w", err)
		}
		l.Files = append(l.Files, ctl.File{Name: base, Sum: sum, Size: size, Mode: int(st.Mode().Perm())})
		j.sent = append(j.sent, f)
	}
	return nil
}

// offerProgram finds p's program here as it would be found there.
func (j *job) offerProgram(p *ctl.Program, sent **os.File) error {
	name := p.Argv[0]
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(p.Wdir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	*sent, p.Sum, p.Size, err = openSummed(path)
	return err
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
	size, err = io.Copy(h, f)
	return f, fmt.Sprintf("%x", h.Sum(nil)), size, err
}

// give sends the piece that an agent wants. Where there is none the piece is empty.
func (j *job) give(l *link, m *ctl.Want) {
	data := make([]byte, ctl.MaxPiece)
	n := 0
	if m.Item < len(j.sent) && j.sent[m.Item] != nil {
		n, _ = j.sent[m.Item].ReadAt(data, m.Offset) // what cannot be read is missed there
	}
	l.send(&ctl.Piece{Data: data[:n]})
}
