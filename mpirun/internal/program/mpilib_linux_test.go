package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gompi/mpirun/internal/cmdline"
)

// link links a file of a folder by gcc, and returns its path.
func link(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", append([]string{"-o", path, "-x", "c", "-", "-x", "none", "-Wl,--no-as-needed"},
		args...)...)
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

// library links a library of a name.
func library(t *testing.T, dir, name string) string {
	t.Helper()
	return link(t, dir, name, "-shared", "-Wl,-soname,"+filepath.Base(name))
}

// A program's file decides which of gompi's MPI libraries it finds, and how.
func TestTheMPILibraryIsChosenByTheProgramsFile(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	own := map[string]string{}
	for _, name := range []string{"libmpi.so.40", "libmpi.so.12", "libmpi_abi.so.1", "libmpi.so.20",
		"liboshmem.so.40"} {
		own[name] = library(t, dir, "own-"+name+"/"+name)
	}
	for _, name := range []string{"openmpi/libmpi.so.40", "openmpi/libmpi.so", "mpich/libmpi.so.12",
		"mpich/libmpich.so.12", "abi/libmpi_abi.so.1"} {
		library(t, dir, filepath.Join("gompi", name))
	}
	openMPI, mpich, abi := dir+"/gompi/openmpi", dir+"/gompi/mpich", dir+"/gompi/abi"
	if err := os.Symlink("libmpi_abi.so.1", abi+"/libmpi_abi.so"); err != nil {
		t.Fatal(err)
	}
	usual, all := openMPI+":"+abi, openMPI+":"+mpich+":"+abi
	rpath := func(name string) string { return "-Wl,--disable-new-dtags,-rpath," + filepath.Dir(own[name]) }
	link(t, dir, "conda/bin/python", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib")
	library(t, dir, "conda/lib/libmpi.so.40")
	script := func(name, line string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(line+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const gompi, its = cmdline.MPIGompi, cmdline.MPIOwn
	both := openMPI + "/libmpi.so.40:" + openMPI + "/libmpi.so"
	bothMPICH := mpich + "/libmpi.so.12:" + mpich + "/libmpich.so.12"
	openMPIProgram := link(t, dir, "openmpi", own["libmpi.so.40"])
	mpichProgram := link(t, dir, "mpich", own["libmpi.so.12"])
	for _, tt := range []struct {
		what     string
		path     string
		choice   cmdline.MPILib
		vars     string
		library  string // LD_LIBRARY_PATH
		preload  string
		refusing string
	}{
		{"Open MPI", openMPIProgram, "", "", usual, "", ""},
		{"the user's folders", openMPIProgram, "", "LD_LIBRARY_PATH=/user:/more", usual + ":/user:/more", "", ""},
		{"Open MPI on gompi", openMPIProgram, gompi, "", all, "", ""},
		{"Open MPI on its own", openMPIProgram, its, "", "", "", "want no -mpi-lib own, or"},
		{"Open MPI, RUNPATH", link(t, dir, "runpath", own["libmpi.so.40"],
			"-Wl,--enable-new-dtags,-rpath,"+filepath.Dir(own["libmpi.so.40"])), "", "", usual, "", ""},
		{"Open MPI, RPATH", link(t, dir, "rpath", own["libmpi.so.40"], rpath("libmpi.so.40")), "", "", usual, both, ""},
		{"a tool is preloaded", filepath.Join(dir, "rpath"), "", "LD_PRELOAD=/tool.so", usual, "/tool.so:" + both, ""},
		{"Open MPI 2", link(t, dir, "old", own["libmpi.so.20"]), "", "", "", "",
			"want a program of Open MPI 3 to 5 (libmpi.so.40), or"},
		{"OpenSHMEM", link(t, dir, "shmem", own["liboshmem.so.40"], own["libmpi.so.40"]), "", "", "", "",
			"is linked with Open MPI (liboshmem.so.40)"},
		{"MPICH", mpichProgram, "", "LD_LIBRARY_PATH=/user", "/user", "", ""},
		{"MPICH on gompi", mpichProgram, gompi, "", mpich + ":" + usual, "", ""},
		{"MPICH on gompi, RPATH", link(t, dir, "mpich-rpath", own["libmpi.so.12"], rpath("libmpi.so.12")), gompi, "",
			mpich + ":" + usual, bothMPICH, ""},
		{"MPICH on its own", mpichProgram, its, "", "", "", ""},
		{"another program", link(t, dir, "other"), "", "", usual, "", ""},
		{"another on gompi", filepath.Join(dir, "other"), gompi, "", all, "", ""},
		{"another on its own", filepath.Join(dir, "other"), its, "", "", "", ""},
		{"Python of conda", dir + "/conda/bin/python", "", "", usual, both, ""},
		{"its script", script("path", "#!"+dir+"/conda/bin/python -u"), "", "", usual, both, ""},
		{"its script, by env", script("env", "#!/usr/bin/env python"), "", "PATH=" + dir + "/conda/bin",
			usual, both, ""},
		{"its script, on its own", filepath.Join(dir, "env"), its, "PATH=" + dir + "/conda/bin", "", "", ""},
		{"a shell script in conda", script("shell", "#!/bin/sh"), "", "CONDA_PREFIX=" + dir + "/conda",
			usual, both, ""},
		{"a program beside conda", filepath.Join(dir, "other"), "", "CONDA_PREFIX=" + dir + "/conda", usual, "", ""},
		{"MPI 5", link(t, dir, "abi", own["libmpi_abi.so.1"]), "", "", abi + ":" + openMPI, "", ""},
		{"MPI 5 on gompi", filepath.Join(dir, "abi"), gompi, "", abi + ":" + openMPI + ":" + mpich, "", ""},
		{"MPI 5 on its own", filepath.Join(dir, "abi"), its, "", "", "", ""},
		{"MPI 5, RPATH", link(t, dir, "abi-rpath", own["libmpi_abi.so.1"], rpath("libmpi_abi.so.1")), "", "",
			abi + ":" + openMPI, abi + "/libmpi_abi.so.1", ""},
	} {
		p := &Program{Path: tt.path, Argv: []string{"prog"}}
		if tt.vars != "" {
			p.Env = []string{tt.vars}
		}
		err := p.chooseMPI(tt.choice, filepath.Join(dir, "gompi"), 2)
		if (err != nil) != (tt.refusing != "") || err != nil && !strings.Contains(err.Error(), tt.refusing) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.refusing)
		}
		found, _ := EnvValue(p.Env, "LD_LIBRARY_PATH")
		preloaded, _ := EnvValue(p.Env, "LD_PRELOAD")
		if found != tt.library || preloaded != tt.preload {
			t.Errorf("%s: LD_LIBRARY_PATH %q and LD_PRELOAD %q, want %q and %q", tt.what, found, preloaded,
				tt.library, tt.preload)
		}
	}
}

// Without libraries of gompi nothing changes, and requests for them are refused.
func TestProgramsThatWantMissingMPILibrariesAreRefused(t *testing.T) {
	p := &Program{Path: "/bin/sh", Argv: []string{"sh"}, Env: []string{"A=b"}}
	if err := p.chooseMPI("", "", 2); err != nil || len(p.Env) != 1 {
		t.Errorf("%v, %q; want no error, and the environment that was given", err, p.Env)
	}
	if err := p.chooseMPI(cmdline.MPIGompi, "", 2); err == nil || !strings.Contains(err.Error(), "-mpi-lib gompi: ") {
		t.Errorf("%v, want that -mpi-lib gompi is refused", err)
	}
}
