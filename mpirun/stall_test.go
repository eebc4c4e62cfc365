//go:build linux

package mpirun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gompi/comm"
	"gompi/internal/stress"
)

// stallMain is a program whose rank 2 keeps the others waiting until it gets
// USR1: in a collective, in point-to-point calls, or in Init.
func stallMain() {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGUSR1)
	if os.Args[1] == "init" && os.Getenv("RANK") == "2" {
		<-goOn
	}
	if err := stallIn(os.Args[1], goOn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func stallIn(what string, goOn chan os.Signal) error {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	buf := make([]float32, 4)
	switch {
	case c.Rank() == 2 && what != "init":
		<-goOn
		if what == "recv" {
			comm.Send(ctx, c, 0, 7, buf)
			comm.Send(ctx, c, 1, 8, buf)
		}
	case what == "recv" && c.Rank() == 0:
		_, err = comm.Recv(ctx, c, 2, 7, buf)
	case what == "recv" && c.Rank() == 1:
		_, err = comm.Irecv(c, comm.AnySource, comm.AnyTag, buf).Wait(ctx)
	}
	if what == "allreduce" && err == nil {
		err = comm.Allreduce(ctx, c, buf, buf, comm.Sum)
	}
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

func TestRanksThatWaitForLongAreReported(t *testing.T) {
	t.Parallel() // it waits most of the time
	tests := []struct {
		what string
		want []string
	}{
		{"allreduce", []string{
			"allreduce(4 float32, sum) number 2: arrived: rank 0-1; missing: rank 2",
			"localhost: rank 0-1 is in allreduce(4 float32, sum) number 2 at mpirun/stall_test.go:",
			"localhost: rank 2 is in no call, the last was barrier() number 1",
		}},
		{"recv", []string{
			"localhost: rank 0 is in recv(4 float32, rank 2, tag 7) at mpirun/stall_test.go:",
			"localhost: rank 1 is in recv(4 float32) at mpirun/stall_test.go:",
			"localhost: rank 2 is in no call, the last was barrier() number 1",
		}},
		{"init", []string{
			"localhost: rank 0-1 waits in Init for all others for ",
			"localhost: rank 2 has not called Init",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			k := startTalk(t, "-stall-warning", "0.4", "-np", "3", "stall", tt.what)
			for _, want := range tt.want {
				k.expect(want)
			}
			k.expect(tt.want[0]) // and again
			k.insist(syscall.SIGUSR1, "gompirun: the ranks continue, after having waited for about ")
			k.ends(0)
		})
	}
}

// The kernel's word of a process is told of all programs alike, soon.
func TestRanksThatAreStoppedAreReported(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	for _, tt := range []struct {
		name    string
		program []string
		survey  string
	}{
		{"gompi", []string{"rank", "meet", "say", "wait"}, " has called nothing but Init; it is stopped"},
		{"other", []string{"sh", "-c", "echo ready; exec sleep 1000"}, ` is outside gompi: "sleep 1000" is stopped`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			k := startTalk(t, append([]string{"-np", "2"}, tt.program...)...)
			k.expect("ready")
			k.expect("ready")
			rank := childrenOf(childrenOf(k.cmd.Process.Pid)[0])[1]
			eventually(t, "the program that a shell executes", func() bool {
				line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", rank))
				return err == nil && !bytes.HasPrefix(line, []byte("sh\x00"))
			})
			syscall.Kill(rank, syscall.SIGSTOP)
			k.expect(fmt.Sprintf("gompirun: localhost: rank 1 (process %d) is stopped (kill -CONT lets it continue)", rank))
			k.insist(syscall.SIGQUIT, "gompirun: localhost: rank 1"+tt.survey)
			syscall.Kill(rank, syscall.SIGCONT)
			k.expect(fmt.Sprintf("gompirun: localhost: rank 1 (process %d) continues", rank))
			k.cmd.Process.Signal(syscall.SIGTERM)
			k.ends(143)
		})
	}
}

func TestRanksThatRunOnAreReported(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	k := startTalk(t, "-stall-warning", "0.3", "-np", "2", "sh", "-c",
		`test $RANK = 0 && { until test -e $0; do sleep 0.02; done; exit; }; trap "exit 0" USR1; >$0; while :; do sleep 0.02; done`, ready)
	k.expect("gompirun: rank 0 has ended, and others run on")
	k.expect("gompirun: localhost: rank 1 is outside gompi: ")
	k.cmd.Process.Signal(syscall.SIGUSR1)
	k.ends(0)
}

func TestStacksOfThoseWhoAreMissing(t *testing.T) {
	k := startTalk(t, "-stall-warning", "0.3", "-get-stack-traces", "-np", "3", "stall", "allreduce")
	k.expect("localhost: rank 2 stands in")
	first := k.expect("goroutine ")
	// though it is in no call of ours
	for line := first; !strings.Contains(line, "gompi/mpirun.stallIn"); line = k.expect("") {
		if strings.Contains(line, "goroutine ") && line != first || !strings.Contains(line, "  | ") {
			t.Fatalf("%q, then %q: want the program's goroutine first", first, line)
		}
	}
	k.cmd.Process.Signal(syscall.SIGUSR1)
	k.ends(0)
}

func TestStacksOfAllRanksAtTheTimeLimit(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits
	k := startTalk(t, "-get-stack-traces", "-timeout", "10", "-np", "3", "stall", "allreduce")
	reported := map[string]bool{}
	stacks := 0
	for line := range k.lines {
		if rank, found := strings.CutPrefix(line, "gompirun: localhost: rank "); found &&
			strings.HasSuffix(rank, " stands in") {
			reported[rank] = true
		}
		if strings.Contains(line, "gompi/mpirun.stallIn") {
			stacks++
		}
	}
	k.ends(124)
	if len(reported) != 3 || stacks < 3 {
		t.Errorf("stacks of %v, %d with the program's function; want those of three ranks", reported, stacks)
	}
}

func TestStacksOfOtherProgramsAreTheKernels(t *testing.T) {
	k := startTalk(t, "-get-stack-traces", "-np", "1", "sh", "-c", "echo ready; while :; do sleep 0.1; done")
	k.expect("ready")
	k.insist(syscall.SIGQUIT, "localhost: rank 0 stands in")
	k.expect("(sh -c echo ready; while")
	k.expect("|   threads ")
	k.cmd.Process.Signal(syscall.SIGTERM)
	k.ends(143) // the query must end no rank
}

func TestRanksThatDoNotWaitAreSilent(t *testing.T) {
	out, err := exec.Command("gompirun", "-stall-warning", "0.05", "-np", "2", "sleep", "0.5").CombinedOutput()
	// where one sleep is over long before the other
	late := strings.Contains(string(out), "has ended, and others run on")
	if err != nil || len(out) > 0 && !late {
		t.Errorf("%v, %q; want nothing: these ranks are in no call", err, out)
	}
}
