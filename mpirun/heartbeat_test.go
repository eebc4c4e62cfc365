//go:build linux

package mpirun

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/ctl"
)

// The kernel tells when an agent on this machine ends. Until then it is only stopped.
func TestAStoppedAgentOnThisMachineIsReportedAndContinues(t *testing.T) {
	t.Parallel() // it waits most of the time
	k := startTalk(t, "-heartbeat", "1", "-np", "2", "sh", "-c",
		`trap "exit 0" USR1; echo ready; while :; do sleep 0.02; done`)
	k.expect("ready")
	k.expect("ready")
	agent := childrenOf(k.cmd.Process.Pid)[0]
	syscall.Kill(agent, syscall.SIGSTOP)
	for _, after := range []string{"1s", "2s", "4s"} { // the last is longer than another host may be silent
		k.expect(fmt.Sprintf("gompirun: localhost: nothing heard for %s: the agent (process %d) is stopped (kill -CONT lets it continue)", after, agent))
	}
	syscall.Kill(agent, syscall.SIGCONT)
	k.expect("gompirun: localhost: heard again after ")
	k.cmd.Process.Signal(syscall.SIGUSR1)
	k.ends(0)
}

// Whatever stands still, the time limit and TERM end the job, and nothing is left.
func TestAJobEndsInTimeThoughItsAgentDoesNotRun(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	for _, beat := range []string{"1", "0"} {
		for _, tt := range []struct {
			name   string
			status int
			flags  []string
		}{
			{"time limit", statusTimeout, []string{"-timeout", "10"}},
			{"TERM", 143, nil},
		} {
			t.Run(tt.name+" heartbeat "+beat, func(t *testing.T) {
				t.Parallel() // it waits most of the time
				l := launchVictims(t, 2, append(tt.flags, "-kill-delay", "0.1", "-heartbeat", beat)...)
				ended := make(chan struct{})
				go func() { // gompirun continues it
					for {
						select {
						case <-ended:
							return
						case <-time.After(time.Millisecond / 2):
							syscall.Kill(l.agent, syscall.SIGSTOP)
						}
					}
				}()
				awaitState(t, l.agent, "T")
				if tt.flags == nil {
					l.cmd.Process.Signal(syscall.SIGTERM)
				}
				begun := time.Now()
				l.cmd.Wait()
				close(ended)
				if code := l.cmd.ProcessState.ExitCode(); code != tt.status {
					t.Errorf("status %d, want %d: %s", code, tt.status, l.output.String())
				}
				if took := time.Since(begun); took > 25*time.Second {
					t.Errorf("ended after %v", took)
				}
				l.gone(t, "agent stopped for good")
			})
		}
	}
}

func TestALauncherThatWasStoppedGivesNoAgentUp(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	l := launchVictims(t, 1, "-heartbeat", beat.String())
	syscall.Kill(l.cmd.Process.Pid, syscall.SIGSTOP)
	awaitState(t, l.cmd.Process.Pid, "T")
	time.Sleep((ctl.Silence + 1) * beat) // long enough for any answer to be late
	syscall.Kill(l.cmd.Process.Pid, syscall.SIGCONT)
	time.Sleep(2 * beat) // for some more
	l.cmd.Process.Signal(syscall.SIGTERM)
	l.cmd.Wait()
	if code := l.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("status %d, want 143", code)
	}
}
