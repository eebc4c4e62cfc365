// Package program has the programs of ranks ready on each host.
//
//	preload, intake, cache  copies programs and files to hosts that lack them: the launcher opens
//	                        an Offer and sends the pieces that agents request; an agent's intake
//	                        finds out which files are missing
//	program, mpi, mpilib    finds programs as execvp would, and explains why a program cannot be run
//	env, envhost, envrank   the environment of a rank, by pure functions
//	prepare                 all of these, on one host
//	record                  a program's own record of its failure
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

// An Offer is the opened files to be preloaded, for requests of agents.
type Offer struct {
	programs []ctl.Program // checksums and sizes of the offered programs
	files    []ctl.File
	mpi      []ctl.File // gompi's MPI libraries
	sent     []*os.File // programs, nil if not offered, then files, then libraries
}

// OpenOffer opens the programs and files to be preloaded, and gompi's MPI libraries in the folder
// mpi, unless mpi is "". Computing checksums takes long for large files. The Offer has to be
// closed, even after an error.
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

// addProgram finds p's program on this host, as an agent would on its own.
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
	if p.Wdir != "" && filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(p.Wdir, name)
	}
	return exec.LookPath(name)
}

// addMPI offers gompi's MPI libraries in dir, named by their paths below dir.
func (o *Offer) addMPI(dir string) error {
	if dir == "" {
		return nil
	}
	for _, lib := range append([]string{filepath.Join(dir, mpiCore)},
		librariesIn(filepath.Join(dir, "*", "libmpi*.so*"))...) {
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

// AskForMPI reports whether programs are known to use gompi's MPI library: all by the user's
// choice, or one because it is linked with Open MPI or the standard's binary interface.
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

// Describe adds the offer to an order to start ranks.
func (o *Offer) Describe(l *ctl.Launch) {
	for i, p := range o.programs {
		l.Programs[i].Sum, l.Programs[i].Size = p.Sum, p.Size
	}
	l.Files, l.MPI = o.files, o.mpi
}

// Close closes the files. A nil offer has none.
func (o *Offer) Close() {
	if o == nil {
		return
	}
	for _, f := range o.sent {
		f.Close() // nil files return an error
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

// Piece returns the piece that an agent requests, empty if there is none.
func (o *Offer) Piece(m *ctl.Want) *ctl.Piece {
	data := make([]byte, ctl.MaxPiece)
	n := 0
	if o != nil && m.Item < len(o.sent) && o.sent[m.Item] != nil {
		n, _ = o.sent[m.Item].ReadAt(data, m.Offset) // the agent notices missing bytes
	}
	return &ctl.Piece{Data: data[:n]}
}
