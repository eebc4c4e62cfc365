package comm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/stress"
)

// What becomes of ranks that are processes when one of them is stopped, or killed,
// in the midst of a collective.

// drillVariable makes a process of this test a rank that drills: its value is a
// collective and a length.
const drillVariable = "COMM_TEST_DRILL"

// drillRounds is how many rounds a rank does before it says that it is ready, and
// again before it says that it goes on.
const drillRounds = 20

// TestDrill is the program of the ranks: it calls one collective again and again,
// in all its forms, and checks what it gets. It does not mind TERM, so that it can
// tell why it ends.
func TestDrill(t *testing.T) {
	v := os.Getenv(drillVariable)
	if v == "" {
		t.Skip("it is a program of other tests")
	}
	signal.Ignore(syscall.SIGTERM)
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGUSR1)
	var kind string
	var n int
	fmt.Sscan(v, &kind, &n)
	err := drill(context.Background(), kind, n, goOn)
	var revoked *comm.RevokedError
	if errors.As(err, &revoked) {
		fmt.Println("lost", revoked.Rank)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// drill returns the first error.
func drill(ctx context.Context, kind string, n int, goOn chan os.Signal) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	var answers []*answer[int64]
	for _, q := range questions(kind, c.Size(), []int{n}, []comm.Op{comm.Sum, comm.Max}) {
		answers = append(answers, ask(q, integers[int64](), c.Rank()))
	}
	for i, say := 0, drillRounds; ; i++ {
		a := answers[i%len(answers)]
		a.fill()
		if err := formOf[int64](kind).perform(ctx, c, i, &a.args); err != nil {
			return err
		}
		if err := a.check(); err != nil {
			return err
		}
		if i == say {
			fmt.Println("goes on", c.Rank(), os.Getpid())
		}
		select {
		case <-goOn:
			say = i + drillRounds
		default:
		}
	}
}

// A disaster is a job of drilling ranks, and what will be done to one of them.
type disaster struct {
	kind      string
	n, ranks  int
	transport string
	victim    int
}

func (d disaster) String() string {
	return fmt.Sprintf("%s of %d, np=%d, transport %q, victim %d", d.kind, d.n, d.ranks, d.transport, d.victim)
}

// Whatever collective the ranks are in, they bear it that one of them stands still
// for a while; and when it is killed, all others are told which, gompirun ends with
// its status and says so, and nothing is left.
func TestStressOfStoppedAndKilledRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds gompirun and starts many jobs")
	}
	gompirun := filepath.Join(t.TempDir(), "gompirun")
	if out, err := exec.Command("go", "build", "-o", gompirun, "gompi/mpirun/gompirun").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	end := stress.Until(t)
	for again := true; again; again = stress.Asked() && time.Now().Before(end) {
		for i, kind := range everyKind {
			for j, n := range []int{5, 40_000} {
				for _, p := range []int{2, 4} {
					for _, transport := range []string{"", "tcp"} {
						d := disaster{kind, n, p, transport, (i + j) % p}
						t.Run(d.String(), func(t *testing.T) { d.strike(t, gompirun) })
					}
				}
			}
		}
	}
}

func (d disaster) strike(t *testing.T, gompirun string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // 0.1 s if nothing else runs
	defer cancel()
	cmd := exec.CommandContext(ctx, gompirun, "-np", fmt.Sprint(d.ranks), os.Args[0], "-test.run=^TestDrill$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", drillVariable, d.kind, d.n), "GOMPI_TRANSPORT="+d.transport)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	pids := d.goOn(t, lines, &said)

	somewhen()
	syscall.Kill(pids[d.victim], syscall.SIGSTOP)
	for r, pid := range pids {
		if r != d.victim {
			awaitThreads(t, ctx, pid, "S") // it has nothing left to do
		}
	}
	awaitThreads(t, ctx, pids[d.victim], "T")
	cmd.Process.Signal(syscall.SIGUSR1)
	syscall.Kill(pids[d.victim], syscall.SIGCONT)
	d.goOn(t, lines, &said)

	somewhen()
	syscall.Kill(pids[d.victim], syscall.SIGKILL)
	lost := 0
	for lines.Scan() {
		if lines.Text() == fmt.Sprint("lost ", d.victim) {
			lost++
		}
	}
	cmd.Wait()
	if lost != d.ranks-1 {
		t.Errorf("%d ranks name rank %d, want all others", lost, d.victim)
	}
	if blame := fmt.Sprintf("gompirun: rank %d on localhost was killed by signal 9 (SIGKILL)", d.victim); !strings.Contains(said.String(), blame) {
		t.Errorf("there is no %q", blame)
	}
	if code := cmd.ProcessState.ExitCode(); code != 137 {
		t.Errorf("status %d, want 137", code)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d is left: %v", pid, err)
		}
	}
	if t.Failed() {
		t.Log(said.String())
	}
}

// somewhen lets a moment go by, so that what follows meets the ranks anywhere.
func somewhen() { time.Sleep(rand.N(2 * time.Millisecond)) }

// goOn waits until all ranks have said that they go on, and returns their processes.
func (d disaster) goOn(t *testing.T, lines *bufio.Scanner, said fmt.Stringer) []int {
	t.Helper()
	pids := make([]int, d.ranks)
	for range pids {
		var r, pid int
		if !lines.Scan() {
			t.Fatalf("the job ended: %v", said)
		}
		if _, err := fmt.Sscanf(lines.Text(), "goes on %d %d", &r, &pid); err != nil {
			t.Fatalf("%q, want that a rank goes on: %v", lines.Text(), said)
		}
		pids[r] = pid
	}
	return pids
}

// awaitThreads waits until all threads of a process are in the given state of ps.
func awaitThreads(t *testing.T, ctx context.Context, pid int, state string) {
	t.Helper()
	for !allThreads(pid, state) {
		if ctx.Err() != nil {
			t.Fatalf("process %d has threads that are not in state %s", pid, state)
		}
		time.Sleep(time.Millisecond) // there is no event for somebody else's sleep
	}
}

func allThreads(pid int, state string) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		_, rest, _ := strings.Cut(string(data), ") ")
		if err == nil && !strings.HasPrefix(rest, state) {
			return false
		}
	}
	return len(stats) > 0
}
