// Package mpirun is the launcher: it reads a command line, starts an agent on each host, orders
// the agents to start the ranks, and reports failures. docs/design.md has its packages, and the way
// of a job through them.
package mpirun

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/internal/version"
	"gompi/mpirun/internal/agent"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/job"
	"gompi/mpirun/internal/link"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// Exit statuses of gompirun itself.
const (
	statusNothing = 1 // no arguments at all
	statusTimeout = job.StatusTimeout
	statusFailed  = job.StatusFailed
)

// commands are this program's functions other than running jobs, by the first argument: the
// processes of jobs, and commands of users.
var commands = map[string]func(args []string) int{
	remote.AgentFlag: func([]string) int {
		if err := proc.CheckAgentLimits(); err != nil {
			fmt.Fprintf(stdio.Stderr, "gompirun: agent: %v\n", err)
			return statusFailed
		}
		return proc.Guard(remote.GuardedFlag)
	},
	remote.GuardedFlag: func([]string) int { return agent.Run(0, 1, proc.WatchdogFD, -1) },
	remote.RelayFlag:   func([]string) int { return link.Relay(os.Stdin, os.Stdout) },
	remote.LocalFlag:   func([]string) int { return agent.Run(0, 1, -1, remote.InputFD) },
	proc.WalkFlag:      func(args []string) int { return proc.Walk(firstOf(args)) },
	detachedFlag:       runDetached,

	"doctor": runDoctor,
	"attach": userCommand("attach", cmdline.ParseAttach, attach),
	"ps":     userCommand("ps", cmdline.ParsePs, listJobs),
	"logs":   userCommand("logs", cmdline.ParseLogs, showLogs),
	"top":    userCommand("top", cmdline.ParseTop, showJobs),
	"kill":   userCommand("kill", cmdline.ParseKill, killJob),

	"man":        userCommand("man", cmdline.ParseMan, showPage),
	"completion": userCommand("completion", cmdline.ParseCompletion, printCompletion),
}

func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// Main runs gompirun with the arguments of its command line, without the program's name, and
// returns its exit status. It takes over the process: its signals, its standard streams, and its
// child processes.
func Main(args []string) int {
	keepDescriptors()
	if remote.IsOther(args, os.Stdout) {
		return 0
	}
	if run := commands[firstOf(args)]; run != nil {
		return run(args[1:])
	}
	if isCommand(args) {
		args = append([]string{"-" + args[0]}, args[1:]...)
	}
	return runWords(args, nil)
}

// runWords obeys a command line. A detached process has began, which is called with the
// job's id when its ranks run.
func runWords(args []string, began func(id string)) int {
	spec, err := cmdline.Parse(args, os.LookupEnv, func(line string) { fmt.Fprintln(stdio.Stderr, line) })
	switch {
	case answered(err, stdio.Stdout):
		return 0
	case len(args) == 0:
		stdio.Stderr.WriteString(cmdline.Help().Text(false))
		return statusNothing
	case err != nil:
		fmt.Fprintf(stdio.Stderr, "gompirun: %v\n", err)
		return statusFailed
	case spec.Version:
		fmt.Fprintln(stdio.Stdout, version.Text("gompirun"))
		return 0
	}
	if spec.Detach && began == nil {
		return detach(args, spec.Quiet)
	}
	if err := writePID(spec.Report.PID); err != nil {
		fmt.Fprintf(stdio.Stderr, "gompirun: -report-pid: %v\n", err)
		return statusFailed
	}
	if err := proc.CheckLimits(); err != nil {
		fmt.Fprintf(stdio.Stderr, "gompirun: %v\n", err)
		return statusFailed
	}
	if spec.OneByOne() {
		return runRendezvous(spec)
	}
	return launchJob(spec, began)
}

// isCommand reports whether args are "gompirun help", "gompirun help all" or "gompirun version".
func isCommand(args []string) bool {
	line := strings.Join(args, " ")
	return line == "help" || line == "help all" || line == "version"
}

func launchJob(spec *cmdline.Spec, began func(id string)) int {
	w := newSystem(func(chan<- os.Signal) {}, func() func() { return func() {} })
	j := job.New(spec, w)
	if began != nil {
		w.Began = func() { began(j.ID()) }
	}
	source, hosts, programs, err := planInput(spec, here(), j.Note)
	if errors.Is(err, inventory.ErrStrayTask) {
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
		_, err := stdio.Stdout.WriteString(line)
		return err
	case "+":
		_, err := stdio.Stderr.WriteString(line)
		return err
	}
	return os.WriteFile(where, []byte(line), 0o666)
}
