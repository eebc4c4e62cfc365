//go:build linux

package mpirun

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
)

// rounds is how often each kind of sudden death is tried.
func rounds() int {
	if testing.Short() {
		return 2
	}
	return 5
}

// victims are the processes of each rank in the tests: a wrapper with a child in its process
// group, and a child that has left the group.
const victims = `sleep 1000 & setsid sleep 1000 & echo ready; wait`

// launched is a running gompirun and the processes below it.
type launched struct {
	cmd    *exec.Cmd
	agent  int
	below  []int // all processes of the ranks
	output bytes.Buffer
}

// launchVictims starts ranks and waits until all of them say that they are ready.
func launchVictims(t *testing.T, np int, flags ...string) *launched {
	t.Helper()
	cmd := exec.Command("gompirun", append(flags, "-q", "-np", fmt.Sprint(np), "sh", "-c", victims)...)
	l := &launched{cmd: cmd}
	cmd.Stderr, cmd.WaitDelay = &l.output, 5*time.Second
	lines := started(t, cmd)
	for range np {
		if line, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v, then %v; want ready from each of %d ranks\n%s", line, err, cmd.Wait(), np,
				l.output.String())
		}
	}
	agents := childrenOf(cmd.Process.Pid)
	if len(agents) != 1 {
		t.Fatalf("gompirun has children %v, want one agent", agents)
	}
	l.agent = agents[0]
	l.below = below(l.agent)
	if len(l.below) < 3*np {
		t.Fatalf("%d processes below %d ranks, want a shell and two sleeps each", len(l.below), np)
	}
	return l
}

// below returns the processes below one.
func below(pid int) []int {
	found := childrenOf(pid)
	for i := 0; i < len(found); i++ {
		found = append(found, childrenOf(found[i])...)
	}
	return found
}

// childrenOf returns the children of a process.
func childrenOf(pid int) []int {
	var children []int
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for _, f := range strings.Fields(string(data)) {
			var child int
			fmt.Sscan(f, &child)
			children = append(children, child)
		}
	}
	return children
}

// gone waits until none of the processes is left.
func (l *launched) gone(t *testing.T, how string) {
	t.Helper()
	awaitGone(t, how, append(l.below, l.agent))
}

// lives reports whether a process of this machine has not ended.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// awaitGone waits until none of the processes is left.
func awaitGone(t *testing.T, how string, pids []int) {
	t.Helper()
	deadline := time.Now().Add(soon)
	for _, pid := range pids {
		for lives(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: process %d is left", how, pid)
			}
			time.Sleep(time.Millisecond) // there is no event for the end of somebody else's child
		}
	}
}

func TestWhateverDiesNothingIsLeft(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		strike func(l *launched)
		status int // of gompirun; -1 if it is the victim itself
	}{
		{"gompirun killed", func(l *launched) { l.cmd.Process.Kill() }, -1},
		{"agent killed", func(l *launched) { syscall.Kill(l.agent, syscall.SIGKILL) }, 125},
		{"agent terminated", func(l *launched) { syscall.Kill(l.agent, syscall.SIGTERM) }, 125},
		{"rank killed", func(l *launched) { syscall.Kill(l.below[0], syscall.SIGKILL) }, 137},
		{"interrupted", func(l *launched) { l.cmd.Process.Signal(syscall.SIGINT) }, 130},
		{"hung up", func(l *launched) { l.cmd.Process.Signal(syscall.SIGHUP) }, 129},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range rounds() {
				l := launchVictims(t, 2)
				tt.strike(l)
				err := l.cmd.Wait()
				if tt.status >= 0 && l.cmd.ProcessState.ExitCode() != tt.status {
					t.Errorf("gompirun: %v, want status %d", err, tt.status)
				}
				l.gone(t, tt.name)
			}
		})
	}
}

// An agent that cannot act is killed when no other process is left to do it.
func TestAStoppedAgentOfAKilledLauncherEnds(t *testing.T) {
	l := launchVictims(t, 2)
	syscall.Kill(l.agent, syscall.SIGSTOP)
	awaitState(t, l.agent, "T")
	l.cmd.Process.Kill()
	l.cmd.Wait()
	l.gone(t, "agent stopped and gompirun killed")
}

