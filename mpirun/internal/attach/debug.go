// Package attach is gompirun attach RANK, which runs a debugger on a rank of a job that
// runs already.
package attach

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"gompi/mpirun/internal/control"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// Debug becomes a debugger on a rank, wherever it runs: the command that is given, or, if
// it is "", one that is found there. job is the id of the rank's job, "" for the only one
// of this user on this machine. Debug returns if it fails.
func Debug(rank int, job, debugger string) error {
	// Of this user alone: how to log in to a rank's host is a command that the job names.
	j, err := control.Choose(control.List(control.Own), job)
	if err != nil {
		return err
	}
	w, err := j.Find(rank)
	if err != nil {
		return err
	}
	argv := remote.Terminal(w.Login, debuggerScript(debugger, w.PID))
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(stdio.Stderr, "gompirun: rank %d is process %d on %s\n", rank, w.PID, w.Host)
	return syscall.Exec(path, argv, os.Environ())
}

// debuggerScript is what runs the debugger on the rank's host: the user's, or for Go
// programs dlv, if it is there, or gdb.
func debuggerScript(debugger string, pid int) string {
	if debugger != "" {
		return fmt.Sprintf("exec %s %d", debugger, pid)
	}
	return fmt.Sprintf(`if grep -qs "Go buildinf:" /proc/%[1]d/exe && command -v dlv >/dev/null; then exec dlv attach %[1]d; fi; if command -v gdb >/dev/null; then exec gdb -p %[1]d; fi; echo "gompirun: neither dlv nor gdb is in PATH; want -debugger CMD" >&2; exit 127`, pid)
}
