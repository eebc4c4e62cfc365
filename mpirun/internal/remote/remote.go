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
	GuardedFlag = "--guarded-agent" // what the watchdog runs
	LocalFlag   = "--local-agent"   // on the launcher's host, which watches it
)

// A Starter starts an agent on a host. Start may wait until the agent runs, at
// most until ctx ends, but not until it has said hello. It is called from
// several goroutines.
type Starter interface {
	Start(ctx context.Context, host hostfile.Host) (*Agent, error)
}

// An Agent is a started agent, or what stands between here and it, such as ssh.
type Agent struct {
	In  io.WriteCloser // orders; closing it ends the agent and its ranks
	Out io.ReadCloser  // reports
	Via string         // how it is reached: "local" or the name of a program
	// Login is the command that logs in to its host, the host's name last; nil
	// for this machine, and where nobody logs in.
	Login []string

	conn  Conn // instead of cmd, for an agent that no process here stands for
	cmd   *exec.Cmd
	words *words // what it says on its standard error; nil if that is passed on

	once   sync.Once // of wait
	status int       // of the process, once it has been waited for
	how    string    // it ended, in words

	mu     sync.Mutex
	waited bool // the process and its number are gone
}

// Agent.Via of an agent that is a process of this machine, and of one that srun
// has started.
const (
	viaLocal = "local"
	ViaSrun  = "srun"
)

// Here reports whether the agent is a process of this machine, so that its
// ranks are, too.
func (a *Agent) Here() bool { return a.Via == viaLocal }

// A Conn is an agent behind a connection of its own.
type Conn interface {
	Kill()
	Wait() string
}

// Connected returns the agent at the other end of in and out.
func Connected(in io.WriteCloser, out io.ReadCloser, conn Conn) *Agent {
	return &Agent{In: in, Out: out, Via: "connection", conn: conn}
}

// PID returns the process on this machine, 0 if there is none.
func (a *Agent) PID() int {
	if a.conn != nil {
		return 0
	}
	return a.cmd.Process.Pid
}

// Kill sends SIGKILL to the process group of the process. Ranks have groups of their own and must
// be ended otherwise.
func (a *Agent) Kill() {
	if a.conn != nil {
		a.conn.Kill()
		return
	}
	a.signal(-a.PID(), syscall.SIGKILL) // the process leads its group
}

// Close ends the agent, and its output when the process has ended: something else may hold that open.
func (a *Agent) Close() {
	a.In.Close()
	if a.cmd != nil {
		go a.wait() // until it has ended
	}
}

// Continue continues the process, if it is stopped.
func (a *Agent) Continue() {
	if a.conn == nil {
		a.signal(a.PID(), syscall.SIGCONT)
	}
}

// signal sends a signal to the process or its group, unless that has been waited for.
func (a *Agent) signal(to int, sig syscall.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.waited {
		syscall.Kill(to, sig) // it may have ended
	}
}

// dyingTime is how long a process that has been killed may take to end: it needs a processor for
// that.
const dyingTime = 5 * time.Second

// Wait waits until the agent has ended, for dyingTime at most, and says how, in words: "exited with
// status 1 (pid 7)".
// What has not been read of Out by then is lost.
func (a *Agent) Wait() string {
	said := make(chan string, 1)
	go func() { said <- a.howEnded() }() // until it has ended
	select {
	case how := <-said:
		return how
	case <-time.After(dyingTime):
		if a.conn != nil {
			return "does not end"
		}
		return fmt.Sprintf("does not end (pid %d)", a.PID())
	}
}

func (a *Agent) howEnded() string {
	if a.conn != nil {
		return a.conn.Wait()
	}
	status, how := a.wait()
	how += lastWords(a.said(), ": ")
	switch {
	case a.Here():
		return fmt.Sprintf("%s (pid %d)", how, a.PID())
	case status == 0:
		return "has ended"
	}
	return fmt.Sprintf("is lost: %s %s", a.Via, how)
}

// wait returns the exit status, -1 for a signal, and how the process has ended. Any goroutine may
// call it.
func (a *Agent) wait() (int, string) {
	a.once.Do(func() {
		err := a.cmd.Wait()
		a.status, a.how = ending(err)
		a.mu.Lock()
		a.waited = true
		a.mu.Unlock()
	})
	return a.status, a.how
}

// ending says how a process has ended, from the error of its Wait.
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

// said returns the end of what the process, which has ended, said on its standard error.
func (a *Agent) said() string {
	if a.words == nil {
		return ""
	}
	return a.words.await()
}

// start starts cmd with pipes as an agent in a session of its own, so that the
// terminal's signals, and its stopping of background jobs, do not reach it. What
// cmd says on its standard error is kept, unless that leads elsewhere already.
func start(cmd *exec.Cmd, via string) (*Agent, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a := &Agent{In: in, Out: out, Via: via, cmd: cmd}
	cmd.SysProcAttr = session()
	if cmd.Stderr != nil {
		return a, cmd.Start()
	}
	said, stderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		said.Close()
		return nil, err
	}
	a.words = &words{from: said, done: make(chan struct{})}
	go a.words.listen() // until nobody writes any more, or await gives up
	return a, nil
}
