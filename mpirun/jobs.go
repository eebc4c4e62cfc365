package mpirun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/stdio"
)

// runPs runs gompirun ps with the arguments after that word.
func runPs(args []string, stdout, stderr io.Writer) int {
	spec, err := cmdline.ParsePs(args)
	if answered(err, stdout) {
		return 0
	}
	var jobs []monitor.Job
	if err == nil {
		jobs, err = jobsOf(spec.Job)
	}
	if err == nil {
		err = printJobs(stdout, jobs, spec)
	}
	return finished("ps", err, stderr)
}

// finished prints an error of a command, if there is one, and returns the exit status.
func finished(command string, err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "gompirun %s: %v\n", command, err)
	return statusFailed
}

// jobsOf returns the wanted job, all jobs for "".
func jobsOf(wanted string) ([]monitor.Job, error) {
	jobs := monitor.List(monitor.EachUser)
	if wanted == "" {
		return jobs, nil
	}
	j, err := monitor.Choose(jobs, wanted)
	if err != nil {
		return nil, err
	}
	return []monitor.Job{*j}, nil
}

func printJobs(w io.Writer, jobs []monitor.Job, spec *cmdline.Ps) error {
	var text []byte
	var err error
	switch {
	case spec.JSON:
		text, err = monitor.JSON(jobs)
	case spec.Prometheus:
		text = monitor.Metrics(jobs)
	default:
		text = []byte(monitor.Table(jobs, slices.ContainsFunc(jobs,
			func(j monitor.Job) bool { return j.User != os.Geteuid() })))
	}
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// runTop runs gompirun top with the arguments after that word.
func runTop(args []string, stdout stdio.File, stderr io.Writer) int {
	spec, err := cmdline.ParseTop(args)
	if answered(err, stdout) {
		return 0
	}
	if err == nil {
		err = showJobs(spec, stdout)
	}
	return finished("top", err, stderr)
}

// showJobs shows the jobs again and again. Rates need two looks.
func showJobs(spec *cmdline.Top, stdout stdio.File) error {
	_, _, terminal := screenSize(stdout.File)
	before, err := jobsOf(spec.Job)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return errors.New("no gompirun of yours runs on this machine: type it where the job was started")
	}
	if spec.Job != "" {
		spec.Job = before[0].Socket // after this job's end another job's id may match
	}
	if terminal && !spec.Once {
		stdout.WriteString("\x1b[H\x1b[2J")
	}
	for {
		time.Sleep(spec.Interval)
		jobs := monitor.List(monitor.EachUser)
		text := ""
		for i := range jobs {
			if spec.Job == "" || jobs[i].Socket == spec.Job {
				text += monitor.Top(&jobs[i], sameJob(before, &jobs[i])) + "\n"
			}
		}
		height, width, _ := screenSize(stdout.File)
		switch {
		case text == "":
			_, err := fmt.Fprintln(stdout, "no job runs any more")
			return err
		case spec.Once || !terminal:
			_, err := stdout.WriteString(text)
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

// runKill runs gompirun kill with the arguments after that word.
func runKill(args []string, stdout, stderr io.Writer) int {
	spec, err := cmdline.ParseKill(args)
	if answered(err, stdout) {
		return 0
	}
	if err == nil {
		err = killJob(spec, stdout)
	}
	return finished("kill", err, stderr)
}

func killJob(spec *cmdline.Kill, stdout io.Writer) error {
	if monitor.Signals[spec.Signal] == 0 {
		return fmt.Errorf("-signal %q: want %s", spec.Signal, monitor.SignalNames)
	}
	jobs := monitor.List(monitor.EachUser)
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
		_, err = fmt.Fprintf(stdout, "%s has ended with status %d\n", j.Short(), end.Status)
	}
	return err
}
