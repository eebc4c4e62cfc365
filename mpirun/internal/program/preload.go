// Package program has the programs that ranks run, ready on each host.
//
//	preload, intake, cache  brings programs and files to hosts that do not have them: the launcher
//	                        has an Offer of them and gives the agents the pieces that they ask
//	                        for; an agent has an intake, which knows what is missing
//	program, openmpi        finds programs as execvp would, and reports what is wrong with one
//	                        that cannot be run
//	prepare                 both, and the surroundings of the ranks
//	record                  what a program has recorded of its failure
package program

import (
	"crypto/sha256"
	"debug/elf"
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

// An Offer is what is to be preloaded, opened: agents can ask for it.
type Offer struct {
	programs []ctl.Program // what they are, as far as they are sent
	files    []ctl.File
	mpi      []ctl.File // gompi's MPI libraries
	sent     []*os.File // programs, nil for those that are not sent, then files, then libraries
}

// OpenOffer opens the programs and files that are to be sent, and gompi's MPI libraries, which are
// in the folder mpi, unless that is "". It finds out what they are, which takes long where they are
// large. It returns an Offer, to be closed, with any error.
func OpenOffer(what cmdline.Preload, mpi string, programs []cmdline.Program) (*Offer, error) {
	o := &Offer{programs: make([]ctl.Program, len(programs)), sent: make([]*os.File, len(programs))}
	if what.Binary {
		for i, p := range programs {
			if err := o.addProgram(i, p); err != nil {
				return o, fmt.Errorf("-preload-binary: %w", err)
			}
		}
	}
	for name := range strings.SplitSeq(what.Files, ",") {
		if err := o.addFile(name); err != nil {
			return o, fmt.Errorf("-preload-files %q: %w", what.Files, err)
		}
	}
	return o, o.addMPI(mpi)
}

// addProgram finds p's program here as it would be found there.
func (o *Offer) addProgram(i int, p cmdline.Program) error {
	path, err := lookPath(p)
	if err != nil {
		return err
	}
	f, sum, size, err := openSummed(path)
	o.sent[i], o.programs[i].Sum, o.programs[i].Size = f, sum, size
	return err
}

func lookPath(p cmdline.Program) (string, error) {
	name := p.Argv[0]
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(p.Wdir, name)
	}
	return exec.LookPath(name)
}

// addMPI offers what is in dir of gompi's MPI libraries, with their places there as names.
func (o *Offer) addMPI(dir string) error {
	if dir == "" {
		return nil
	}
	for _, lib := range append([]string{filepath.Join(dir, mpiCore)}, librariesIn(filepath.Join(dir, "*", "libmpi*.so*"))...) {
		f, sum, size, err := openSummed(lib)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, lib)
		o.sent = append(o.sent, f)
		o.mpi = append(o.mpi, ctl.File{Name: name, Sum: sum, Size: size, Mode: 0o700})
	}
	return nil
}

// AskForMPI reports whether programs are known to run on gompi's MPI library: all by the user's
// choice, or one because it is linked with Open MPI or with the standard's own interface.
func AskForMPI(choice cmdline.MPILib, programs []cmdline.Program) bool {
	return choice == cmdline.MPIGompi || choice == "" && slices.ContainsFunc(programs, runsOnGompi)
}

func runsOnGompi(p cmdline.Program) bool {
	path, err := lookPath(p)
	if err != nil || !isFile(path) {
		return false
	}
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	libs, _ := f.ImportedLibraries()
	return slices.ContainsFunc(libs, func(lib string) bool { return IsOpenMPI(lib) || IsABI(lib) })
}

func (o *Offer) addFile(name string) error {
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

// Describe adds what is offered to an order to start ranks.
func (o *Offer) Describe(l *ctl.Launch) {
	for i, p := range o.programs {
		l.Programs[i].Sum, l.Programs[i].Size = p.Sum, p.Size
	}
	l.Files, l.MPI = o.files, o.mpi
}

// Close closes what has been opened. A nil offer has nothing.
func (o *Offer) Close() {
	if o == nil {
		return
	}
	for _, f := range o.sent {
		f.Close() // of a nil file: an error, and no more
	}
}

// openSummed opens a regular file and returns its SHA-256 and size. Reading a pipe could block
// forever.
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

// Piece returns the piece that an agent wants; where there is none it is empty.
func (o *Offer) Piece(m *ctl.Want) *ctl.Piece {
	data := make([]byte, ctl.MaxPiece)
	n := 0
	if o != nil && m.Item < len(o.sent) && o.sent[m.Item] != nil {
		n, _ = o.sent[m.Item].ReadAt(data, m.Offset) // what cannot be read is missed there
	}
	return &ctl.Piece{Data: data[:n]}
}
