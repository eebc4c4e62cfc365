// Package mpirun is the launcher: it reads a command line, starts one agent on
// each host, has them start the ranks, and tells the truth about what failed.
//
// The path of a job through the files:
//
//  1. internal/cmdline reads the command line, internal/allocation finds the hosts that it
//     names or a batch system has given
//  2. job starts the agents (internal/remote), hears what their hosts are made
//     of, has internal/plan decide which rank runs where, and launches
//  3. link, input and signals carry what happens to the one goroutine that
//     decides, in job; internal/output shows what ranks write
//  4. ending decides when the job is over, why, and what the exit status is
package mpirun

import (
	"errors"
	"fmt"
	"os"

	"gompi/internal/cli"
	"gompi/mpirun/internal/agent"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/attach"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/tree"
)

// Main runs gompirun with the arguments of its command line, without the
// program's name, and returns its exit status. It takes the whole process: its
// signals, standard streams, and every process below it.
func Main(args []string) int {
	if remote.IsOther(args, os.Stdout) {
		return 0
	}
	if len(args) > 0 {
		switch args[0] {
		case remote.AgentFlag:
			return agent.Guard(remote.GuardedFlag)
		case remote.GuardedFlag:
			return agent.Run(0, 1, true)
		case remote.LocalFlag:
			return agent.Run(0, 1, false)
		}
	}
	if len(args) > 0 && args[0] == "doctor" {
		return runDoctor(args[1:], os.Stdout, os.Stderr)
	}
	spec, err := cmdline.Parse(args, os.LookupEnv, func(line string) { fmt.Fprintln(os.Stderr, line) })
	switch {
	case errors.Is(err, cli.ErrHelp):
		os.Stdout.WriteString(cmdline.Usage)
		return 0
	case len(args) == 0:
		os.Stderr.WriteString(cmdline.Usage)
		return statusNothing
	case err != nil:
		fmt.Fprintf(os.Stderr, "gompirun: %v\n", err)
		return statusFailed
	case spec.Version:
		fmt.Println(versionText())
		return 0
	}
	if spec.Attach.To != "" {
		err := attach.Debug(spec.Attach.Rank, spec.Attach.Job, spec.Attach.Debugger)
		fmt.Fprintf(os.Stderr, "gompirun: -attach %s: %v\n", spec.Attach.To, err)
		return statusFailed
	}
	if err := tellPID(spec.Report.PID); err != nil {
		fmt.Fprintf(os.Stderr, "gompirun: -report-pid: %v\n", err)
		return statusFailed
	}
	if spec.OneByOne() {
		return meet(spec)
	}
	return launchJob(spec)
}

func launchJob(spec *cmdline.Spec) int {
	j := newJob(spec, os.Stdout, os.Stderr)
	var err error
	if j.source, j.hosts, j.programs, err = planInput(spec, here(), func(line string) { j.notef("%s", line) }); err != nil {
		if errors.Is(err, allocation.ErrStrayTask) {
			return statusFailed
		}
		return j.failToStart(err)
	}
	start, err := starter(spec.Reach, j.source)
	if err != nil {
		return j.failToStart(err)
	}
	status, _ := runToTheEnd(j, start)
	return status
}

// runToTheEnd runs j, and again as long as it may be started again. It returns
// the exit status and the last words on why.
func runToTheEnd(j *job, starter remote.Starter) (int, string) {
	// Should an agent be killed, what its ranks started must not escape.
	if err := tree.Adopt(); err != nil {
		status := j.failToStart(err) // which finds the last words
		return status, j.lastWords
	}
	j.before = tree.Children()
	j.signals = catch()
	for {
		j.meeting.hear(j.signals)
		status := j.run(starter)
		if j.next == nil {
			return status, j.lastWords
		}
		j = j.next
		j.signals = catch()
	}
}

// tellPID says which process this is, on stdout ("-"), stderr ("+") or in a file.
func tellPID(where string) error {
	line := fmt.Sprintln(os.Getpid())
	switch where {
	case "":
		return nil
	case "-":
		_, err := os.Stdout.WriteString(line)
		return err
	case "+":
		_, err := os.Stderr.WriteString(line)
		return err
	}
	return os.WriteFile(where, []byte(line), 0o666)
}
