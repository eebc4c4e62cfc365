// Package runner runs the programs of several implementations in turn, and describes the machine.
package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrTimeLimit is the cause if a command was ended because it ran too long.
var ErrTimeLimit = errors.New("time limit")

// grace is the time for a command to end after a signal. Launchers need it to end their ranks.
const grace = 2 * time.Second

// A Command is a program with its arguments, and settings added to this process's environment.
type Command struct {
	Args []string
	Env  []string
	Dir  string       // working folder; "": this process's
	Line func(string) // if not nil, called with each line of standard output
}

// String formats the command for a shell, without the PATH of an installation.
func (c Command) String() string {
	env := slices.DeleteFunc(slices.Clone(c.Env), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	return strings.Join(append(env, c.Args...), " ")
}

// An Outcome is the output of a command, and its times.
type Outcome struct {
	Stdout []byte
	Took   time.Duration // from start to end
	First  time.Duration // until its first output; 0 without output
}

// Run runs the command to its end, in a process group of its own. At limit, or at the end of ctx,
// it ends the group and all processes that the command has started. The Outcome is valid with an
// error, too. Errors carry the last line of standard error.
func (c Command) Run(ctx context.Context, limit time.Duration) (Outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w of %v", ErrTimeLimit, limit))
	defer cancel()
	start := time.Now()
	stdout, stderr := listener{start: start, line: c.Line}, bytes.Buffer{}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = grace // another process may keep the pipes open after its end
	if err := cmd.Start(); err != nil {
		return Outcome{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		end(cmd.Process.Pid, ended)
		err = context.Cause(ctx)
	}
	out := Outcome{Stdout: stdout.all.Bytes(), Took: time.Since(start), First: stdout.first}
	if err != nil {
		err = fmt.Errorf("%w%s", err, lastLine(stderr.String()))
	}
	return out, err
}

// A listener keeps its input and calls line for each complete line.
type listener struct {
	start   time.Time
	first   time.Duration
	line    func(string)
	all     bytes.Buffer
	printed int // bytes of all in printed lines
}

func (l *listener) Write(b []byte) (int, error) {
	if l.all.Len() == 0 {
		l.first = time.Since(l.start)
	}
	l.all.Write(b)
	for l.line != nil {
		n := bytes.IndexByte(l.all.Bytes()[l.printed:], '\n')
		if n < 0 {
			break
		}
		l.line(string(l.all.Bytes()[l.printed : l.printed+n]))
		l.printed += n + 1
	}
	return len(b), nil
}

// A Job is commands that run at the same time.
type Job []Command

// String formats the commands for a shell.
func (j Job) String() string {
	var lines []string
	for _, c := range j {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, " & ")
}

// Run runs all commands of the job to their ends. The Outcome has the output of all, from the start
// of the job to the end of the last. The error is the first command's that fails.
func (j Job) Run(ctx context.Context, limit time.Duration) (Outcome, error) {
	type ending struct {
		Outcome
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	ended := make(chan ending, len(j))
	for _, c := range j {
		go func() { // until limit at the latest
			out, err := c.Run(ctx, limit)
			ended <- ending{out, err}
		}()
	}
	var all Outcome
	var first error
	for range j {
		e := <-ended
		all.Stdout = append(all.Stdout, e.Stdout...)
		if all.First == 0 || e.First > 0 && e.First < all.First {
			all.First = e.First
		}
		if first == nil && e.err != nil {
			first = e.err
			cancel() // the others may wait for it
		}
	}
	all.Took = time.Since(start)
	return all, first
}

// end ends the process group pid and its descendants, which may have groups of their own. It
// returns when the first process has ended.
func end(pid int, ended <-chan error) {
	started := descendants(pid)
	syscall.Kill(-pid, syscall.SIGTERM) // it fails if the process is gone
	select {
	case <-ended:
	case <-time.After(grace):
		syscall.Kill(-pid, syscall.SIGKILL)
		<-ended
	}
	for _, p := range started {
		syscall.Kill(p, syscall.SIGKILL)
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

// descendants lists the descendants of pid, as far as /proc shows them.
func descendants(pid int) []int {
	lists, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var all []int
	for _, task := range lists {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for _, s := range strings.Fields(string(children)) {
			if child, err := strconv.Atoi(s); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// lastLine returns ": " and the last line of s with text.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); strings.Trim(line, "-=") != "" {
			return ": " + line
		}
	}
	return ""
}
