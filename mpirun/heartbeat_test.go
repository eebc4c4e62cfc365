//go:build linux

package mpirun

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpirun/internal/ctl"
)

func TestAStoppedAgentIsGivenUp(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, stopAll := range []bool{false, true} {
		l := launchVictims(t, 2, "-heartbeat", beat.String())
		syscall.Kill(l.agent, syscall.SIGSTOP)
		if stopAll {
			for _, pid := range l.below {
				syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		l.cmd.Wait()
		if code := l.cmd.ProcessState.ExitCode(); code != statusFailed {
			t.Errorf("status %d, want %d", code, statusFailed)
		}
		if want := "gompirun: localhost: nothing heard for "; !strings.HasPrefix(l.said.String(), want) {
			t.Errorf("%q, want %q", l.said.String(), want)
		}
		l.gone(t, "agent stopped")
	}
}

func TestALauncherThatWasStoppedGivesNobodyUp(t *testing.T) {
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
