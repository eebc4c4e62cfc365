package mpirun

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountGroups returns a folder of all control groups (v2).
func mountGroups(t *testing.T) string {
	t.Helper()
	mount := t.TempDir()
	if err := unix.Mount("none", mount, "cgroup2", 0, ""); err != nil {
		t.Skipf("left out: no control groups (v2) can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(mount, 0) })
	return mount
}

// groupOf returns the folder of the control group (v2) that a process is in.
func groupOf(t *testing.T, mount string, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^0::(/\S*gompi-\d+-[0-9a-f]+)$`).FindSubmatch(data)
	if found == nil {
		t.Fatalf("process %d is in no group of an agent:\n%s", pid, data)
	}
	return mount + string(found[1])
}

// Ranks run in a control group of their own where one can be made, which is gone
// with the job, whatever they have left in it.
func TestRanksAreInAControlGroupOfTheirOwn(t *testing.T) {
	mount := mountGroups(t)
	for _, end := range []string{"exit 0", "exit 3", "kill -9 $PPID"} {
		cmd := exec.Command("gompirun", "-q", "-np", "2", "-stdin", "all", "sh", "-c",
			`setsid sleep 1000 & echo $$; read go; [ "$GOMPI_RANK" = 0 ] || `+end)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out := started(t, cmd)
		var pids [2]int
		for i := range pids {
			if _, err := fmt.Fscan(out, &pids[i]); err != nil {
				t.Fatalf("%s: %v, want two process ids", end, err)
			}
		}
		group := groupOf(t, mount, pids[0])
		if other := groupOf(t, mount, pids[1]); other != group {
			t.Errorf("ranks are in the groups %s and %s", group, other)
		}
		in.Close()
		t.Logf("%s: %v", end, cmd.Wait())
		if _, err := os.Stat(group); !os.IsNotExist(err) {
			t.Errorf("%s: the group %s is left: %v", end, group, err)
		}
	}
}

// Agents in several PID namespaces that have one control group may have one process id: the end of
// the one leaves the ranks of the other alone.
func TestTheEndOfAJobSparesOtherPIDNamespaces(t *testing.T) {
	mountGroups(t)
	const own = "unshare --pid --fork --kill-child --mount-proc "
	if out, err := exec.Command("sh", "-c", own+"true").CombinedOutput(); err != nil {
		t.Skipf("left out: no PID namespaces can be made here: %v %s", err, out)
	}
	rsh := filepath.Join(t.TempDir(), "rsh")
	writeProgram(t, rsh, "#!/bin/sh\nshift\nGOMAXPROCS=1 exec "+own+"sh -c \"$*\"\n") // few threads: like process ids
	k := startTalk(t, "-q", "-rsh", rsh, "-H", "a,b,c,d", "-stdin", "all", "sh", "-c",
		"echo agent $PPID end; read go; echo alive")
	agents := ""
	for range 4 {
		agents += k.expect("agent ")
	}
	for met, tries := false, 0; !met; tries++ {
		other := startTalk(t, "-q", "-rsh", rsh, "-H", "e", "sh", "-c",
			"echo agent $PPID end; read go; exec kill -9 $PPID")
		met = strings.Contains(agents, other.expect("agent "))
		fmt.Fprintln(other.in)
		if other.ends(125); tries == 100 {
			t.Fatalf("none of %d agents has a process id of %s", tries, agents)
		}
	}
	fmt.Fprintln(k.in, "go")
	for range 4 {
		k.expect("alive")
	}
	k.ends(0)
}

// A process that may live on is in no group that would have to be removed with the job.
func TestChildrenThatLiveOnAreInNoGroup(t *testing.T) {
	mountGroups(t)
	status, out, errs := runJob(t, "-q", "-no-kill-children", "-np", "2", "sh", "-c", detaches)
	if status != 0 {
		t.Errorf("status %d\n%s", status, errs)
	}
	pids := children(t, out)
	wantAlive(t, pids)
	for _, pid := range pids {
		if group, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err != nil ||
			bytes.Contains(group, []byte("gompi-")) {
			t.Errorf("process %d is in %q, %v", pid, group, err)
		}
	}
}

// An agent that is killed together with its launcher leaves its group, which the next
// agent removes, and no other.
func TestTheNextAgentRemovesTheGroupsOfTheKilled(t *testing.T) {
	mount := mountGroups(t)
	living := launchVictims(t, 1)
	defer func() {
		living.cmd.Process.Kill()
		living.cmd.Wait()
		living.gone(t, "launcher killed")
	}()
	killed := launchVictims(t, 1)
	for _, pid := range []int{killed.cmd.Process.Pid, killed.agent} {
		syscall.Kill(pid, syscall.SIGSTOP)
		awaitState(t, pid, "T")
	}
	left, inUse := groupOf(t, mount, killed.below[0]), groupOf(t, mount, living.below[0])
	syscall.Kill(killed.agent, syscall.SIGKILL)
	killed.cmd.Process.Kill()
	killed.cmd.Wait()
	if _, err := os.Stat(left); err != nil { // it has processes: no other job's agent removes it yet
		t.Fatalf("%v, want a group that is left: the test has shown nothing", err)
	}
	for _, pid := range killed.below { // what has left its process group outlives its rank
		syscall.Kill(pid, syscall.SIGKILL)
	}
	killed.gone(t, "agent and launcher killed")
	if out, err := exec.Command("gompirun", "-np", "1", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the group of an agent that was killed is left: %v", err)
	}
	if _, err := os.Stat(inUse); err != nil {
		t.Errorf("the group of an agent that lives: %v", err)
	}
}

// A gompirun that is killed as a rank leaves a group below its agent's. Both are gone with the job.
func TestGroupsBelowGroupsAreRemoved(t *testing.T) {
	mount := mountGroups(t)
	cmd := exec.Command("gompirun", "-q", "-np", "2", "-kill-delay", "0", "-stdin", "1", "sh", "-c",
		`[ "$GOMPI_RANK" = 0 ] && exec gompirun -np 1 sh -c 'echo $$; exec sleep 1000'; read go; exit 3`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := started(t, cmd)
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	inner := groupOf(t, mount, pid)
	outer := filepath.Dir(inner)
	in.Close()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the job ends with %v, want status 3", err)
	}
	if _, err := os.Stat(outer); !os.IsNotExist(err) || !strings.Contains(filepath.Base(outer), "gompi-") {
		t.Errorf("the group %s, with %s below it: %v", outer, inner, err)
	}
}
