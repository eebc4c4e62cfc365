package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// look looks at a process until it is found to be as wanted.
func (w *Watch) look(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // nothing tells
		got := w.Look()
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func TestAWatchFindsAStoppedProcess(t *testing.T) {
	pid := start(t, "cat")
	w := NewWatch(pid)
	w.look(t, "")
	if w.Since() != 0 {
		t.Errorf("nothing keeps it from running, for %v", w.Since())
	}
	syscall.Kill(pid, syscall.SIGSTOP)
	w.look(t, Stopped)
	syscall.Kill(pid, syscall.SIGCONT)
	w.look(t, "")
	if got := NewWatch(1 << 30).Look(); got != "" {
		t.Errorf("a process that is gone: %q", got)
	}
}

func TestAWatchFindsAProcessThatGetsNoProcessor(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line; while :; do :; done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	confine(t, cmd.Process.Pid)
	w := NewWatch(cmd.Process.Pid)
	w.look(t, "")
	in.Write([]byte("\n"))
	w.look(t, Starves)
}

// confine leaves a process a thousandth of a processor, in one piece each second.
func confine(t *testing.T, pid int) {
	t.Helper()
	var err error
	for _, where := range []struct {
		root  string
		files []string
	}{
		{"/sys/fs/cgroup/cpu", []string{"cpu.cfs_period_us", "1000000", "cpu.cfs_quota_us", "1000"}},
		{"/sys/fs/cgroup", []string{"cpu.max", "1000 1000000"}},
	} {
		dir := filepath.Join(where.root, "gompi-test-"+strconv.Itoa(pid))
		if err = os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		files := append(where.files, "cgroup.procs", strconv.Itoa(pid))
		for i := 0; i < len(files) && err == nil; i += 2 {
			err = os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0)
		}
		if err == nil {
			return
		}
	}
	t.Skipf("no control group can be made here: %v", err)
}
