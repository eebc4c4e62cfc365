package remote

import (
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A lasting agent does not end before it is to.
type lasting chan struct{}

func (l lasting) Kill() {}

func (l lasting) Wait() string {
	<-l
	return "has ended"
}

func TestAnAgentBehindAConnectionIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(lasting)
		a, begin := Connected(nil, nil, l), time.Now()
		if how := a.Wait(); how != "does not end" || time.Since(begin) != dyingTime {
			t.Errorf("after %v it says %q; want %q after %v", time.Since(begin), how, "does not end", dyingTime)
		}
		close(l)
		if how := a.Wait(); how != "has ended" {
			t.Errorf("it says %q, want %q", how, "has ended")
		}
	})
}

// Another process may have the number of one that has been waited for.
func TestWhoHasBeenWaitedForGetsNoSignal(t *testing.T) {
	p, other := &Process{cmd: exec.Command("true")}, exec.Command("cat")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*exec.Cmd{p.cmd, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	p.wait()
	p.signal(other.Process.Pid, syscall.SIGKILL)
	in.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}