func TestWhatWasThereBeforeTheJobIsSpared(t *testing.T) {
	script := `sleep 1000 >/dev/null 2>&1 & echo $!; exec gompirun -q -np 1 sh -c 'kill -9 $PPID; sleep 1000'`
	out, err := exec.Command("sh", "-c", script).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 125 {
		t.Fatalf("gompirun: %v, want status 125 because its agent was killed", err)
	}
	pid := atoi(t, strings.TrimSpace(string(out)))
	if !lives(pid) {
		t.Error("a process that was there before was killed")
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

func TestAThirdInterruptEndsEvenAStoppedAgent(t *testing.T) {
	l := launchVictims(t, 2)
	syscall.Kill(l.agent, syscall.SIGSTOP)
	awaitState(t, l.agent, "T")
	ended := make(chan error, 1)
	go func() { ended <- l.cmd.Wait() }()
	for range 1000 { // signals that come too fast are one
		syscall.Kill(l.agent, syscall.SIGSTOP) // the first interrupt continues it
		l.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
			if code := l.cmd.ProcessState.ExitCode(); code != 130 { // though more interrupts come at its end
				t.Errorf("gompirun: %v, want status 130", l.cmd.ProcessState)
			}
			l.gone(t, "interrupted thrice")
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("gompirun does not end")
}

func TestASecondInterruptKillsAtOnce(t *testing.T) {
	cmd := exec.Command("gompirun", "-kill-delay", "1000", "-np", "1", "sh", "-c",
		`trap "" INT TERM; echo ready; while :; do sleep 0.01; done`)
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	started(t, cmd).ReadString('\n')
	cmd.Process.Signal(syscall.SIGINT)
	if line, err := bufio.NewReader(output).ReadString('\n'); !strings.Contains(line, "once more kills it") {
		t.Errorf("after the first interrupt: %q, %v", line, err)
	}
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("status %d, want 130", code)
	}
}

// Interrupts that come while gompirun ends do not change its status.
func TestInterruptsAtTheEndAreLate(t *testing.T) {
	for range 10 {
		k := startTalk(t, "-q", "-np", "1", "sh", "-c", "echo ready; sleep 1000")
		k.expect("ready")
		for more := true; more; {
			k.cmd.Process.Signal(syscall.SIGINT) // of which the rank dies
			select {
			case _, more = <-k.lines: // none is left of a process that has ended
			case <-time.After(100 * time.Microsecond): // signals that come too fast are one
			}
		}
		k.ends(130)
	}
}

// A node's gompirun has the job's status even where the reader of its last words does not let it
// end.
func TestAReleasedCatcherKeepsTheStatus(t *testing.T) {
	cmd := exec.Command("released", "7")
	started(t, cmd).ReadString('\n')
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("%v, want status 7", cmd.ProcessState)
	}
}

func releasedMain() {
	c := catch()
	status, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	c.release(status)
	fmt.Println("ready")
	select {}
}

// A shell dies of the signal that the program in it saves its state for: the program has its time
// all the same, however the job comes to its end.
func TestWhatAWrapperLeavesBehindMaySave(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel()
	const saves = `save() { while kill -0 $PPID 2>/dev/null; do :; done
		i=0; while test $i -lt 100; do /bin/true; i=$((i+1)); done; echo saved; exit 0; }
		trap save TERM INT; echo ready; while :; do sleep 0.01; done`
	wrapper := fmt.Sprintf("sh -c '%s'; :", saves)
	detached := fmt.Sprintf("setsid sh -c '%s'; :", strings.ReplaceAll(saves, "TERM INT", "TERM"))
	tests := []struct {
		name   string
		flags  []string
		rank   string
		strike func(k *talk)
		status int
	}{
		{"TERM", nil, wrapper, func(k *talk) { k.cmd.Process.Signal(syscall.SIGTERM) }, 143},
		{"Ctrl-C", nil, wrapper, func(k *talk) { k.cmd.Process.Signal(syscall.SIGINT) }, 130},
		{"Ctrl-C, detached", nil, detached, func(k *talk) { k.cmd.Process.Signal(syscall.SIGINT) }, 130},
		{"the time limit", []string{"-timeout", "2"}, wrapper, func(*talk) {}, 124},
		{"another rank's failure", []string{"-np", "1", "sh", "-c", "read l; exit 7", ":"}, wrapper,
			func(k *talk) { k.in.Close() }, 7},
		{"the wrapper's own failure", nil, "sh -c '" + saves + "' & read l; kill -9 $$",
			func(k *talk) { k.in.Close() }, 137},
		{"-recover", []string{"-recover"}, wrapper, func(k *talk) { k.cmd.Process.Signal(syscall.SIGTERM) }, 143},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := startTalk(t, slices.Concat([]string{"-q"}, tt.flags, []string{"-np", "1", "sh", "-c", tt.rank})...)
			k.expect("ready")
			tt.strike(k)
			k.expect("saved")
			k.ends(tt.status)
		})
	}
}

// After an interrupt ranks get INT, later TERM, and are killed at last.
func TestAnInterruptBecomesTermAndThenKill(t *testing.T) {
	t.Parallel()
	k := startTalk(t, "-q", "-kill-delay", "2", "-np", "1", "sh", "-c",
		`trap "echo got int" INT; trap "echo got term" TERM; echo ready; while :; do sleep 0.01; done`)
	k.expect("ready")
	k.cmd.Process.Signal(syscall.SIGINT)
	k.expect("got int")
	k.expect("got term")
	k.ends(130)
}

// A program in Python ends by an interrupt as by an exception.
func TestPythonCleansUpAfterAnInterrupt(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	k := startTalk(t, "-q", "-np", "2", "python3", "-uc", `
import time
try:
    print("ready")
    time.sleep(1000)
except KeyboardInterrupt:
    print("interrupt")
finally:
    print("saved")
    raise SystemExit(130)
`)
	k.expect("ready")
	k.expect("ready")
	k.cmd.Process.Signal(syscall.SIGINT)
	k.expect("interrupt")
	k.expect("saved")
	k.expect("saved")
	k.expect("gompirun: interrupted")
	for line := range k.lines {
		t.Errorf("then it says %q, want no word of ranks that ended as they were told to", line)
	}
	k.ends(130)
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitState waits until a process is in one of the given states of ps.
func awaitState(t *testing.T, pid int, states string) {
	t.Helper()
	deadline := time.Now().Add(soon)
	for {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if strings.Contains(states, rest[:1]) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is in state %s, want %s", pid, rest[:1], states)
		}
		time.Sleep(time.Millisecond) // there is no event for somebody else's stopping
	}
}
