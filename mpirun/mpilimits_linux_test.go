package mpirun

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A rank that has too little address space for Go is told so, in C before Go's library is loaded.
func TestTooLittleAddressSpaceIsNamed(t *testing.T) {
	prog, _ := countsOfMPI(t)
	gompirun, _ := withMPI(t)
	for program, want := range map[string]string{
		prog:       "gompi: MPI_Init: the address space of a process may be 488 MiB (ulimit -v): want 1024 MiB more",
		counted(t): "gompirun: Go finds too little address space: ulimit -v",
	} {
		status, _, errs := runCommand(t, gompirun, "-np", "2", "sh", "-c", "ulimit -v 500000; exec "+program+" calls")
		if status == 0 || !strings.Contains(errs, want) {
			t.Errorf("status %d, %s\nwant %q", status, errs, want)
		}
	}
}

// Real-time signals have names.
func TestSignalsHaveNames(t *testing.T) {
	for number, name := range map[string]string{"34": "SIGRTMIN", "40": "SIGRTMIN+6", "64": "SIGRTMIN+30"} {
		status, _, errs := runJob(t, "-np", "1", "sh", "-c", "kill -"+number+" $$")
		if want := "was killed by signal " + number + " (" + name + ")"; status == 0 || !strings.Contains(errs, want) {
			t.Errorf("status %d, %s\nwant %q", status, errs, want)
		}
	}
}

// A crashed rank has a core, and gompirun names the file, or the command that shows the place of
// the crash. That command works.
func TestWhereARankHasCrashedCanBeSeen(t *testing.T) {
	prog, _ := countsOfMPI(t)
	gompirun, _ := withMPI(t)
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.HasPrefix(string(pattern), "|") {
		t.Skipf("cores go to a program: %s", pattern)
	}
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip("no gdb")
	}
	dir := t.TempDir()
	for limit, tells := range map[string]string{"0": "gompirun: to see where it is then: gompirun ...",
		"unlimited": "gompirun: where it was: "} {
		record := "TORCHELASTIC_ERROR_FILE" // without a file there are no frames
		if limit == "0" {
			record += "="
		}
		status, _, errs := runCommand(t, "sh", "-c", `ulimit -c `+limit+`; cd "$1"; shift; exec "$@"`, "sh", dir,
			gompirun, "-np", "1", "-x", record, prog, "crash", "1")
		_, command, told := strings.Cut(errs, tells)
		if status != 139 || !told {
			t.Errorf("ulimit -c %s: status %d, %s\nwant %q", limit, status, errs, tells)
			continue
		}
		if command, _, _ = strings.Cut(command, "\n"); limit == "0" {
			command = gompirun + " -np 1" + command
		}
		if _, out, errs := runCommand(t, "sh", "-c", command); !strings.Contains(out, "rounds (") ||
			!strings.Contains(out, "counted.c:") {
			t.Errorf("%s: %s%s\nwant the function that has crashed", command, out, errs)
		}
	}
}
