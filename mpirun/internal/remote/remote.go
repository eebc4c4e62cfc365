// Package remote starts agents on hosts. A Starter hides how: as a process of
// this machine, over ssh, or as a step of a batch system.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"gompi/hostfile"
)

// The first arguments that make gompirun an agent.
const (
	AgentFlag   = "--agent"         // on another host, with a watchdog
	RelayFlag   = "--relay"         // one that reaches others from there, too: package tree
	GuardedFlag = "--guarded-agent" // what the watchdog runs
	LocalFlag   = "--local-agent"   // on the launcher's host, which watches it
)

// A Starter starts an agent on a host. Start may wait until the agent runs, at most until ctx ends,
// but not until it has sent hello. It is called from several goroutines.
type Starter interface {
	Start(ctx context.Context, host hostfile.Host) (*Process, error)
}

// A Process is a started agent as seen from this machine: the agent itself, or what leads to it,
// such as ssh.
type Process struct {
	In  io.WriteCloser // orders; closing it ends the agent and its ranks
	Out io.ReadCloser  // reports
	Via string         // how it is reached: "local" or the name of a program
	// Login is the command that logs in to its host, the host's name last; nil
	// for this machine, and where no login is needed.
	Login []string
	// Relays are the hosts through which it is reached, by number, from this one on.
	Relays  []int
	Through *Process // what leads to the first of them; nil without any
	Note    string   // what the user should know of its start

	conn   Conn // instead of cmd, for an agent that no process here stands for
	cmd    *exec.Cmd
	stderr *stderrTail // what it writes to its standard error; nil if that is passed on

	once   sync.Once // of wait
	status int       // of the process, once it has been waited for
	how    string    // it ended, in words

	mu     sync.Mutex
	waited bool // the process and its number are gone
}

// Process.Via of an agent that is a process of this machine, and of one that srun
// has started.
const (
	viaLocal = "local"
	ViaSrun  = "srun"
)

// Here reports whether the agent is a process of this machine, so that its
// ranks are, too.
func (p *Process) Here() bool { return p.Via == viaLocal }

// A Conn is an agent behind a connection of its own.
type Conn interface {
	Kill()
	Wait() string
}

// Connected returns the agent at the other end of in and out.
func Connected(in io.WriteCloser, out io.ReadCloser, conn Conn) *Process {
	return &Process{In: in, Out: out, Via: "connection", conn: conn}
}

// PID returns the process on this machine, 0 if there is none.
func (p *Process) PID() int {
	switch {
	case p.Through != nil:
		return p.Through.PID()
	case p.conn != nil:
		return 0
	}
	return p.cmd.Process.Pid
}

// Kill sends SIGKILL to the process group of the process. Ranks have groups of their own and must
// be ended otherwise.
func (p *Process) Kill() {
	if p.conn != nil {
		p.conn.Kill()
		return
	}
	p.signal(-p.PID(), syscall.SIGKILL) // the process leads its group
}

// Close ends the agent, and its output when the process has ended: something else may hold that
// open.
func (p *Process) Close() {
	p.In.Close()
	if p.cmd != nil {
		go p.wait() // until it has ended
	}
}

// Continue continues the process, if it is stopped.
func (p *Process) Continue() {
	switch {
	case p.Through != nil:
		p.Through.Continue()
	case p.conn == nil:
		p.signal(p.PID(), syscall.SIGCONT)
	}
}

// signal sends a signal to the process or its group, unless that has been waited for.
func (p *Process) signal(to int, sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waited {
		syscall.Kill(to, sig) // it may have ended
	}
}

// dyingTime is how long a process that has been killed may take to end: it needs a processor for
// that.
const dyingTime = 5 * time.Second

// Wait waits until the agent has ended, for dyingTime at most, and returns how, in words: "exited
// with status 1 (pid 7)". What has not been read of Out by then is lost.
func (p *Process) Wait() string {
	ended := make(chan string, 1)
	go func() { ended <- p.howEnded() }() // until it has ended
	select {
	case how := <-ended:
		return how
	case <-time.After(dyingTime):
		if p.conn != nil {
			return "does not end"
		}
		return fmt.Sprintf("does not end (pid %d)", p.PID())
	}
}

func (p *Process) howEnded() string {
	if p.conn != nil {
		return p.conn.Wait()
	}
	status, how := p.wait()
	how += lastLines(p.stderrEnd(), ": ")
	switch {
	case p.Here():
		return fmt.Sprintf("%s (pid %d)", how, p.PID())
	case status == 0:
		return "has ended"
	}
	return fmt.Sprintf("is lost: %s %s", p.Via, how)
}

// wait returns the exit status, -1 for a signal, and how the process has ended. Any goroutine may
// call it.
func (p *Process) wait() (int, string) {
	p.once.Do(func() {
		err := p.cmd.Wait()
		p.status, p.how = ending(err)
		p.mu.Lock()
		p.waited = true
		p.mu.Unlock()
	})
	return p.status, p.how
}

// ending describes how a process has ended, from the error of its Wait.
func ending(err error) (status int, how string) {
	var exit *exec.ExitError
	if err == nil {
		return 0, "exited with status 0"
	}
	if !errors.As(err, &exit) {
		return -1, err.Error()
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, fmt.Sprintf("was killed by signal %d (%v)", ws.Signal(), ws.Signal())
	}
	return exit.ExitCode(), fmt.Sprintf("exited with status %d", exit.ExitCode())
}

// stderrEnd returns the end of what the process, which has ended, wrote to its standard error.
func (p *Process) stderrEnd() string {
	if p.stderr == nil {
		return ""
	}
	return p.stderr.await()
}

// start starts cmd with pipes as an agent in a session of its own, so that the
// terminal's signals, and its stopping of background jobs, do not reach it. What
// cmd writes to its standard error is kept, unless that leads elsewhere already.
func start(cmd *exec.Cmd, via string) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a := &Process{In: in, Out: out, Via: via, cmd: cmd}
	cmd.SysProcAttr = session()
	if cmd.Stderr != nil {
		return a, cmd.Start()
	}
	tail, stderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		tail.Close()
		return nil, err
	}
	a.stderr = &stderrTail{from: tail, done: make(chan struct{})}
	go a.stderr.readAll() // until no process holds the other end, or await gives up
	return a, nil
}
