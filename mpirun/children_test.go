//go:build linux

package mpirun

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gompi/internal/stress"
)

// detaches is a rank's script: it leaves a process that holds none of the rank's output, and says
// which.
const detaches = "setsid sleep 1000 >/dev/null 2>&1 & echo $!; "

// failsAfter is a script in which rank 1 fails with status 4 when rank 0 has left its process, and
// rank 0 ends so. It needs the path of a pipe.
func failsAfter(end string) string {
	return detaches + `if test $RANK = 0; then echo go >"$0"; ` + end + `; else read go <"$0"; exit 4; fi`
}

// failsLater is a script in which rank 1 fails with status 4 when rank 0 has ended, and has been
// waited for.
const failsLater = detaches + `if test $RANK = 0; then echo $$ >"$0"; else read pid <"$0"; while kill -0 $pid 2>/dev/null; do :; done; exit 4; fi`

// children returns the processes whose numbers two ranks have written. The test's end kills them.
func children(t *testing.T, out string) []int {
	t.Helper()
	var pids []int
	for _, word := range strings.Fields(out) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("ranks say %q, want process ids", out)
		}
		pids = append(pids, pid)
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	}
	if len(pids) != 2 {
		t.Fatalf("ranks say %q, want two process ids", out)
	}
	return pids
}

// wantAlive checks that processes live.
func wantAlive(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if !lives(pid) {
			t.Errorf("process %d, which a rank has left, was ended with the job", pid)
		}
	}
}

func TestChildrenLiveOnWhereTheyMay(t *testing.T) {
	for _, tt := range []struct {
		name, flags, script string
		status              int
		live                bool
	}{
		{"one host", "-np 2", detaches, 0, true},
		{"two addresses", "-H localhost,127.0.0.2", detaches, 0, true},
		{"output still open", "-np 2", "setsid sleep 1000 & echo $!", 0, true},
		{"the last rank fails", "-np 2", failsAfter("exit 0"), 4, false},
		{"a rank of another host fails", "-H localhost,127.0.0.2", failsAfter("sleep 1000"), 4, false},
		{"one fails when all of the other host have ended well", "-H localhost,127.0.0.2", failsLater, 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields("-q -no-kill-children "+tt.flags), "sh", "-c", tt.script, fifo(t, "go"))
			status, out, errs := runJob(t, args...)
			pids := children(t, out)
			if status != tt.status {
				t.Errorf("status %d, want %d\n%s", status, tt.status, errs)
			}
			if tt.live {
				wantAlive(t, pids)
			} else {
				awaitGone(t, tt.name, pids)
			}
		})
	}
}

// A process that lives on and writes for ever does not keep the job from ending, and ends by the
// pipe that is closed.
func TestAChildThatWritesForEverDoesNotHoldTheJob(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel()
	cmd := exec.Command("gompirun", "-q", "-no-kill-children", "-np", "2", "sh", "-c", "setsid yes & echo $! >&2")
	var errs strings.Builder
	cmd.Stderr = &errs // stdout goes nowhere
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	awaitGone(t, "its output is closed", children(t, errs.String()))
}

func TestChildrenLiveOnOnNodesStartedOneByOne(t *testing.T) {
	zero, one := pair(t, "-no-kill-children", "sh", "-c", detaches)
	zero.wants(t, 0)
	one.wants(t, 0)
	wantAlive(t, children(t, zero.out.String()))
	zero, one = pair(t, "-no-kill-children", "sh", "-c", failsAfter("sleep 1000"), fifo(t, "go"))
	zero.wants(t, 4)
	one.wants(t, 4)
	awaitGone(t, "rank 1 fails", children(t, zero.out.String()))
}
