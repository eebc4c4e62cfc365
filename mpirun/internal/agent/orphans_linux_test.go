package agent

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// An orphan is reaped when it ends, and a rank is not, whose own event says so.
func TestOrphansAreReapedAtOnceAndRanksAreNot(t *testing.T) {
	if err := proc.Adopt(); err != nil {
		t.Fatal(err)
	}
	a := &agent{local: map[int]int{}}
	if err := a.open(); err != nil {
		t.Fatal(err)
	}
	defer a.loop.Close()
	if err := a.loop.OnSignal(unix.SIGCHLD, func() { a.unreaped = true }); err != nil {
		t.Fatal(err)
	}
	p := a.add(ctl.Rank{})
	var err error
	if p.pid, err = syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	var orphan int
	if _, err := fmt.Sscan(string(out), &orphan); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(orphan, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.unreaped = true
	a.reapOrphans()
	if pid, err := unix.Wait4(p.pid, nil, 0, nil); pid != p.pid {
		t.Fatalf("the rank has been reaped: %d, %v", pid, err)
	}
	p.ended = true
	for deadline := time.Now().Add(20 * time.Second); unix.Kill(orphan, 0) == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("the orphan, process %d, is still there", orphan)
		}
		events, err := a.loop.Wait(100)
		if err != nil {
			t.Fatal(err)
		}
		a.loop.Handle(events)
		if a.unreaped {
			a.reapOrphans()
		}
	}
}

// Background work waits for its own children, and orphans are reaped meanwhile.
func TestChildrenOfWhatRunsAsideAreNoOrphans(t *testing.T) {
	l := newLooped(t)
	if err := l.loop.OnSignal(unix.SIGCHLD, func() { l.unreaped = true }); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	l.loop.Aside(func() func() {
		ran <- proc.Run(cmd)
		return func() {}
	})
	orphan := func() {
		t.Helper()
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		l.until("an orphan is reaped", func() bool { return unix.Kill(pid, 0) != nil })
	}
	orphan()
	in.Close()
	l.until("what runs aside is over", func() bool { return l.loop.Running() == 0 })
	if err := <-ran; err != nil {
		t.Errorf("it has lost its child: %v", err)
	}
	orphan()
}
