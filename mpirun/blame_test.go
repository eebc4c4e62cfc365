//go:build linux

package mpirun

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/comm"
)

// loopMain is a program as users write them: it sums in a loop and ends at the
// first error. With an argument, that rank leaves the loop after a while: with
// os.Exit(7) amid everything ("quit"), or after having closed its communicators
// ("close").
func loopMain() {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buf := make([]float32, 4<<10)
	for i := 0; ; i++ {
		b := buf[:1<<(i%13)]
		if err := comm.Allreduce(ctx, c, b, b, comm.Sum); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		switch {
		case i == 100:
			fmt.Println("ready", c.Rank(), os.Getpid())
		case i == 200 && c.Rank() == 1 && len(os.Args) > 1:
			if os.Args[1] == "close" {
				c.Close(ctx)
			}
			os.Exit(7)
		}
	}
}

// transports are the transports of the tests, in turn: shared memory, and TCP, where a cut
// connection is the first sign of a death.
var transports = [...]string{"GOMPI_TRANSPORT=", "GOMPI_TRANSPORT=tcp"}

// Ranks that fail because of another are never named as the reason, although they may end first.
func TestTheFirstToFailIsBlamed(t *testing.T) {
	t.Parallel()
	for i := range 4 * rounds() {
		cmd := exec.Command("gompirun", "-np", "4", "loop")
		cmd.Env = append(os.Environ(), transports[i%2])
		var output strings.Builder
		cmd.Stderr = &output
		victim, lines := 0, started(t, cmd)
		for range 4 {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%q, %v; want ready from each rank", line, err)
			}
			if rest, ok := strings.CutPrefix(line, "ready 1 "); ok {
				victim = atoi(t, strings.TrimSpace(rest))
			}
		}
		begun := time.Now()
		syscall.Kill(victim, syscall.SIGKILL)
		cmd.Wait()
		checkBlame(t, cmd, output.String(), 137, "was killed by signal 9 (SIGKILL)")
		if d := time.Since(begun); d > soon { // 20 ms when nothing else runs
			t.Errorf("the job ended %v after the kill", d)
		}
	}
}

func TestAnExitAmidACollectiveIsBlamed(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"quit", "close"} {
		t.Run(how, func(t *testing.T) {
			for i := range 4 * rounds() {
				cmd := exec.Command("gompirun", "-np", "4", "loop", how)
				cmd.Env = append(os.Environ(), transports[i%2])
				var output strings.Builder
				cmd.Stderr = &output
				cmd.Run()
				checkBlame(t, cmd, output.String(), 7, "exited with status 7")
			}
		})
	}
}

// An agent that does not get to run for longer than ranks wait for news of the lost peer tells of
// the death after the ranks that failed because of it have ended.
func TestADeathThatBecomesKnownLateIsBlamed(t *testing.T) {
	t.Parallel() // it waits most of the time
	cmd := exec.Command("gompirun", "-v", "-np", "2", "-H", "127.0.0.2:1,localhost:1", "loop")
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	victim, lines := 0, started(t, cmd)
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%q, %v; want ready from each rank", line, err)
		}
		if rest, ok := strings.CutPrefix(line, "ready 1 "); ok {
			victim = atoi(t, strings.TrimSpace(rest))
		}
	}
	agent := 0
	for _, pid := range childrenOf(cmd.Process.Pid) {
		if slices.Contains(childrenOf(pid), victim) {
			agent = pid
		}
	}
	if agent == 0 {
		t.Fatalf("no agent of gompirun has the child %d", victim)
	}
	syscall.Kill(agent, syscall.SIGSTOP)
	awaitState(t, agent, "T")
	syscall.Kill(victim, syscall.SIGKILL)
	var all strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.HasPrefix(lines.Text(), "gompirun: ending the job: ") {
			syscall.Kill(agent, syscall.SIGCONT)
		}
	}
	cmd.Wait()
	_, rest, _ := strings.Cut(all.String(), "gompirun: ending the job: ")
	if !strings.HasPrefix(rest, "rank 0 ") {
		t.Errorf("want the end of rank 0 to be what gompirun hears of first:\n%s", &all)
	}
	_, rest, _ = strings.Cut(rest, "MiB)\n") // the line of -v about the death of rank 1
	checkBlame(t, cmd, rest, 137, "was killed by signal 9 (SIGKILL)")
}

// checkBlame checks that gompirun ended because of rank 1.
func checkBlame(t *testing.T, cmd *exec.Cmd, output string, status int, how string) {
	t.Helper()
	if code := cmd.ProcessState.ExitCode(); code != status {
		t.Errorf("status %d, want %d", code, status)
	}
	reason := ""
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "gompirun: rank ") {
			reason = line
			break
		}
	}
	if want := "gompirun: rank 1 on localhost " + how; !strings.HasPrefix(reason, want) {
		t.Errorf("reason %q, want %q; all that was said:\n%s", reason, want, output)
	}
}
