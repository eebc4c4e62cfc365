// Package remote starts agents on hosts. A Starter hides how: as a process of
// this machine, and later over ssh or srun.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"gompi/hostfile"
)

// The first arguments that make gompirun an agent.
const (
	AgentFlag   = "--agent"         // on another host, with a warden
	GuardedFlag = "--guarded-agent" // what the warden runs
	LocalFlag   = "--local-agent"   // on the launcher's host, which watches it
)

// A Starter starts an agent on a host. Start does not wait until the agent has
// said hello. It may be called from several goroutines.
type Starter interface {
	Start(ctx context.Context, host hostfile.Host) (*Agent, error)
}

// An Agent is a started agent, or what stands between here and it, such as ssh.
type Agent struct {
	In  io.WriteCloser // orders; closing it ends the agent and its ranks
	Out io.ReadCloser  // reports
	cmd *exec.Cmd
}

// PID returns the process on this machine.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Kill ends the process at once. What the agent runs must be ended otherwise.
func (a *Agent) Kill() { a.cmd.Process.Kill() }

// Wait waits until the process has ended and says how, in words: "exited with
// status 1". Out has to be at its end before.
func (a *Agent) Wait() string {
	err := a.cmd.Wait()
	var exit *exec.ExitError
	if err == nil {
		return "exited with status 0"
	}
	if !errors.As(err, &exit) {
		return err.Error()
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%v)", ws.Signal(), ws.Signal())
	}
	return fmt.Sprintf("exited with status %d", exit.ExitCode())
}

// start starts cmd with pipes as an agent in a session of its own, so that the
// terminal's signals, and its stopping of background jobs, do not reach it.
func start(cmd *exec.Cmd) (*Agent, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Agent{In: in, Out: out, cmd: cmd}, nil
}
