package mpirun

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// runAttach runs gompirun attach with the arguments after that word. It replaces this process by
// the debugger, or returns the exit status.
func runAttach(args []string, stdout, stderr io.Writer) int {
	spec, err := cmdline.ParseAttach(args)
	if answered(err, stdout) {
		return 0
	}
	if err == nil {
		err = debug(spec.Rank, spec.Job, spec.Debugger)
	}
	fmt.Fprintf(stderr, "gompirun attach: %v\n", err)
	return statusFailed
}

// debug becomes a debugger on a rank, on the rank's host: the given command or, for "", dlv or
// gdb. job is the id of the rank's job, "" for this user's only job on this machine. debug
// returns only on failure.
func debug(rank int, job, debugger string) error {
	// Only jobs of this user: the job itself names the login command of a rank's host.
	j, err := monitor.Choose(monitor.List(monitor.Own), job)
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
