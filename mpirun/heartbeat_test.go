//go:build linux

package mpirun

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/output"
	"gompi/mpirun/internal/remote"
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
	time.Sleep((silence + 1) * beat) // long enough for any answer to be late
	syscall.Kill(l.cmd.Process.Pid, syscall.SIGCONT)
	time.Sleep(2 * beat) // for some more
	l.cmd.Process.Signal(syscall.SIGTERM)
	l.cmd.Wait()
	if code := l.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("status %d, want 143", code)
	}
}

func TestTheFastestAnswerTellsTheClocksDifference(t *testing.T) {
	l := &link{host: "node7"}
	const ahead = int64(5 * time.Second)
	for _, p := range []struct{ out, back time.Duration }{{10, 90}, {3, 1}, {50, 1}, {2, 4}} {
		out, back := int64(p.out*time.Millisecond), int64(p.back*time.Millisecond)
		l.ponged(&ctl.Pong{Sent: 1000, Now: 1000 + out + ahead}, 1000+out+back)
	}
	if got := l.ours(ahead + 77); max(got-77, 77-got) > int64(time.Millisecond) {
		t.Errorf("a time is off by %v, want at most half of the fastest answer's 4 ms less their difference", time.Duration(got-77))
	}
	here := &link{agent: &remote.Agent{Via: "local"}}
	here.ponged(&ctl.Pong{Sent: 0, Now: 50}, 10)
	if here.ours(7) != 7 {
		t.Error("a host has a clock that differs from itself")
	}
}

func TestFailuresOfTwoHostsAreComparedWithDoubt(t *testing.T) {
	a, b := &link{host: "a"}, &link{host: "b"}
	a.round, b.round = 4*time.Millisecond, 6*time.Millisecond
	at := func(l *link, ms int) *cause {
		return &cause{time: int64(time.Duration(ms+1000) * time.Millisecond), link: l}
	}
	tests := []struct {
		c, d *cause
		want bool
	}{
		{at(a, 1), at(a, 2), true},
		{at(a, 2), at(a, 1), false},
		{at(b, 1), at(a, 5), false}, // the clocks are known within 5 ms
		{at(b, 1), at(a, 7), true},
		{&cause{link: a}, at(a, 1), false}, // no rank's doing
		{at(a, 1), &cause{}, false},
	}
	for i, tt := range tests {
		if got := tt.c.before(tt.d); got != tt.want {
			t.Errorf("%d: before is %v, want %v", i, got, tt.want)
		}
	}
	heard := ctl.Exited{Rank: 2, Code: 7, Time: 50e6}
	j := &job{spec: &cmdline.Spec{}, out: output.New(os.Stdout, os.Stderr)}
	defer j.out.Close()
	j.exited(b, &heard)
	b.offset = 30e6 // a better answer of the clock has come
	j.exited(b, &ctl.Exited{Rank: 3, Code: 8, Time: 60e6})
	if j.cause.status != 7 {
		t.Errorf("the job ended with status %d, want 7, of the first on that host", j.cause.status)
	}
}
