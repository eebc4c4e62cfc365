package cmdline

import (
	"errors"
	"fmt"
	"strconv"

	"gompi/internal/cli"
)

var attachHelp = cli.Help{
	Synopsis: []string{"gompirun attach [-job ID] [-debugger CMD] RANK"},
	About: `Runs a debugger on a rank of a job that runs, on the rank's host: dlv for programs in
Go if it is there, else gdb. Type it on the machine where the job was started.`,
}

// Attach is a debugger to run on a rank of a running job.
type Attach struct {
	Rank     int
	Job      string // its id; "" for the only one
	Debugger string // a command; "" for dlv or gdb
}

// ParseAttach reads the command line of gompirun attach, without that word.
func ParseAttach(args []string) (*Attach, error) {
	set := cli.New("gompirun attach")
	a := &Attach{}
	set.Help = attachHelp
	set.Flag("job", "ID", &a.Job, "which job (default: the only one of yours)")
	set.Flag("debugger", "CMD", &a.Debugger, `another debugger: "CMD pid" is run on the rank's host`)
	operands, err := set.ParseAll(args)
	switch {
	case err != nil:
		return nil, err
	case len(operands) != 1:
		return nil, errors.New("want one rank (gompirun attach -h)")
	}
	if a.Rank, err = strconv.Atoi(operands[0]); err != nil || a.Rank < 0 {
		return nil, fmt.Errorf("%q: want a rank", operands[0])
	}
	return a, nil
}
