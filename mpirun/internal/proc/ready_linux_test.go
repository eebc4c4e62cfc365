package proc

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestReadyFindsWhatRunsBelowAShell(t *testing.T) {
	cmd := exec.Command("sh", "-c", "{ read line; while :; do :; done; } | cat; :")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	pid := cmd.Process.Pid
	t.Cleanup(func() { syscall.Kill(-pid, syscall.SIGKILL); cmd.Wait() })
	until := func(what string, holds func(ready bool, used time.Duration) bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !holds(Ready(pid)); time.Sleep(time.Millisecond) { // nothing tells
			if time.Now().After(end) {
				t.Fatalf("not in 10 s: %s", what)
			}
		}
	}
	until("all wait", func(ready bool, _ time.Duration) bool { return !ready })
	in.Write([]byte("\n"))
	_, before := Ready(pid)
	until("one computes", func(ready bool, used time.Duration) bool { return ready && used >= before+2*ClockTick })
	syscall.Kill(-pid, syscall.SIGSTOP)
	until("all are stopped", func(ready bool, _ time.Duration) bool { return !ready })
	if ready, used := Ready(1 << 30); ready || used != 0 {
		t.Errorf("a process that is gone: ready %v, used %v", ready, used)
	}
}
