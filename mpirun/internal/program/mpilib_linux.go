package program

import (
	"cmp"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/launchenv"
)

// chooseMPI has p run on gompi's MPI library or on its own, by what its file says and by the user's
// choice. dir is where gompi's are. It returns an error if its ranks, of which there are size,
// could not meet. What a script or a library starts is found by LD_LIBRARY_PATH.
func (p *Program) chooseMPI(choice cmdline.MPILib, dir string, size int) error {
	wants := p.mpiWanted()
	have := findMPI(dir)
	if choice == cmdline.MPIGompi && have == (mpiFolders{}) {
		return fmt.Errorf("-mpi-lib gompi: gompi's MPI library is not beside this gompirun: build it, with make libmpi")
	}
	if choice == cmdline.MPIOwn || choice != cmdline.MPIGompi && wants.mpich || wants.abi && have.abi == "" ||
		wants.openMPI && (!wants.served || have.openMPI == "") {
		return wants.checkRanksMeet(p, have, size)
	}
	if choice != cmdline.MPIGompi {
		have.mpich = "" // programs of MPICH have their own
	}
	folders := []string{have.openMPI, have.mpich, have.abi}
	switch {
	case wants.mpich:
		folders = []string{have.mpich, have.openMPI, have.abi}
	case wants.abi:
		folders = []string{have.abi, have.openMPI, have.mpich}
	}
	folders = slices.DeleteFunc(folders, func(dir string) bool { return dir == "" })
	if len(folders) == 0 {
		return nil
	}
	p.prepend("LD_LIBRARY_PATH", folders...)
	if wants.held {
		p.preload(folders[0])
	}
	return nil
}

// checkRanksMeet returns an error if a program asks for Open MPI's library, over which size
// processes do not meet: each would do all the work, as rank 0 of 1. What a script or a library
// starts it cannot see.
func (w *mpiWanted) checkRanksMeet(p *Program, have mpiFolders, size int) error {
	if size < 2 || !w.openMPI || w.held && !w.linked {
		return nil
	}
	want := "no -mpi-lib own"
	switch {
	case !w.served:
		want = "a program of Open MPI 3 to 5 (" + openMPILib + ")"
	case have.openMPI == "":
		want = "gompi's library beside this gompirun (make libmpi)"
	}
	return fmt.Errorf("%q is linked with Open MPI (%s), whose ranks meet over PMIx, which gompirun does not speak: each of %d would be rank 0 of 1; want %s, or Open MPI's mpirun, as in: mpirun -np %d %s",
		p.Argv[0], w.lib, size, want, size, strings.Join(p.Argv, " "))
}

// prepend puts folders before those of a list that may be in p's environment.
func (p *Program) prepend(name string, folders ...string) {
	if given, _ := launchenv.Value(p.Env, name); given != "" {
		folders = append(folders, given)
	}
	p.Env = launchenv.Merge(p.Env, []string{name + "=" + strings.Join(folders, ":")})
}

// preload has the libraries of a folder loaded before what p asks for, by all the names that they
// have, but after what the user preloads: tools that count MPI's calls stand before MPI.
func (p *Program) preload(folder string) {
	libs := librariesIn(filepath.Join(folder, "libmpi*.so*"))
	slices.SortStableFunc(libs, func(a, b string) int { return cmp.Compare(isMPI(b), isMPI(a)) })
	if given, _ := launchenv.Value(p.Env, "LD_PRELOAD"); given != "" {
		libs = append([]string{given}, libs...)
	}
	p.Env = launchenv.Merge(p.Env, []string{"LD_PRELOAD=" + strings.Join(libs, ":")})
}

// isMPI returns 1 for the library itself, 0 for those that are other names for it.
func isMPI(lib string) int {
	if base := filepath.Base(lib); base == openMPILib || base == mpichLib || base == abiLib {
		return 1
	}
	return 0
}

// An mpiWanted is the MPI library that a program asks for, as far as its file says.
type mpiWanted struct {
	openMPI, mpich, abi bool
	lib                 string // by which that is known
	served              bool   // gompi's has that name
	linked              bool   // the file itself asks
	held                bool   // it is found before LD_LIBRARY_PATH counts
}

// mpiWanted reads the head of p's file, or of the interpreter that runs it. Where it is linked with
// no MPI library, one that lies where it looks first counts: Python of a conda environment.
func (p *Program) mpiWanted() (wants mpiWanted) {
	file, script := p.interpreter()
	if !isFile(file) {
		return wants // to open another kind may wait
	}
	var first []string // folders
	if f, err := elf.Open(file); err == nil {
		libs, _ := f.ImportedLibraries() // what cannot be read the kernel will report
		first = searchedFirst(f, file)
		f.Close()
		for _, lib := range libs {
			wants.note(lib)
		}
		wants.linked = wants.lib != ""
	}
	if conda, _ := launchenv.Value(p.Env, "CONDA_PREFIX"); script && conda != "" {
		first = append(first, filepath.Join(conda, "lib"))
	}
	for _, dir := range first {
		for _, lib := range []string{openMPILib, mpichLib, abiLib} {
			if !isFile(filepath.Join(dir, lib)) {
				continue
			}
			if wants.lib == "" {
				wants.note(lib)
			}
			wants.held = true
		}
	}
	return wants
}

// note notes that a program asks for a library. Of several the first of MPI counts.
func (w *mpiWanted) note(lib string) {
	openMPI, mpich, abi := IsOpenMPI(lib), IsMPICH(lib), IsABI(lib)
	if w.lib != "" || !openMPI && !mpich && !abi {
		return
	}
	name, version := nameAndVersion(lib)
	w.lib, w.openMPI, w.mpich, w.abi = lib, openMPI, mpich, abi
	w.served = mpich || abi || version == openMPIVersion && name != "liboshmem"
}

// searchedFirst returns the folders in which a program and its libraries are searched before those
// of LD_LIBRARY_PATH.
func searchedFirst(f *elf.File, file string) (folders []string) {
	if after, _ := f.DynString(elf.DT_RUNPATH); len(after) > 0 {
		return nil
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	origin := strings.NewReplacer("$ORIGIN", filepath.Dir(file), "${ORIGIN}", filepath.Dir(file))
	paths, _ := f.DynString(elf.DT_RPATH)
	for _, path := range paths {
		folders = append(folders, filepath.SplitList(origin.Replace(path))...)
	}
	return folders
}

// interpreter returns the file that the kernel runs for p, and whether p is a script.
func (p *Program) interpreter() (file string, script bool) {
	file = p.file()
	for range scriptDepth {
		line, is := strings.CutPrefix(head(file), "#!")
		words := strings.Fields(line)
		if !is || len(words) == 0 {
			break
		}
		script = true
		if file = words[0]; filepath.Base(file) == "env" {
			words = slices.DeleteFunc(words[1:], func(word string) bool { return strings.ContainsAny(word, "-=") })
			path, _ := launchenv.Value(p.Env, "PATH")
			if len(words) > 0 {
				file, _ = Find(words[0], p.Dir, path)
			}
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(p.Dir, file)
		}
	}
	return file, script
}
