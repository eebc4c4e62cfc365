package mpirun

import (
	"context"
	"os"
	"slices"

	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/job"
	"gompi/mpirun/internal/link"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// newSystem returns the job.System of this process. notify gets the channel of signals; pause is
// called before the process is stopped, and pause's result when the process is continued.
func newSystem(notify func(chan<- os.Signal), pause func() (resume func())) *job.System {
	_, width, terminal := screenSize(os.Stderr)
	var caught *catcher
	input := newInputSource(stdio.Stdin)
	return &job.System{
		Stdout: os.Stdout, Stderr: os.Stderr, Terminal: terminal, Width: width,
		Colour:  terminal && showsColours(),
		Environ: os.Environ(), Dir: workingDir(), MPIFolder: program.MPIFolder(),
		Stdin: input.read, Rewind: input.rewind, Inherited: heritage() != nil,
		Signals: func() <-chan os.Signal {
			caught = catch()
			notify(caught.signals)
			return caught.signals
		},
		Stop: func() {
			resume := pause()
			caught.stop()
			resume()
		},
		Process: func(pid int) job.Process { return proc.NewWatch(pid) },
		Screen:  &monitor.Tail{},
	}
}

// showsColours reports whether the terminal has colours and the user wants them (no-color.org).
func showsColours() bool {
	kind := os.Getenv("TERM")
	return os.Getenv(env.NoColour) == "" && kind != "" && kind != "dumb"
}

// runToTheEnd runs j, whose System is w, with agents of starter, at most fanout of them started
// from one host, unless fanout is 0. The results are the exit status, and the reason for the
// job's end as printed last.
func runToTheEnd(j *job.Job, w *job.System, starter remote.Starter, fanout int) (int, string) {
	keep, err := env.Bool(env.History)
	if err != nil {
		return j.Fail(err)
	}
	// If an agent is killed, this process adopts its ranks' processes.
	if err := proc.Adopt(); err != nil {
		return j.Fail(err)
	}
	defer proc.Reap()
	before := proc.Children(os.Getpid()) // children of a shell that has become gompirun
	w.Sweep = func(living, lost []int) {
		proc.Sweep(func(pid int) bool { return slices.Contains(before, pid) || slices.Contains(living, pid) })
		for _, pid := range lost {
			proc.RemoveGroupOf(pid)
		}
	}
	w.Connect = func(ctx context.Context, hosts []hostfile.Host, events chan<- link.Event,
		done <-chan struct{}) ([]inventory.Agent, func([]int, ctl.Message)) {
		all := link.StartAll(ctx, starter, fanout, hosts, events, done)
		agents := make([]inventory.Agent, len(all))
		for n, a := range all {
			agents[n] = a
		}
		return agents, func(to []int, m ctl.Message) {
			var some []*link.Agent
			for _, n := range to {
				some = append(some, all[n])
			}
			link.Broadcast(some, m)
		}
	}
	socket, err := monitor.Serve(j.ID(), w.Screen)
	if err != nil {
		j.Explain("gompirun ps and attach will not find this job: %v", err)
	}
	w.Questions = socket.Questions()
	status, lastWords := j.Run()
	if keep {
		monitor.Save(j.Over(status), w.Screen.Text())
	}
	socket.End(monitor.End{Status: status, LastWords: lastWords})
	return status, lastWords
}

// workingDir returns the working directory by the user's name ($PWD), which other hosts may have,
// too.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
