package program

import (
	"cmp"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gompi/mpirun/internal/cmdline"
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
	if choice == cmdline.MPIOwn || choice != cmdline.MPIGompi && wants.kind == mpich ||
		wants.kind == abi && have[abi] == "" || wants.kind == openMPI && (!wants.served || have[openMPI] == "") {
		return wants.checkRanksMeet(p, have, size)
	}
	if choice != cmdline.MPIGompi {
		have[mpich] = "" // programs of MPICH keep their own library
	}
	folders := have[:]
	if wants.kind >= 0 {
		first := have[wants.kind]
		folders = slices.Insert(slices.Delete(folders, wants.kind, wants.kind+1), 0, first)
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
	if size < 2 || w.kind != openMPI || w.held && !w.linked {
		return nil
	}
	want := "no -mpi-lib own"
	switch {
	case !w.served:
		want = "a program of Open MPI 3 to 5 (" + kinds[openMPI].lib + ")"
	case have[openMPI] == "":
		want = "gompi's library beside this gompirun (make libmpi)"
	}
	return fmt.Errorf("%q is linked with Open MPI (%s), whose ranks meet over PMIx, which gompirun does not speak: each of %d would be rank 0 of 1; want %s, or Open MPI's mpirun, as in: mpirun -np %d %s",
		p.Argv[0], w.lib, size, want, size, strings.Join(p.Argv, " "))
}

// prepend puts folders before the list in a variable of p's environment.
func (p *Program) prepend(name string, folders ...string) {
	if given, _ := EnvValue(p.Env, name); given != "" {
		folders = append(folders, given)
	}
	p.Env = MergeEnv(p.Env, []string{name + "=" + strings.Join(folders, ":")})
}

// preload makes p load a folder's libraries first, under all their names. The user's own preloads
// stay in front, because tools that count MPI calls have to precede MPI.
func (p *Program) preload(folder string) {
	libs := librariesIn(filepath.Join(folder, "libmpi*.so*"))
	slices.SortStableFunc(libs, func(a, b string) int { return cmp.Compare(isMPI(b), isMPI(a)) })
	if given, _ := EnvValue(p.Env, "LD_PRELOAD"); given != "" {
		libs = append([]string{given}, libs...)
	}
	p.Env = MergeEnv(p.Env, []string{"LD_PRELOAD=" + strings.Join(libs, ":")})
}

// isMPI returns 1 for an MPI library, 0 for its other names.
func isMPI(lib string) int {
	for _, kind := range kinds {
		if kind.lib == filepath.Base(lib) {
			return 1
		}
	}
	return 0
}

// An mpiWanted is the MPI library that a program loads, according to its file.
type mpiWanted struct {
	kind   int    // -1 for none
	lib    string // name of the library
	served bool   // gompi has a library of that name
	linked bool   // the file itself names it
	held   bool   // found before LD_LIBRARY_PATH is searched
}

// mpiWanted reads the ELF header of p's file, or of its interpreter. Without a linked MPI
// library, a library in the first search folders counts, as for Python in a conda environment.
func (p *Program) mpiWanted() (wants mpiWanted) {
	wants.kind = -1
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
	if conda, _ := EnvValue(p.Env, "CONDA_PREFIX"); script && conda != "" {
		first = append(first, filepath.Join(conda, "lib"))
	}
	for _, dir := range first {
		for _, kind := range kinds {
			if isFile(filepath.Join(dir, kind.lib)) {
				wants.note(kind.lib)
				wants.held = true
			}
		}
	}
	return wants
}

// note notes a library of a program. The first MPI library counts.
func (w *mpiWanted) note(lib string) {
	kind := slices.IndexFunc(isKind[:], func(is func(string) bool) bool { return is(lib) })
	if w.kind >= 0 || kind < 0 {
		return
	}
	name, version := nameAndVersion(lib)
	w.kind, w.lib = kind, lib
	w.served = kind != openMPI || version == openMPIVersion && name != "liboshmem"
}

var isKind = [...]func(lib string) bool{openMPI: IsOpenMPI, mpich: IsMPICH, abi: IsABI}

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
			path, _ := EnvValue(p.Env, "PATH")
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
