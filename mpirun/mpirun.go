// Package mpirun is the launcher: it reads a command line, starts one agent on each host, has the
// agents start the ranks, and reports what failed.
//
// A job goes through the packages in this order:
//
//  1. internal/cmdline reads the command line. internal/allocation finds the hosts that it names or
//     that a batch system has granted.
//  2. internal/plan decides which rank runs where. internal/job, one goroutine, decides everything
//     else. internal/remote starts the agents, and internal/tree those of many hosts from some of
//     them; internal/link delivers their messages to the job.
//  3. internal/agent runs the ranks of one host. internal/ctl encodes the messages between it and
//     the launcher.
//  4. internal/output prints what ranks write.
package mpirun

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/internal/cli"
	"gompi/internal/version"
	"gompi/mpirun/internal/agent"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/job"
	"gompi/mpirun/internal/limits"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/tree"
)

// Exit statuses of gompirun's own.
const (
	statusNothing = 1 // no arguments at all
	statusTimeout = job.StatusTimeout
	statusFailed  = job.StatusFailed
)

// Main runs gompirun with the arguments of its command line, without the program's name, and
// returns its exit status. It takes over the process: its signals, its standard streams, and its
// child processes.
func Main(args []string) int {
	if remote.IsOther(args, os.Stdout) {
		return 0
	}
	if len(args) > 0 {
		switch args[0] {
		case remote.AgentFlag:
			if err := limits.CheckAgent(); err != nil {
				fmt.Fprintf(os.Stderr, "gompirun: agent: %v\n", err)
				return statusFailed
			}
			return proc.Guard(remote.GuardedFlag)
		case remote.GuardedFlag:
			return agent.Run(0, 1, proc.WatchdogFD, -1)
		case remote.RelayFlag:
			return tree.Relay(os.Stdin, os.Stdout)
		case remote.LocalFlag:
			return agent.Run(0, 1, -1, remote.InputFD)
		}
	}
	if len(args) > 0 {
		switch args[0] {
		case "doctor":
			return runDoctor(args[1:], os.Stdout, os.Stderr)
		case "attach":
			return runAttach(args[1:], os.Stdout, os.Stderr)
		case "ps":
			return runPs(args[1:], os.Stdout, os.Stderr)
		case "top":
			return runTop(args[1:], os.Stdout, os.Stderr)
		case "kill":
			return runKill(args[1:], os.Stdout, os.Stderr)
		}
	}
	if isCommand(args) {
		args = append([]string{"-" + args[0]}, args[1:]...)
	}
	spec, err := cmdline.Parse(args, os.LookupEnv, func(line string) { fmt.Fprintln(os.Stderr, line) })
	switch {
	case errors.Is(err, cli.ErrHelpAll):
		os.Stdout.WriteString(cmdline.UsageAll)
		return 0
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
		fmt.Println(version.Text("gompirun"))
		return 0
	}
	if err := writePID(spec.Report.PID); err != nil {
		fmt.Fprintf(os.Stderr, "gompirun: -report-pid: %v\n", err)
		return statusFailed
	}
	if err := limits.Check(); err != nil {
		fmt.Fprintf(os.Stderr, "gompirun: %v\n", err)
		return statusFailed
	}
	if spec.OneByOne() {
		return runRendezvous(spec)
	}
	return launchJob(spec)
}

// isCommand reports whether args are "gompirun help", "gompirun help all" or "gompirun version".
func isCommand(args []string) bool {
	line := strings.Join(args, " ")
	return line == "help" || line == "help all" || line == "version"
}

func launchJob(spec *cmdline.Spec) int {
	w := newSystem(func(chan<- os.Signal) {}, func() func() { return func() {} })
	j := job.New(spec, w)
	source, hosts, programs, err := planInput(spec, here(), j.Note)
	if errors.Is(err, allocation.ErrStrayTask) {
		return statusFailed
	}
	var start remote.Starter
	if err == nil {
		start, err = starter(spec.Reach, source)
	}
	if err != nil {
		status, _ := j.Fail(err)
		return status
	}
	j.Source, j.Hosts, j.Programs = source.From, hosts, programs
	status, _ := runToTheEnd(j, w, start, spec.Reach.Fanout)
	return status
}

// writePID writes this process's number to stdout ("-"), stderr ("+") or a file.
func writePID(where string) error {
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
