package mpirun

import (
	"fmt"
	"io"

	"gompi/mpirun/internal/attach"
	"gompi/mpirun/internal/cmdline"
)

// runAttach runs gompirun attach with the arguments after that word. It replaces this process by
// the debugger, or returns the exit status.
func runAttach(args []string, stdout, stderr io.Writer) int {
	spec, err := cmdline.ParseAttach(args)
	if answered(err, stdout) {
		return 0
	}
	if err == nil {
		err = attach.Debug(spec.Rank, spec.Job, spec.Debugger)
	}
	fmt.Fprintf(stderr, "gompirun attach: %v\n", err)
	return statusFailed
}
