package agent

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// A wrapper's children are gone before the segment says that its rank has ended, unless they have
// lacked a processor for so long that the agent does not wait.
func TestNothingOfADeadRankRunsWhenItsStateSaysSo(t *testing.T) {
	if err := proc.Adopt(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		took, left := groupOfTheDead(t)
		if left == unix.ESRCH {
			return
		}
		if took < groupEndTime || time.Now().After(deadline) {
			t.Fatalf("its process group, when its state says after %v that it has ended: %v, want %v", took,
				left, unix.ESRCH)
		}
	}
}

// groupOfTheDead kills a wrapper and lets the agent notice its end. It returns the agent's time,
// and the kernel's error for the process group as soon as the segment says that the rank has ended.
func groupOfTheDead(t *testing.T) (took time.Duration, left error) {
	t.Helper()
	s, err := seg.New([]world.Rank{0})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := newLooped(t)
	l.launch, l.segment = &ctl.Launch{Recover: true}, s
	defer l.releases.Wait() // before the segment is closed
	p := l.add(ctl.Rank{})
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid, l.alive = cmd.Process.Pid, 1
	if _, err := out.Read(make([]byte, 1)); err != nil { // its child runs
		t.Fatal(err)
	}
	group := make(chan error)
	go func() {
		for s.State(0) != seg.Ended {
			runtime.Gosched()
		}
		group <- unix.Kill(-p.pid, 0)
	}()
	unix.Kill(p.pid, unix.SIGKILL)
	var ws unix.WaitStatus
	var used unix.Rusage
	if _, err := unix.Wait4(p.pid, &ws, 0, &used); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	l.exited(p, ws, &used)
	if l.alive != 1 || s.State(0) == seg.Ended {
		t.Error("its end is told before what it has started is gone")
	}
	l.until("its end is told", func() bool { return l.alive == 0 })
	took = time.Since(begun)
	if m := has[*ctl.Exited](l); m == nil || m.Signal != int(unix.SIGKILL) {
		t.Errorf("reported %+v, want the rank's end", m)
	}
	return took, <-group
}

// Behind srun an agent that has sent everything ends when its channel is closed, and spares
// processes that ranks may leave running. An agent with unsent reports kills them.
func TestAnAgentEndsWithItsChannel(t *testing.T) {
	for _, unsent := range []int{0, 1} {
		l := newLooped(t)
		l.launch.Srun, l.launch.KeepChildren = true, true
		l.end.drained, l.reports = true, make([]byte, unsent)
		if l.done() != (unsent == 0) {
			t.Errorf("%d bytes to send: done is %v", unsent, l.done())
		}
		l.launcherLost()
		if kills := !l.end.killing.IsZero(); kills != (unsent > 0) || l.end.over == kills {
			t.Errorf("%d bytes to send: it kills is %v, it is over %v", unsent, kills, l.end.over)
		}
	}
}

// A rank that leaves because another has ended failed later, however long the agent takes over it.
func TestARankThatLeavesBecauseAnotherEndedFailedLater(t *testing.T) {
	s, err := seg.New([]world.Rank{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := &agent{segment: s, local: map[int]int{}}
	killed, follower := a.add(ctl.Rank{Rank: 0}), a.add(ctl.Rank{Rank: 1})
	first := a.failedAt(killed, unix.WaitStatus(unix.SIGKILL), seg.Now())
	s.Rank(1).Leaving(seg.Now())
	left := s.LeftAt(1)
	exited := unix.WaitStatus(1 << 8)
	ended := seg.Now()
	for seg.Now() < ended+left-first { // the agent loses its processor in the midst
		runtime.Gosched()
	}
	if got := a.failedAt(follower, exited, ended); got != left || seg.Unix(got) < seg.Unix(first) {
		t.Errorf("it failed %d ns after the first, want %d, when it left", got-first, left-first)
	}
	if got := a.failedAt(follower, unix.WaitStatus(unix.SIGSEGV), ended); got != ended {
		t.Errorf("one that is killed failed %d ns before its end, want at its end", ended-got)
	}
}
