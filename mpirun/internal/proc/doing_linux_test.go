package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// start starts a program that has come to wait for something, and is ended with the test.
func start(t *testing.T, name string, args ...string) int {
	t.Helper()
	cmd := exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a shell ends with its program
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { in.Close(); syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); cmd.Wait() })
	for end := time.Now().Add(10 * time.Second); !sleeps(cmd.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s %q does not come to wait: %s", name, args, Doing(cmd.Process.Pid))
		}
	}
	return cmd.Process.Pid
}

// sleeps reports whether the process that does the work sleeps in its own program.
func sleeps(pid int) bool {
	doing := Doing(Worker(pid))
	return regexp.MustCompile(`^"(cat|sleep 1000)" is sleeping`).MatchString(doing)
}

func TestDoingNamesTheProgramAndWhatItIsIn(t *testing.T) {
	pid := start(t, "cat")
	if got := Doing(pid); !regexp.MustCompile(`^"cat" is sleeping( in \w+)?$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	if got := Threads(pid); !regexp.MustCompile(`^process \d+ \(cat\)\n  threads sleeping( in \w+)?: 1\n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	if got := Times(pid); !regexp.MustCompile(`^process \d+ began \d[\d.]*m?s ago and has computed for \d+m?s$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	if got := PythonStack(pid); got != "" {
		t.Errorf("cat has a stack of Python: %q", got)
	}
}

func TestWorkerIsWhatAShellWaitsFor(t *testing.T) {
	shell := start(t, "sh", "-c", "sleep 1000; true")
	worker := Worker(shell)
	if got := Doing(worker); !regexp.MustCompile(`^"sleep 1000" is sleeping`).MatchString(got) {
		t.Errorf("the worker of a shell: %q", got)
	}
}

func TestUsesGompiAsItsBuildSays(t *testing.T) {
	if !UsesGompi(os.Getpid()) {
		t.Error("this test is no program with gompi in it")
	}
	if UsesGompi(start(t, "cat")) {
		t.Error("cat is a program with gompi in it")
	}
}

func TestAProcessThatIsGone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	pid := cmd.Process.Pid
	if _, err := os.Stat(filepath.Clean(dirOf(pid))); err == nil {
		t.Skip("its number is another's already")
	}
	if got := Doing(pid); got != `"" is gone` {
		t.Errorf("got %q", got)
	}
	if got := Times(pid); !regexp.MustCompile(`^process \d+ is gone$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	if !UsesGompi(pid) {
		t.Error("nothing can be said of who is gone, and something is said")
	}
}

// The time of a child that has ended is its parent's, and the memory of one that runs counts.
func TestWhatAProgramUsesIncludesItsChildren(t *testing.T) {
	pid := start(t, "sh", "-c", `sh -c "i=0; while [ \$i -lt 300000 ]; do i=\$((i+1)); done"; sleep 1000; true`)
	cpu, resident := UsedByTree(pid)
	own, less := Used(pid)
	if _, child := Used(Worker(pid)); cpu < own+10*time.Millisecond || resident <= less || resident <= child {
		t.Errorf("%v and %d bytes, of which its own are %v and %d, and its child's %d", cpu, resident, own, less, child)
	}
}
