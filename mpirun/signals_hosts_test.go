//go:build linux

package mpirun

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gompi/mpirun/internal/testbed"
)

func TestSignalsReachTheRanksOfAllHosts(t *testing.T) {
	t.Parallel()
	bed := testbed.New(t, 2)
	k := startTalk(t, "-rsh", bed.RSH(), "-H", "host1,host2", "sh", "-c",
		`for s in USR1 USR2 WINCH; do trap "echo $s $RANK" $s; done; trap "echo saved $RANK; exit 0" TERM; echo ready $$; while :; do sleep 0.02; done`)
	var ranks []int
	for range 2 {
		var pid int
		if _, err := fmt.Sscanf(k.expect("ready"), "ready %d", &pid); err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, pid)
	}
	for _, s := range []struct {
		sig    syscall.Signal
		output string
	}{{syscall.SIGUSR1, "USR1 "}, {syscall.SIGUSR2, "USR2 "}, {syscall.SIGWINCH, "WINCH "}} {
		k.cmd.Process.Signal(s.sig)
		k.expect(s.output)
		k.expect(s.output)
	}
	k.cmd.Process.Signal(syscall.SIGTSTP)
	for _, pid := range ranks {
		awaitState(t, pid, "TD") // D if it has just forked, and its child is stopped
	}
	awaitState(t, k.cmd.Process.Pid, "T")
	k.cmd.Process.Signal(syscall.SIGCONT)
	for _, pid := range ranks {
		awaitState(t, pid, "SR")
	}
	k.cmd.Process.Signal(syscall.SIGTERM)
	k.expect("saved")
	k.expect("saved")
	k.ends(143)
}

// A debugger runs on the rank's host, and the calls of ranks on all hosts are listed.
func TestAttachLogsInToTheHostOfTheRank(t *testing.T) {
	bed := testbed.New(t, 2)
	k := startTalk(t, "-rsh", bed.RSH(), "-H", "host1,host2", "sh", "-c", "echo ready; sleep 1000")
	k.expect("ready")
	k.expect("ready")
	pid := strconv.Itoa(k.cmd.Process.Pid)
	const asleep = `    host1, host2: rank 0-1 is outside gompi: "sleep 1000"`
	eventually(t, "both ranks are in the same", func() bool {
		p := startTalk(t, "ps", pid)
		p.expect(" 2      host1,host2  running  sh -c echo ready; sleep 1000")
		return strings.HasPrefix(p.expect(": rank 0"), asleep)
	})
	top := startTalk(t, "top", "-interval", "0.05", pid)
	top.expect("1     host2")
	job := jobOf(t, k.cmd.Process.Pid)
	a := startTalk(t, "attach", "-job", job, "1", "-debugger", "hostname; echo")
	a.expect("gompirun: rank 1 is process ")
	a.expect("host2")
	startTalk(t, "kill", pid).expect("has ended with status 143")
	k.ends(143)
}
