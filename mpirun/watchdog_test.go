//go:build linux

package mpirun

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/boot/wire"
	"gompi/internal/stress"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/remote"
)

// Whatever ends, or falls silent, of the processes on a host that is not the
// launcher's, nothing is left there.
func TestAgentAndWatchdogLeaveNothingBehind(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	tests := []struct {
		name   string
		beat   time.Duration
		strike func(watchdog, agent int, orders io.Closer)
	}{
		{"the agent is killed", 0, func(_, agent int, _ io.Closer) { syscall.Kill(agent, syscall.SIGKILL) }},
		{"the watchdog is killed", 0, func(watchdog, _ int, _ io.Closer) { syscall.Kill(watchdog, syscall.SIGKILL) }},
		{"the channel is closed", 0, func(_, _ int, orders io.Closer) { orders.Close() }},
		{"the launcher is silent", beat, func(_, _ int, _ io.Closer) {}},
		{"the agent is stopped", beat, func(_, agent int, _ io.Closer) { syscall.Kill(agent, syscall.SIGSTOP) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, in, reports, silent := startGuarded(t, tt.beat)
			silent()
			tt.strike(l.cmd.Process.Pid, l.agent, in)
			for err := error(nil); err == nil; { // to the end of the channel
				_, err = reports.Next()
			}
			l.cmd.Wait()
			l.gone(t, tt.name)
		})
	}
}

// When the whole machine is suspended, no process counts as silent.
func TestAMachineThatStoodStillEndsNothing(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	l, in, reports, silent := startGuarded(t, beat)
	silent()
	watchdog := l.cmd.Process.Pid
	signalAll(append(l.below, watchdog), syscall.SIGSTOP)
	time.Sleep((ctl.Silence + 1) * beat)
	for _, pids := range [][]int{{watchdog}, l.below} {
		signalAll(pids, syscall.SIGCONT)
		time.Sleep(beat / 5) // for a look at the time: nothing tells
	}
	const asked = 4711
	in.Write(ctl.Append(nil, &ctl.Ping{Sent: asked}))
	for answered := false; !answered; {
		m, err := reports.Next()
		if err != nil {
			t.Fatalf("%v, want an answer: the agent was to continue", err)
		}
		pong, ok := m.(*ctl.Pong)
		answered = ok && pong.Sent == asked
	}
	in.Close()
	l.cmd.Wait()
	l.gone(t, "the channel is closed")
}

// A container's first process may reap no orphans.
func TestNoZombiesAreLeft(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"of a killed agent", "sleep 1000 & kill -KILL $PPID; wait", "was killed by signal 9"},
		{"of what ranks leave behind", "setsid sleep 1000 & setsid sleep 0 & exit 3", "exited with status 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("adopt", "gompirun", "-q", "-np", "2", "sh", "-c", tt.script).CombinedOutput()
			if err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: want %q, and no zombies\n%s", err, tt.want, out)
			}
		})
	}
}

// adoptMain runs a program, and reports the zombies that it leaves, which become this process's.
func adoptMain() {
	err := proc.Adopt()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Run() // fails, as the job does
	below, err := proc.Below(nil)
	if err != nil || len(below) > 0 {
		fmt.Printf("%v: left are %+v\n", err, below)
		os.Exit(1)
	}
}

// startGuarded starts a watchdog, its agent and a rank, which is ready when it returns.
// Until silent is called their launcher pings.
func startGuarded(t *testing.T, beat time.Duration) (l *launched, in io.WriteCloser, reports *ctl.Reader,
	silent func()) {
	t.Helper()
	cmd := exec.Command("gompirun", remote.AgentFlag)
	in, _ = cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	layout := ctl.Append(nil, &ctl.Layout{Placement: []wire.Run{{Count: 1}}, Hosts: []string{"here"}})
	in.Write(ctl.Append(layout, &ctl.Launch{
		JobID: "job", Size: 1, Nodes: 1, Window: 1 << 20,
		Stdin: ctl.StdinNone, Cores: 1, Heartbeat: beat, Env: []string{"PATH=/usr/bin:/bin"},
		Programs: []ctl.Program{{Argv: []string{"sh", "-c", victims}}}, Ranks: []ctl.Rank{{}},
	}))
	ready, silent := context.WithCancel(t.Context())
	go ping(ready, in)
	reports = ctl.NewReader(out)
	for {
		m, err := reports.Next()
		if err != nil {
			t.Fatalf("%v, want the rank's output", err)
		}
		if _, ok := m.(*ctl.Output); ok {
			break
		}
	}
	l = &launched{cmd: cmd, agent: childrenOf(cmd.Process.Pid)[0]}
	l.below = append([]int{l.agent}, below(l.agent)...)
	if len(l.below) < 4 {
		t.Fatalf("processes %v, want an agent, a shell and two sleeps", l.below)
	}
	return l, in, reports, silent
}

// ping is the life of a launcher, until ctx ends.
func ping(ctx context.Context, orders io.Writer) {
	for beats := time.Tick(beat / 5); ; {
		select {
		case <-beats:
			orders.Write(ctl.Append(nil, &ctl.Ping{})) // the agent may have ended
		case <-ctx.Done():
			return
		}
	}
}
