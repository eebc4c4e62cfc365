package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// At the time limit a program in C is shown where it stands, in MPI and elsewhere, and nothing of
// gompi's, also where there is no gdb.
func TestStacksOfAProgramInCAreItsOwn(t *testing.T) {
	t.Parallel() // it waits
	prog, _ := countsOfMPI(t)
	gompirun, _ := withMPI(t)
	all := []string{"rank 0 stands in\n  | thread ", "rank 1 stands in\n  | thread ", "PMPI_Barrier() in ", "pause() ",
		"rounds() at ", "counted.c:", "main() at "}
	cases := map[string][]string{"/none": append(all, "  | install gdb to see more")}
	if _, err := exec.LookPath("gdb"); err == nil {
		cases[os.Getenv("PATH")] = all
	}
	for path, wants := range cases {
		status, _, errs := runCommand(t, gompirun, "-np", "2", "-timeout", "5", "-get-stack-traces", "-x", "PATH="+path,
			prog, "hang", "2")
		for _, want := range wants {
			if !strings.Contains(errs, want) {
				t.Errorf("PATH=%s: %q is not in\n%s", path, want, errs)
			}
		}
		if status != 124 || strings.Contains(errs, "goroutine ") || strings.Contains(errs, "debugger") ||
			strings.Contains(errs, "libgompi-mpi.so") {
			t.Errorf("PATH=%s: status %d, want 124, and nothing of gompi's own:\n%s", path, status, errs)
		}
	}
}

// A program in Python is shown where it is in Python, in a call of MPI and elsewhere.
func TestStacksOfAProgramInPythonAreItsOwn(t *testing.T) {
	t.Parallel() // it waits
	gompirun, _ := withMPI(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	script := filepath.Join(t.TempDir(), "hang.py")
	program := fmt.Sprintf(`import ctypes, os
mpi = ctypes.CDLL(%q)
mpi.MPI_Init(None, None)

def waits():
    mpi.MPI_Barrier(ctypes.c_void_p(0x101))

def computes():
    while True:
        pass

waits() if os.environ["GOMPI_RANK"] == "0" else computes()
`, filepath.Join(filepath.Dir(gompirun), "lib/abi/libmpi_abi.so.1"))
	if err := os.WriteFile(script, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	status, _, errs := runCommand(t, gompirun, "-np", "2", "-timeout", "5", "-get-stack-traces", "python3", script)
	for _, want := range []string{"hang.py\", line 6 in waits", "hang.py\", line 12 in <module>",
		"hang.py\", line 9 in computes"} {
		if !strings.Contains(errs, want) && !strings.Contains(errs, strings.Replace(want, "line 9", "line 10", 1)) {
			t.Errorf("%q is not in\n%s", want, errs)
		}
	}
	if status != 124 || strings.Contains(errs, "goroutine ") || strings.Contains(errs, "<string>") {
		t.Errorf("status %d, want 124, and nothing of gompi's own:\n%s", status, errs)
	}
}
