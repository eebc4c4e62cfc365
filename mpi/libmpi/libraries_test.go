//go:build linux && cgo

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/internal/stress"
)

func TestMPILibrariesOfAProcess(t *testing.T) {
	for maps, want := range map[string][]string{
		"": nil,
		`55d0c0000000-55d0c0001000 r--p 00000000 08:01 1 /usr/bin/prog
7f0000000000-7f0000001000 r--p 00000000 08:01 2 /opt/gompi/lib/openmpi/libmpi.so
7f0000001000-7f0000002000 r-xp 00001000 08:01 3 /opt/gompi/lib/openmpi/libmpi.so.40
7f0000002000-7f0000003000 r-xp 00001000 08:01 4 /opt/gompi/lib/libgompi-mpi.so
7f0000003000-7f0000004000 r-xp 00001000 08:01 5 /usr/lib/libmpi_cxx.so.40.30.1
7f0000004000-7f0000005000 rw-p 00000000 00:00 0 [stack]
`: {"/opt/gompi/lib/openmpi/libmpi.so"},
		`7f0000000000-7f0000001000 r--p 00000000 08:01 2 /opt/gompi/lib/openmpi/libmpi.so.40
7f0000001000-7f0000002000 r--p 00000000 08:01 3 /usr/lib/libmpich.so.12.2.2
7f0000002000-7f0000003000 r-xp 00000000 08:01 3 /usr/lib/libmpich.so.12.2.2
`: {"/opt/gompi/lib/openmpi/libmpi.so.40", "/usr/lib/libmpich.so.12.2.2"},
	} {
		if got := mpiLibraries([]byte(maps)); !slices.Equal(got, want) {
			t.Errorf("%q, want %q in\n%s", got, want, maps)
		}
	}
}

// A face and a core of different builds refuse each other with one line that has both paths.
func TestLibrariesOfDifferentBuilds(t *testing.T) {
	if os.Getenv("CGO_ENABLED") == "0" {
		t.Skip("CGO_ENABLED=0")
	}
	if os.Getenv("MPI_BUILT") == "" {
		stress.Slow(t, "it builds the libraries")
	}
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	program := compiled(t, "mpicc.abi", "abi.c")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	face, core := filepath.Join(dir, "abi/libmpi_abi.so.1"), filepath.Join(dir, "libgompi-mpi.so")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(gompirun), "lib/abi/libmpi_abi.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(face), 0o755), os.WriteFile(face, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{
		"of another number":        "unsigned long gompi_mpi_fill(void *core, unsigned long number) { return core ? number + 1 : 0; }",
		"from before it had these": "void gompi_mpi_core(void *core) { (void)core; }",
	} {
		cc := exec.Command("cc", "-shared", "-fPIC", "-o", core, "-x", "c", "-")
		cc.Stdin = strings.NewReader(source)
		if out, err := cc.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(face))
		out, err := cmd.CombinedOutput()
		want := "gompi: " + face + " and " + core +
			" are of different builds of gompi: install both of one build, or type make libmpi\n"
		if string(out) != want || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("a core %s: %v\n%s\nwant status 1 and\n%s", name, err, out, want)
		}
	}
}
