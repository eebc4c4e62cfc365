package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/version"
)

// What gompicc compiles runs on gompi, through memory and over TCP.
func TestProgramsOfTheStandardInterface(t *testing.T) {
	needC(t)
	program := compiled(t, "mpicc.abi", "abi.c")
	for _, transport := range []string{"", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Setenv("GOMPI_TRANSPORT", transport)
			runProgram(t, program, "abi.c")
		})
	}
}

// The example of docs/c.md.
func TestTheExampleInC(t *testing.T) {
	needC(t)
	out, err := run(t, 4, compiled(t, "mpicc.abi", "../../../examples/c/ring.c"))
	if err != nil || !strings.Contains(out, "around 4 ranks: 6, want 6\n") {
		t.Errorf("%v: want the sum of the ranks, 6:\n%s", err, out)
	}
}

// A peer is another MPI that has the standard interface, as make peers installs it.
type peer struct {
	compiler string // "" if it has none for the interface
	header   string
	args     []string // of abi.c
}

var peersOfTheInterface = map[string]peer{
	"mpich": {"bin/mpicc_abi", "include/mpi_abi.h", nil},
	"impi":  {"", "include/mpi_abi.h", []string{"draft"}},
}

// What others compile for the interface runs on gompi, and what gompicc compiles runs on theirs.
func TestTheStandardInterfaceAmongLibraries(t *testing.T) {
	needC(t)
	for name, p := range peersOfTheInterface {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.Abs("../../bin/peers/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "lib/libmpi_abi.so.1")); err != nil {
				t.Skipf("needs bin/peers/%s with libmpi_abi.so.1: make peers", name)
			}
			t.Run("theirs on gompi", func(t *testing.T) { runRanks(t, 3, p.compile(t, dir), "abi.c", p.args...) })
			t.Run("ours on theirs", func(t *testing.T) { p.run(t, dir, compiled(t, "mpicc.abi", "abi.c")) })
		})
	}
}

// compile compiles abi.c with the header and the library of the peer in dir.
func (p peer) compile(t *testing.T, dir string) string {
	t.Helper()
	work := t.TempDir()
	program := filepath.Join(work, "abi")
	command := []string{filepath.Join(dir, p.compiler), "-w", "-o", program, "testdata/abi.c"}
	if p.compiler == "" {
		if err := os.Symlink(filepath.Join(dir, p.header), filepath.Join(work, "mpi.h")); err != nil {
			t.Fatal(err)
		}
		command = []string{"gcc", "-w", "-I", work, "-o", program, "testdata/abi.c", "-L" + filepath.Join(dir, "lib"),
			"-l:libmpi_abi.so.1", "-Wl,--allow-shlib-undefined"}
	}
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return program
}

// run runs a program on the library of the peer in dir, by its launcher.
func (p peer) run(t *testing.T, dir, program string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin/mpiexec"),
		append([]string{"-n", "3", program}, p.args...)...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"), "I_MPI_ROOT="+dir,
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "abi: no errors\n") {
		t.Errorf("%v\n%s\nwant that it finds no errors", err, out)
	}
}

// gompicc says what it does, as other wrappers do, and compiles without linking.
func TestGompicc(t *testing.T) {
	needC(t)
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	gompicc := filepath.Join(filepath.Dir(gompirun), "gompicc")
	abi, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(gompirun), "lib/abi"))
	if err != nil {
		t.Fatal(err)
	}
	compile := "-I" + abi + "/include"
	link := "-L" + abi + " -Wl,--enable-new-dtags -Wl,-rpath," + abi + " -lmpi_abi"
	for args, want := range map[string]string{
		"gompicc -showme:compile":               compile,
		"gompicc --showme:link":                 link,
		"gompicc -show -O2 a.c":                 "cc -O2 a.c " + compile + " " + link,
		"gompicc -cc=clang --showme -c -g a.c":  "clang -c -g a.c " + compile,
		"gompicc -showme:command":               "cc",
		"gompicc -showme:incdirs":               abi + "/include",
		"gompicc -showme:libdirs -c":            abi,
		"gompicc --showme:libs":                 "mpi_abi",
		"gompicc -showme:version":               "gompicc: gompi " + version.Number + ", commit v-test (Language: C)",
		"gompicc -compile_info":                 "cc " + compile,
		"gompicc -compile-info":                 "cc " + compile,
		"gompicc -link_info":                    "cc " + compile + " " + link,
		"gompicxx -show a.cc":                   "c++ a.cc " + compile + " " + link,
		"gompicxx -cxx=clang++ -showme:command": "clang++",
		"gompicxx -showme:version": "gompicxx: gompi " + version.Number +
			", commit v-test (Language: C++)",
	} {
		command := strings.Fields(args)
		out, err := exec.Command(filepath.Join(filepath.Dir(gompirun), command[0]), command[1:]...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s prints %q, %v; want %q", args, got, err, want)
		}
	}
	for args, want := range map[string]string{"-help": "\n  -link_info ", "-showme:help": "usage: gompicc ",
		"-showme:path": "gompicc: -showme:path: want command,"} {
		if out, _ := exec.Command(gompicc, args).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("gompicc %s prints %q; want %q", args, out, want)
		}
	}
	object := filepath.Join(t.TempDir(), "a b.o")
	if out, err := exec.Command(gompicc, "-c", "testdata/abi.c", "-o", object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := filepath.Join(filepath.Dir(object), "a b")
	if out, err := exec.Command(gompicc, "-o", program, object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != "abi: no errors\n" {
		t.Errorf("alone, without gompirun: %v\n%s", err, out) // it finds the library by its RUNPATH
	}
	if out, err := exec.Command(gompicc, "testdata/missing.c").CombinedOutput(); err == nil {
		t.Errorf("a file that is missing is compiled: %s", out)
	}
}
