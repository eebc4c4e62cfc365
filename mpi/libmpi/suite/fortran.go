package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// fortranFlags are the flags of mpifort.mpich for a current gfortran, which otherwise refuses
// calls of one routine with different types, and the flag for allocmemf. Modules of other MPIs
// stay apart.
var fortranFlags = []string{"-O0", "-w", "-fallow-argument-mismatch", "-fallow-invalid-boz", "-fcray-pointer"}

// language returns which Fortran a directory is for, f77, f90 or f08, or "".
func language(dir string) string {
	l, _, _ := strings.Cut(dir, "/")
	if slices.Contains([]string{"f77", "f90", "f08"}, l) {
		return l
	}
	return ""
}

// hasFortran reports whether there is a compiler wrapper for Fortran: none for MPI 5's own
// interface.
func hasFortran(face string) bool {
	_, err := exec.LookPath("mpifort." + face)
	return err == nil
}

// extension returns the extension of sources in a directory whose makefile does not name them.
func extension(dir string) string {
	switch language(dir) {
	case "":
		return ".c"
	case "f77":
		return ".f"
	}
	return ".f90"
}

// find returns the path of a source of a directory: in the directory, made by prepareFortran, or
// in the same directory for an older Fortran, from which MPICH's makefiles copy it.
func (s *suite) find(dir, source string) string {
	_, sub, _ := strings.Cut(dir, "/")
	for _, file := range []string{
		filepath.Join(s.source, dir, source), filepath.Join(s.generated(dir), source),
		filepath.Join(s.source, "f90", sub, source), filepath.Join(s.source, "f77", sub, source),
	} {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return filepath.Join(s.source, dir, source)
}

func (s *suite) generated(dir string) string { return filepath.Join(s.work, "generated", dir) }

// prepareFortran makes the files that MPICH's configure and makefiles would make: headers that
// declare integers of addresses and offsets, and the programs of io, from a template.
func (s *suite) prepareFortran() error {
	headers, err := filepath.Glob(filepath.Join(s.source, "f77/*/*.h.in"))
	if err != nil {
		return err
	}
	kinds := strings.NewReplacer("@F77_MPI_ADDRESS@", "integer*8", "@F77_MPI_OFFSET@", "integer*8")
	for _, h := range headers {
		text, err := os.ReadFile(h)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(h), ".in")
		if err := writeIfOther(filepath.Join(s.work, "include", name), kinds.Replace(string(text))); err != nil {
			return err
		}
	}
	for _, dir := range []string{"f77/io", "f90/io", "f08/io"} {
		if err := s.merge(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// merge makes the programs of a directory by MPICH's testmerge, if they are not there.
func (s *suite) merge(dir string) error {
	target, err := filepath.Abs(s.generated(dir))
	if err != nil {
		return err
	}
	if made, _ := filepath.Glob(filepath.Join(target, "*"+extension(dir))); len(made) > 0 {
		return nil
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"ioharness.defn", "ioharness.tlt"} {
		text, err := os.ReadFile(s.find(dir, name))
		if err != nil {
			return err
		}
		if dir == "f90/io" {
			text = []byte(freeForm(string(text)))
		}
		if err := os.WriteFile(filepath.Join(target, name), text, 0o644); err != nil {
			return err
		}
	}
	maint, err := filepath.Abs(filepath.Join(s.source, "maint"))
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(maint, "testmerge.in"))
	if err != nil {
		return err
	}
	c := exec.Command("perl", "-", "-defn="+filepath.Join(maint, "common.defn"), "ioharness.defn", "ioharness.tlt")
	c.Dir = target
	c.Stdin = bytes.NewReader(bytes.TrimPrefix(script, []byte("#! @PERL@"))) // which perl would start
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("testmerge: %w: %s", err, out)
	}
	return nil
}

// freeForm turns a template for Fortran 77 into one for Fortran 90, as f90/io/Makefile.am does by
// sed.
func freeForm(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		code := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(code, "<TESTDEFN"):
			l = strings.ReplaceAll(l, `f.f"`, `f90.f90"`)
		case strings.HasPrefix(code, "include") && strings.Contains(code, "iooffset"):
			l = "      integer (kind=MPI_OFFSET_KIND) offset"
		case strings.HasPrefix(code, "include") && strings.Contains(code, "mpif"):
			l = "      use mpi"
		case strings.HasPrefix(l, "C"):
			l = "!" + l[1:]
		case strings.HasPrefix(code, "implicit"):
			l = ""
		}
		lines[i] = strings.ReplaceAll(l, "fheader", "f90header")
	}
	return strings.Join(lines, "\n")
}

// compileFortran builds a program that has sources in Fortran, and maybe some in C.
func (s *suite) compileFortran(r run, binary string, files []string) error {
	var all []string
	for _, f := range append(files, filepath.Join(s.source, "util", "mtest_"+language(r.dir)+extension(r.dir))) {
		if strings.HasSuffix(f, ".c") {
			object := binary + "." + filepath.Base(f) + ".o"
			if err := s.cc(r.face, object, []string{f}, "-c"); err != nil {
				return err
			}
			f = object
		}
		all = append(all, f)
	}
	if isNewer(binary, all) {
		return nil
	}
	modules := binary + ".modules"
	if err := os.MkdirAll(modules, 0o755); err != nil {
		return err
	}
	args := slices.Concat(fortranFlags, []string{"-J", modules, "-I" + filepath.Join(s.work, "include"), "-o",
		binary}, all)
	out, err := exec.Command("mpifort."+r.face, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s", firstError(string(out), err))
	}
	return nil
}
