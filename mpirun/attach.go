package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// attach becomes a debugger on a rank, on the rank's host. It returns only on failure.
func attach(spec *cmdline.Attach) error {
	// Only jobs of this user: the job itself names the login command of a rank's host.
	j, err := monitor.Choose(monitor.List(monitor.Own), spec.Job)
	if err != nil {
		return err
	}
	w, err := j.Find(spec.Rank)
	if err != nil {
		return err
	}
	argv := remote.Terminal(w.Login, debuggerScript(spec.Debugger, w.PID))
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(stdio.Stderr, "gompirun: rank %d is process %d on %s\n", spec.Rank, w.PID, w.Host)
	return syscall.Exec(path, argv, os.Environ())
}

// debuggerScript returns the script that runs the debugger on the rank's host: the user's, or,
// for Go programs, dlv, or else gdb.
func debuggerScript(debugger string, pid int) string {
	if debugger != "" {
		return fmt.Sprintf("exec %s %d", debugger, pid)
	}
	return fmt.Sprintf( // on one line, for login shells such as csh
		`if grep -qs "Go buildinf:" /proc/%[1]d/exe && command -v dlv >/dev/null; then exec dlv attach %[1]d; fi; `+
			`if command -v gdb >/dev/null; then exec gdb -p %[1]d; fi; `+
			`echo "gompirun: neither dlv nor gdb is in PATH; want -debugger CMD" >&2; exit 127`, pid)
}
