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

// chooseMPI selects gompi's MPI library or p's own, by p's file and the user's choice. dir has
// gompi's libraries. The error says that p's size ranks could not meet. Programs started by a
// script or a library get LD_LIBRARY_PATH.
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
		have.mpich = "" // programs of MPICH keep their own library
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

// checkRanksMeet returns an error if a program of several ranks uses Open MPI's own library, by
// which they do not meet: each would do all the work, as rank 0 of 1. Programs started by a
// script or a library are not checked.
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

// prepend puts folders before the list in a variable of p's environment.
func (p *Program) prepend(name string, folders ...string) {
	if given, _ := launchenv.Value(p.Env, name); given != "" {
		folders = append(folders, given)
	}
	p.Env = launchenv.Merge(p.Env, []string{name + "=" + strings.Join(folders, ":")})
}

// preload makes p load a folder's libraries first, under all their names. The user's own preloads
// stay in front, because tools that count MPI calls have to precede MPI.
func (p *Program) preload(folder string) {
	libs := librariesIn(filepath.Join(folder, "libmpi*.so*"))
	slices.SortStableFunc(libs, func(a, b string) int { return cmp.Compare(isMPI(b), isMPI(a)) })
	if given, _ := launchenv.Value(p.Env, "LD_PRELOAD"); given != "" {
		libs = append([]string{given}, libs...)
	}
	p.Env = launchenv.Merge(p.Env, []string{"LD_PRELOAD=" + strings.Join(libs, ":")})
}

// isMPI returns 1 for an MPI library, 0 for its other names.
func isMPI(lib string) int {
	if base := filepath.Base(lib); base == openMPILib || base == mpichLib || base == abiLib {
		return 1
	}
	return 0
}

// An mpiWanted is the MPI library that a program loads, according to its file.
type mpiWanted struct {
	openMPI, mpich, abi bool
	lib                 string // name of the library
	served              bool   // gompi has a library of that name
	linked              bool   // the file itself names it
	held                bool   // found before LD_LIBRARY_PATH is searched
}

// mpiWanted reads the ELF header of p's file, or of its interpreter. Without a linked MPI
// library, a library in the first search folders counts, as for Python in a conda environment.
func (p *Program) mpiWanted() (wants mpiWanted) {
	file, script := p.interpreter()
	if !isFile(file) {
		return wants // opening other files may block
	}
	var first []string // folders
	if f, err := elf.Open(file); err == nil {
		libs, _ := f.ImportedLibraries() // the kernel will report read errors
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

// note notes a library of a program. The first MPI library counts.
func (w *mpiWanted) note(lib string) {
	openMPI, mpich, abi := IsOpenMPI(lib), IsMPICH(lib), IsABI(lib)
	if w.lib != "" || !openMPI && !mpich && !abi {
		return
	}
	name, version := nameAndVersion(lib)
	w.lib, w.openMPI, w.mpich, w.abi = lib, openMPI, mpich, abi
	w.served = mpich || abi || version == openMPIVersion && name != "liboshmem"
}

// searchedFirst returns the folders in which the loader looks for a program's libraries before
// LD_LIBRARY_PATH.
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
