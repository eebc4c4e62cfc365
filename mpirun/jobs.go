package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// userCommand returns the command of users called name, such as gompirun ps: parse reads the
// arguments after that word.
func userCommand[S any](name string, parse func(args []string) (S, error), run func(S) error) func([]string) int {
	return func(args []string) int {
		spec, err := parse(args)
		if answered(err, stdio.Stdout) {
			return 0
		}
		if err == nil {
			err = run(spec)
		}
		if err == nil {
			return 0
		}
		fmt.Fprintf(stdio.Stderr, "gompirun %s: %v\n", name, err)
		return statusFailed
	}
}

// jobsOf returns the wanted job, all jobs for "", also jobs that are over if over.
func jobsOf(wanted string, over bool) ([]monitor.Job, error) {
	jobs := monitor.List()
	if over {
		jobs = monitor.WithHistory(jobs)
	}
	if wanted == "" {
		return jobs, nil
	}
	j, err := monitor.Choose(jobs, wanted)
	if err != nil {
		return nil, err
	}
	return []monitor.Job{*j}, nil
}

// listJobs is gompirun ps.
func listJobs(spec *cmdline.Ps) error {
	jobs, err := jobsOf(spec.Job, spec.Over)
	_, width, _ := screenSize(stdio.Stdout.File)
	var text []byte
	switch {
	case err != nil:
	case spec.JSON:
		text, err = monitor.JSON(jobs)
	case spec.Prometheus:
		text = monitor.Metrics(jobs)
	default:
		text = []byte(monitor.Table(jobs, slices.ContainsFunc(jobs,
			func(j monitor.Job) bool { return j.User != os.Geteuid() }), width))
	}
	if err == nil {
		_, err = stdio.Stdout.Write(text)
	}
	return err
}

// showLogs is gompirun logs.
func showLogs(spec *cmdline.Logs) error {
	jobs := monitor.WithHistory(monitor.Own())
	if spec.Job == "" && len(jobs) > 0 {
		return jobs[len(jobs)-1].Logs(stdio.Stdout, spec.Follow)
	}
	j, err := monitor.Choose(jobs, spec.Job)
	if err != nil {
		return err
	}
	return j.Logs(stdio.Stdout, spec.Follow)
}

// showJobs is gompirun top: it shows the jobs again and again. Rates need two looks.
func showJobs(spec *cmdline.Top) error {
	stdout := stdio.Stdout
	_, _, terminal := screenSize(stdout.File)
	before, err := jobsOf(spec.Job, false)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		_, err := monitor.Choose(before, spec.Job)
		return err
	}
	if spec.Job != "" {
		spec.Job = before[0].Socket // after this job's end another job's id may match
	}
	if terminal && !spec.Once {
		stdout.WriteString("\x1b[H\x1b[2J")
	}
	for {
		time.Sleep(spec.Interval)
		jobs := monitor.List()
		height, width, _ := screenSize(stdout.File)
		text := func(width int) (text string) {
			for i := range jobs {
				if spec.Job == "" || jobs[i].Socket == spec.Job {
					text += monitor.Top(&jobs[i], sameJob(before, &jobs[i]), width) + "\n"
				}
			}
			return text
		}
		switch {
		case text(width) == "":
			_, err := fmt.Fprintln(stdout, "no job runs any more")
			return err
		case spec.Once || !terminal:
			_, err := stdout.WriteString(text(width))
			return err
		}
		if _, err := stdout.WriteString(monitor.Screen(text, height, width)); err != nil {
			return err
		}
		before = jobs
	}
}

// sameJob returns j's earlier state in jobs, nil if there is none.
func sameJob(jobs []monitor.Job, j *monitor.Job) *monitor.Job {
	for i := range jobs {
		if jobs[i].Socket == j.Socket {
			return &jobs[i]
		}
	}
	return nil
}

// killJob is gompirun kill.
func killJob(spec *cmdline.Kill) error {
	if monitor.Signals[spec.Signal] == 0 {
		return fmt.Errorf("-signal %q: want %s", spec.Signal, monitor.SignalNames)
	}
	jobs := monitor.List()
	if spec.Job == "" && len(jobs) > 0 {
		return fmt.Errorf("want a job:%s", monitor.Listed(jobs))
	}
	j, err := monitor.Choose(jobs, spec.Job)
	if err != nil {
		return err
	}
	end, ended, err := j.Signal(spec.Signal)
	if err != nil {
		return fmt.Errorf("%s: %w", j.Short(), err)
	}
	if ended {
		_, err = fmt.Fprintf(stdio.Stdout, "%s has ended with status %d\n", j.Short(), end.Status)
	}
	return err
}

// attach becomes a debugger on a rank, on the rank's host. It returns only on failure.
func attach(spec *cmdline.Attach) error {
	// Only jobs of this user: the job itself names the login command of a rank's host.
	j, err := monitor.Choose(monitor.Own(), spec.Job)
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
