package agent

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/tree"
)

// What a wrapper has started is gone before the segment says that its rank has ended.
func TestNothingOfADeadRankRunsWhenItsStateSaysSo(t *testing.T) {
	if err := tree.Adopt(); err != nil {
		t.Fatal(err)
	}
	s, err := seg.New([]world.Rank{0})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := &agent{launch: &ctl.Launch{Recover: true}, segment: s, local: map[int]int{}}
	defer a.releases.Wait() // before the segment is closed
	p := a.add(ctl.Rank{})
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid, a.alive = cmd.Process.Pid, 1
	if _, err := out.Read(make([]byte, 1)); err != nil { // its child runs
		t.Fatal(err)
	}
	left := make(chan error)
	go func() {
		for s.State(0) != seg.Ended {
			runtime.Gosched()
		}
		left <- unix.Kill(-p.pid, 0)
	}()
	unix.Kill(p.pid, unix.SIGKILL)
	var ws unix.WaitStatus
	var used unix.Rusage
	if _, err := unix.Wait4(p.pid, &ws, 0, &used); err != nil {
		t.Fatal(err)
	}
	a.exited(p, ws, &used)
	if err := <-left; err != unix.ESRCH {
		t.Errorf("its process group, when its state says that it has ended: %v, want %v", err, unix.ESRCH)
	}
}
