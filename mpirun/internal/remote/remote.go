// Package remote starts agents on hosts. A Starter hides the way: a process of this machine, ssh,
// or a step of a batch system.
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

// First arguments of gompirun as an agent.
const (
	AgentFlag   = "--agent"         // on another host, with a watchdog
	RelayFlag   = "--relay"         // reaches other hosts from there: package link
	GuardedFlag = "--guarded-agent" // child of a watchdog
	LocalFlag   = "--local-agent"   // on the launcher's host, watched by the launcher
)

// A Starter starts an agent on a host. Start may wait until the agent runs, at most until ctx
// ends, but not until it has sent hello. Several goroutines call Start.
type Starter interface {
	Start(ctx context.Context, host hostfile.Host) (*Process, error)
}

// A Process is a started agent as seen from this machine: the agent itself, or a process that
// leads there, such as ssh.
type Process struct {
	In  io.WriteCloser // orders; closing it ends the agent and its ranks
	Out io.ReadCloser  // reports
	Via string         // "local" or the name of the program that reaches it
	// Login is the login command of its host, the host's name last; nil for this machine, and if
	// there is no login.
	Login []string
	// Relays are the hosts on the way from this machine, by number.
	Relays  []int
	Through *Process // process that leads to the first relay; nil without relays
	Note    string   // news of its start for the user

	conn   Conn // instead of cmd, for an agent without a process here
	cmd    *exec.Cmd
	stderr *stderrTail // end of its standard error; nil if that goes elsewhere

	once   sync.Once // of wait
	status int       // of the process, once it has been waited for
	how    string    // how it ended, in words

	mu     sync.Mutex
	waited bool // the process and its number are gone
}

// Process.Via of agents that are processes of this machine, and of agents started by srun.
const (
	viaLocal = "local"
	ViaSrun  = "srun"
)

// Here reports whether the agent, and so its ranks, are processes of this machine.
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

// Close ends the agent, and closes its output after the process's end, because another process
// may hold the output open.
func (p *Process) Close() {
	p.In.Close()
	if p.cmd != nil {
		go p.wait() // until it has ended
	}
}

// Continue continues a stopped process.
func (p *Process) Continue() {
	switch {
	case p.Through != nil:
		p.Through.Continue()
	case p.conn == nil:
		p.signal(p.PID(), syscall.SIGCONT)
	}
}

// signal sends a signal to the process or its group, unless the process has been waited for.
func (p *Process) signal(to int, sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waited {
		syscall.Kill(to, sig) // it may have ended
	}
}

// dyingTime bounds the time of a killed process to get a processor and end.
const dyingTime = 5 * time.Second

// Wait waits for the agent's end, for dyingTime at most, and describes how: "exited with status 1
// (pid 7)". Unread bytes of Out are lost then.
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

// wait returns the exit status, -1 for a signal, and a description of the process's end. Any
// goroutine may call wait.
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

// ending describes a process's end, from the error of its Wait.
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

// stderrEnd returns the end of the ended process's standard error.
func (p *Process) stderrEnd() string {
	if p.stderr == nil {
		return ""
	}
	return p.stderr.await()
}

// start starts cmd with pipes as an agent in a session of its own, out of reach of the terminal's
// signals and job control. It keeps cmd's standard error, unless that is set already.
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
