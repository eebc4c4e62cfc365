package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gompi/internal/stress"
)

const project = `cmake_minimum_required(VERSION 3.10)
project(rings C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
add_executable(c ring.c)
target_link_libraries(c MPI::MPI_C)
add_executable(cc ring.cc)
target_link_libraries(cc MPI::MPI_CXX)
enable_testing()
foreach(program c cc)
  add_test(NAME ${program} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 3 ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${program}>)
endforeach()
`

// Builds find an installation whose lib/gompi/bin stands first in PATH: by name, and by CMake's FindMPI
// for C, C++ and mpiexec. pkg-config finds it wherever its prefix is.
func TestBuildsFindGompiByTheNamesOfOtherMPIs(t *testing.T) {
	needC(t)
	stress.Long(t, "it collects licences, for seconds")
	to, dir := t.TempDir(), t.TempDir()
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	sh(t, "../..", "make -s install BIN="+filepath.Dir(gompirun)+" DESTDIR="+to+" PREFIX=/opt/gompi")
	prefix := filepath.Join(to, "opt/gompi")
	t.Setenv("PATH", filepath.Join(prefix, "lib/gompi/bin")+":"+os.Getenv("PATH"))
	t.Setenv("PKG_CONFIG_PATH", filepath.Join(prefix, "lib/pkgconfig"))
	if err := os.WriteFile(filepath.Join(dir, "CMakeLists.txt"), []byte(project), 0o644); err != nil {
		t.Fatal(err)
	}
	sh(t, "../../examples/c", "cp ring.c "+dir+" && cp ring.c "+dir+"/ring.cc")
	for _, c := range []struct{ name, needs, script string }{
		{"wrappers", "c++", "mpicc -o one ring.c && mpirun -np 3 -oversubscribe ./one && " +
			"mpicxx -o two ring.cc && mpic++ -o two ring.cc && mpiexec -n 3 -oversubscribe ./two"},
		{"pkg-config", "pkg-config", "cc -c $(pkg-config --cflags gompi-mpi) ring.c && " +
			"cc -o three ring.o $(pkg-config --libs gompi-mpi) && mpirun -np 3 -oversubscribe ./three && " +
			"mpiexec -np 3 -oversubscribe ./three"},
		{"cmake", "cmake", "cmake -S . -B built -DMPIEXEC_PREFLAGS=-oversubscribe && cmake --build built && " +
			"cd built && ctest -V"},
		{"cmake without a link, as in wheels", "cmake", "rm " + prefix + "/lib/gompi/abi/libmpi_abi.so && " +
			"cmake -S . -B again -DMPIEXEC_PREFLAGS=-oversubscribe && cmake --build again && cd again && ctest -V"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("needs %s", c.needs)
			}
			out := sh(t, dir, c.script)
			if n := strings.Count(out, "around 3 ranks: 3, want 3\n"); n != 2 {
				t.Errorf("%d programs say around 3 ranks: 3, want 2:\n%s", n, out)
			}
			if c.needs == "cmake" && !regexp.MustCompile("Found MPI_C: "+prefix+"/.*\n.*Found MPI_CXX: "+prefix).MatchString(out) {
				t.Errorf("FindMPI finds no C and C++ in %s:\n%s", prefix, out)
			}
		})
	}
}

// The lines of docs/mpi.md on Fortran compile the example by two other MPIs, and run it on gompi.
func TestTheLinesOnFortran(t *testing.T) {
	needC(t)
	for _, tool := range []string{"gfortran", "mpifort.openmpi", "mpifort.mpich"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/mpi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Fortran\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := strings.Join(regexp.MustCompile(`(?m)^    .*$`).FindAllString(section, -1), "\n")
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(gompirun)+":"+os.Getenv("PATH"))
	out := sh(t, dir, lines)
	if !regexp.MustCompile(`(?s)around 4 ranks: 6, want 6, on gompi [^\n]* as Open MPI\n.*` +
		`around 4 ranks: 6, want 6, on gompi [^\n]* as MPICH\n`).MatchString(out) {
		t.Errorf("these lines of the page:\n%s\nprint, instead of results on gompi, as Open MPI and as MPICH:\n%s", lines, out)
	}
}

// sh runs a script in a folder, and returns its output.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testLimit) // it compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
