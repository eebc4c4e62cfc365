//go:build linux

package mpirun

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/stress"
)

// unread runs gompirun with an output that is not read, until its end or for so
// long. strike is called when gompirun waits for a reader.
func unread(t *testing.T, most time.Duration, strike func(pid int), args ...string) (status int, output string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var errs bytes.Buffer
	cmd := exec.Command("gompirun", args...)
	cmd.Stdout, cmd.Stderr = w, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	late := time.AfterFunc(most, func() { cmd.Process.Kill() })
	defer late.Stop()
	var striking sync.WaitGroup
	defer striking.Wait()
	striking.Go(func() { // until the process has ended
		awaitIn(cmd.Process.Pid, ended, "pipe_write", "wait_for_partner") // fifo_open
		for n := 0; n < 3 && strike != nil; n++ {
			strike(cmd.Process.Pid)
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Millisecond): // signals that come too fast are one
			}
		}
	})
	cmd.Wait()
	close(ended)
	return cmd.ProcessState.ExitCode(), errs.String()
}

// awaitIn waits until a thread of a process is in one of the kernel's functions, and returns it; 0
// if ended is closed. A pipe that is full does not tell: its writer may have nothing more yet.
func awaitIn(pid int, ended <-chan struct{}, functions ...string) (thread int) {
	for {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", pid))
		for _, path := range threads {
			at, _ := os.ReadFile(path)
			if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(string(at), f) }) {
				fmt.Sscan(filepath.Base(filepath.Dir(path)), &thread)
				return thread
			}
		}
		select {
		case <-ended:
			return 0
		case <-time.After(time.Millisecond): // nothing tells
		}
	}
}

// Whoever does not read must not keep a job from ending: the agent waited for
// credit, and gompirun in its write.
func TestAJobEndsWhateverReadsItsOutput(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	send := func(sig syscall.Signal) func(int) { return func(pid int) { syscall.Kill(pid, sig) } }
	sendAfterEnd := func(sig syscall.Signal) func(int) {
		return func(pid int) {
			for len(childrenOf(pid)) > 0 { // the agent, which ends after its ranks: nothing tells
				time.Sleep(time.Millisecond)
			}
			syscall.Kill(pid, sig)
		}
	}
	tests := []struct {
		name   string
		strike func(pid int)
		args   []string
		status int
		output string
	}{
		{"time limit", nil, []string{"-timeout", "5", "-np", "2", "yes"}, 124, "time limit of 5s reached"},
		{"time limit after the ranks' end", nil, []string{"-timeout", "5", "-np", "1", "seq", "100000"}, 124,
			"time limit of 5s reached"},
		{"TERM", send(syscall.SIGTERM), []string{"-np", "1", "yes"}, 143, "ended by signal 15"},
		{"INT", send(syscall.SIGINT), []string{"-np", "1", "yes"}, 130, "interrupted"},
		{"INT after the ranks' end", sendAfterEnd(syscall.SIGINT), []string{"-np", "1", "seq", "100000"}, 130,
			"interrupted"},
		{"a FIFO for stdout", nil, []string{"-timeout", "5", "-np", "1", "-outfile-pattern", fifo(t, "F"), "echo",
			"hi"}, 124, "time limit of 5s reached"},
		{"a FIFO in the folder of output", nil,
			[]string{"-timeout", "5", "-np", "2", "-output-filename",
				filepath.Join(fifo(t, "rank.0/stdout"), "../..") + ":nojobid", "echo", "hi"}, 124,
			"time limit of 5s reached"},
		{"a FIFO and TERM", send(syscall.SIGTERM),
			[]string{"-np", "1", "-errfile-pattern", fifo(t, "F"), "sh", "-c", "yes >&2 & yes"}, 143,
			"ended by signal 15"},
		{"a file that is a pipe", nil, []string{"-timeout", "5", "-np", "1", "-outfile-pattern", "/dev/stdout", "yes"},
			124, "time limit of 5s reached"},
		{"failure", nil, []string{"-np", "2", "sh", "-c",
			`test $RANK = 1 && { yes & sleep 0.1; echo no disk >&2; exit 3; }; yes`}, 3,
			"rank 1 on localhost exited with status 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // they wait for most of the time
			status, output := unread(t, soon, tt.strike, append([]string{"-q"}, tt.args...)...)
			if status != tt.status || !strings.Contains(output, "gompirun: "+tt.output) {
				t.Errorf("status %d, want %d; it said %q, want %q", status, tt.status, output, tt.output)
			}
			if !strings.Contains(output, "gompirun: output is lost that was not read for ") {
				t.Errorf("it does not say that output is lost: %q", output)
			}
		})
	}
}

// fifo makes a FIFO.
func fifo(t *testing.T, name string) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Nothing of a job that ends well is lost, however slow its reader is.
func TestAReaderMayTakeItsTime(t *testing.T) {
	for _, rank := range []string{"seq 1000000", "sh -c 'seq 1000000 & exit 0'"} {
		t.Run(rank, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("sh", "-c", `gompirun -np 1 `+rank+` | { sleep 2.5; tail -n 1; }`).CombinedOutput()
			if want := fmt.Sprintln(1000000); err != nil || string(out) != want {
				t.Errorf("%v, %q; want %q", err, out, want)
			}
		})
	}
}

// A process left by a rank that then ends by itself is not reported as left behind.
func TestWhatEndsByItselfIsNotLeftBehind(t *testing.T) {
	t.Parallel()
	for range 30 {
		out, err := exec.Command("gompirun", "-np", "1", "sh", "-c", "cat </dev/null & exit 0").CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Fatalf("%v, %q; want no word", err, out)
		}
	}
}

// A progress bar, a line that grows all the time, is seen before it is complete.
func TestAProgressBarIsSeen(t *testing.T) {
	cmd := exec.Command("gompirun", "-np", "1", "sh", "-c", "while :; do printf .; sleep 0.02; done")
	bar := started(t, cmd)
	late := time.AfterFunc(soon, func() { cmd.Process.Kill() })
	defer late.Stop()
	for range 3 {
		if b, err := bar.ReadByte(); b != '.' || err != nil {
			t.Fatalf("read %q, %v; want a piece of the bar", b, err)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
}
