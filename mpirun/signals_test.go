//go:build linux

package mpirun

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A talk is a running gompirun whose output is read line by line.
type talk struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func startTalk(t *testing.T, args ...string) *talk {
	t.Helper()
	k := &talk{t: t, cmd: inGroup(exec.Command("gompirun", args...))}
	k.start()
	return k
}

// inGroup gives a command a process group of its own, as a shell does: the kernel does not stop one
// without a parent in another group of the session.
func inGroup(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (k *talk) start() {
	k.t.Helper()
	k.lines = make(chan string, 100)
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	k.cmd.Stderr = k.cmd.Stdout
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		k.t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() { // until gompirun has ended
		defer close(k.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			k.lines <- s.Text()
		}
	}()
	k.t.Cleanup(func() {
		k.cmd.Process.Kill()
		k.cmd.Wait()
	})
}

// expect waits for a line that holds want, and returns it.
func (k *talk) expect(want string) string {
	k.t.Helper()
	return k.await(want, 0, nil)
}

// insist sends gompirun a signal, again and again, until there is such a line: whoever got no
// processor may have missed the first.
func (k *talk) insist(sig syscall.Signal, want string) string {
	k.t.Helper()
	k.cmd.Process.Signal(sig)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	return k.await(want, sig, again.C)
}

func (k *talk) await(want string, sig syscall.Signal, again <-chan time.Time) string {
	k.t.Helper()
	deadline := time.After(soon)
	var others []string
	for {
		select {
		case line, ok := <-k.lines:
			if !ok {
				k.t.Fatalf("the output ended before %q: %q", want, others)
			}
			if strings.Contains(line, want) {
				return line
			}
			others = append(others, line)
		case <-again:
			k.cmd.Process.Signal(sig)
		case <-deadline:
			k.t.Fatalf("no line with %q: %q", want, others)
		}
	}
}

// ends waits until gompirun has ended, with this exit status.
func (k *talk) ends(status int) {
	k.t.Helper()
	for range k.lines { // to the end
	}
	k.cmd.Wait()
	if code := k.cmd.ProcessState.ExitCode(); code != status {
		k.t.Errorf("status %d, want %d", code, status)
	}
}

func TestSignalsAreHandedOnToAllRanks(t *testing.T) {
	k := startTalk(t, "-np", "2", "sh", "-c",
		`trap "echo usr1 $RANK" USR1; trap "echo usr2 $RANK; exit 0" USR2; echo ready; while :; do sleep 0.02; done`)
	k.expect("ready")
	k.expect("ready")
	k.cmd.Process.Signal(syscall.SIGUSR1)
	k.expect("usr1")
	k.expect("usr1")
	k.cmd.Process.Signal(syscall.SIGUSR2)
	k.expect("usr2")
	k.expect("usr2")
	k.ends(0)
}

func TestStoppingAndContinuingTheJob(t *testing.T) {
	k := startTalk(t, "-np", "1", "sh", "-c", `echo pid $$; while :; do sleep 0.02; done`)
	var rank int
	for line := range k.lines {
		if pid, ok := strings.CutPrefix(line, "pid "); ok {
			rank = atoi(t, pid)
			break
		}
	}
	k.cmd.Process.Signal(syscall.SIGTSTP)
	awaitState(t, rank, "TD") // D if it has just forked, and its child is stopped
	awaitState(t, k.cmd.Process.Pid, "T")
	k.cmd.Process.Signal(syscall.SIGCONT)
	awaitState(t, rank, "SR")
	k.cmd.Process.Signal(syscall.SIGINT)
	k.ends(130)
}

// A job that is told to continue right behind the order to stop runs, in whatever order Go's
// runtime has the two.
func TestContinuingRightBehindStopping(t *testing.T) {
	k := startTalk(t, "-np", "1", "sh", "-c", `trap "echo usr1" USR1; echo ready; while :; do sleep 0.02; done`)
	k.expect("ready")
	for range 10 {
		k.cmd.Process.Signal(syscall.SIGTSTP)
		k.cmd.Process.Signal(syscall.SIGCONT)
		k.cmd.Process.Signal(syscall.SIGUSR1)
		k.expect("usr1")
	}
	k.cmd.Process.Signal(syscall.SIGINT)
	k.ends(130)
}

// A CONT that comes before the process stops itself keeps it from that, and one that comes later
// continues it.
func TestAMarkStopsUnlessContinued(t *testing.T) {
	for _, before := range []bool{true, false} {
		k := &talk{t: t, cmd: inGroup(exec.Command("marked"))}
		k.start()
		k.expect("marked")
		if before {
			k.cmd.Process.Signal(syscall.SIGCONT)
		}
		k.in.Close()
		if !before {
			awaitState(t, k.cmd.Process.Pid, "T")
			k.cmd.Process.Signal(syscall.SIGCONT)
		}
		k.expect("runs")
		k.ends(0)
	}
}

func markedMain() {
	m := newMark()
	m.set()
	fmt.Println("marked")
	io.Copy(io.Discard, os.Stdin)
	m.stop(nil)
	void := make(chan struct{})
	close(void)
	m.set()
	m.stop(void)
	fmt.Println("runs")
}

// Ctrl-Z in a container, where gompirun is the first process: it continues, and still hears
// other signals.
func TestTheFirstProcessOfAContainerIsNotStopped(t *testing.T) {
	if err := exec.Command("unshare", "--map-root-user", "--pid", "--fork", "true").Run(); err != nil {
		t.Skipf("no process ids of its own here: %v", err)
	}
	out, err := exec.Command("timeout", "-k", "1", fmt.Sprint(soon.Seconds()),
		"unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc",
		"gompirun", "-np", "1", "sh", "-c", `trap "echo usr1; exit 0" USR1; kill -TSTP 1; kill -USR1 1; while :; do sleep 0.02; done`).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "usr1") {
		t.Errorf("%v after TSTP, then USR1, want usr1 from the rank:\n%s", err, out)
	}
}

func TestQuitReportsWhatRanksAreIn(t *testing.T) {
	k := startTalk(t, "-np", "2", "rank", "meet", "0:wait", "stuck")
	k.expect("cards")
	k.expect("cards")
	k.insist(syscall.SIGQUIT, ": rank 1 is in allreduce(1024 float32, sum)")
	k.cmd.Process.Signal(syscall.SIGINT)
	k.ends(130) // QUIT must not end the job
}
