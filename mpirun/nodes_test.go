//go:build linux

package mpirun

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/testbed"
)

// A node is a gompirun that a test has started by hand.
type node struct {
	cmd    *exec.Cmd
	out    watched
	err    watched
	status chan int
}

// watched is output that a test can wait for.
type watched struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

const testToken = "GOMPI_TOKEN=0123456789abcdef"

// startNode starts a gompirun with some environment.
func startNode(t *testing.T, env []string, args ...string) *node {
	t.Helper()
	n := &node{cmd: inGroup(exec.Command("gompirun", args...)), status: make(chan int, 1)}
	n.cmd.Env = append(os.Environ(), env...)
	n.cmd.Stdout, n.cmd.Stderr, n.cmd.WaitDelay = &n.out, &n.err, 5*time.Second
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.cmd.Process.Kill() })
	go func() {
		n.cmd.Wait()
		n.status <- n.cmd.ProcessState.ExitCode()
	}()
	return n
}

// wants waits for the exit status, and prints the output if it differs.
func (n *node) wants(t *testing.T, status int) {
	t.Helper()
	select {
	case got := <-n.status:
		if got != status {
			t.Fatalf("%q: status %d, want %d\n%s%s", n.cmd.Args, got, status, n.out.String(), n.err.String())
		}
	case <-time.After(2 * soon):
		n.cmd.Process.Signal(syscall.SIGABRT) // Go's stacks say where it waits
		<-n.status
		t.Fatalf("%q has not ended\n%s%s", n.cmd.Args, n.out.String(), n.err.String())
	}
}

// awaitOutput waits until the node's ranks have written text some times.
func (n *node) awaitOutput(t *testing.T, text string, times int) {
	t.Helper()
	n.writes(t, &n.out, text, times)
}

// awaitLog waits until the node's gompirun has written text.
func (n *node) awaitLog(t *testing.T, text string) {
	t.Helper()
	n.writes(t, &n.err, text, 1)
}

func (n *node) writes(t *testing.T, w *watched, text string, times int) {
	t.Helper()
	for deadline := time.Now().Add(soon); strings.Count(w.String(), text) < times; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q has not said %q %d times\n%s%s", n.cmd.Args, text, times, n.out.String(), n.err.String())
		}
	}
}

// place returns an address where nodes can meet, on which no process listens.
func place(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
}

// pair starts two nodes that run the same.
func pair(t *testing.T, args ...string) (*node, *node) {
	t.Helper()
	at := place(t)
	start := func(rank string) *node {
		line := append([]string{"-q", "-nnodes", "2", "-node-rank", rank, "-rdzv-endpoint", at, "-start-timeout",
			"60"}, args...)
		return startNode(t, []string{testToken, "NODE=" + rank}, line...)
	}
	other := start("1")
	return start("0"), other
}

func TestNodesStartedOneByOneAreOneJob(t *testing.T) {
	zero, one := pair(t, "-nproc-per-node", "2", "sh", "-c",
		`rank meet goodbye && echo $RANK on $NODE of $GROUP_WORLD_SIZE, $GROUP_RANK at $MASTER_ADDR, token $GOMPI_TOKEN.`)
	zero.wants(t, 0)
	one.wants(t, 0)
	want := []string{
		"0 on 0 of 2, 0 at 127.0.0.1, token .", "1 on 0 of 2, 0 at 127.0.0.1, token .",
		"2 on 1 of 2, 1 at 127.0.0.1, token .", "3 on 1 of 2, 1 at 127.0.0.1, token .",
	}
	output := regexp.MustCompile(`(?m)^\d on .*$`).FindAllString(zero.out.String(), -1)
	slices.Sort(output)
	if !slices.Equal(output, want) {
		t.Errorf("ranks say %q, want %q\n%s", output, want, zero.out.String())
	}
	if strings.Count(zero.out.String(), "rank ") != 4 || one.out.String() != "" {
		t.Errorf("node 0 shows\n%snode 1 shows\n%s, want all of it at node 0", zero.out.String(), one.out.String())
	}
}

func TestNodesMayTakeDifferentNumbersOfRanks(t *testing.T) {
	at := place(t)
	args := []string{"-q", "-nnodes", "2", "-master-addr", "127.0.0.1", "-master-port",
		at[strings.LastIndex(at, ":")+1:]}
	one := startNode(t, []string{testToken},
		append(args, "-node-rank", "1", "-nproc-per-node", "3", "sh", "-c", "echo three")...)
	zero := startNode(t, []string{testToken},
		append(args, "-node-rank", "0", "-nproc-per-node", "1", "sh", "-c", "echo one of $WORLD_SIZE")...)
	zero.wants(t, 0)
	one.wants(t, 0)
	if out := zero.out.String(); strings.Count(out, "three\n") != 3 || strings.Count(out, "one of 4\n") != 1 {
		t.Errorf("ranks say\n%s", out)
	}
}

// Users who set torchrun's variables need not type its flags.
func TestTorchrunsVariablesMakeANode(t *testing.T) {
	at := place(t)
	start := func(rank string) *node {
		return startNode(t, []string{testToken, "PET_NNODES=2", "PET_NPROC_PER_NODE=5", "PET_NODE_RANK=" + rank,
			"PET_RDZV_ENDPOINT=" + at, "PET_RDZV_ID=job"},
			"-q", "-nproc-per-node", "2", "sh", "-c", "echo $TORCHELASTIC_RUN_ID: $RANK of $WORLD_SIZE")
	}
	one, zero := start("1"), start("0")
	zero.wants(t, 0)
	one.wants(t, 0)
	if out := zero.out.String(); strings.Count(out, "job: ") != 4 || !strings.Contains(out, "job: 3 of 4\n") {
		t.Errorf("ranks say\n%s", out)
	}
	if output := one.err.String(); !strings.HasPrefix(output,
		"gompirun: PET_NNODES, PET_NPROC_PER_NODE, PET_RDZV_ENDPOINT, PET_RDZV_ID, PET_NODE_RANK: as -nnodes=2 ") {
		t.Errorf("the node says %q, want what the variables have done", output)
	}
}

func TestWithoutNumbersTheFirstAtTheMeetingPlaceIsNode0(t *testing.T) {
	at := place(t)
	args := []string{"-q", "-nnodes", "3", "-rdzv-endpoint", at, "-rdzv-id", "7", "sh", "-c",
		"echo $TORCHELASTIC_RUN_ID: $RANK of $WORLD_SIZE"}
	var nodes []*node
	for range 3 {
		nodes = append(nodes, startNode(t, []string{testToken}, args...))
	}
	all := ""
	for _, n := range nodes {
		n.wants(t, 0)
		all += n.out.String()
	}
	for rank := range 3 {
		if !strings.Contains(all, fmt.Sprintf("7: %d of 3\n", rank)) {
			t.Errorf("no rank %d of 3:\n%s", rank, all)
		}
	}
}

func TestAllNodesEndAsTheJobDoes(t *testing.T) {
	zero, one := pair(t, "sh", "-c", `if test $RANK = 1; then echo no disk >&2; exit 7; fi; sleep 100`)
	zero.wants(t, 7)
	one.wants(t, 7)
	for _, n := range []*node{zero, one} {
		if output := n.err.String(); !strings.Contains(output, "rank 1 on ") ||
			!strings.Contains(output, "  | no disk") {
			t.Errorf("a node says %q, want which rank failed and why", output)
		}
	}
}

func TestNodesStartAgainTogether(t *testing.T) {
	zero, one := pair(t, "-max-restarts", "2", "sh", "-c",
		`rank meet goodbye; test $RANK = 0 || exit $((1 - $GOMPI_RESTARTS))`)
	zero.wants(t, 0)
	one.wants(t, 0)
	if output := zero.err.String(); strings.Count(output, "restart 1 of 2: rank 1 on ") != 1 {
		t.Errorf("node 0 says %q, want one restart", output)
	}
}

func TestASignalToAnyNodeReachesTheJob(t *testing.T) {
	zero, one := pair(t, "sh", "-c", `trap "echo usr; exit 0" USR1; echo ready; while :; do sleep 0.01; done`)
	zero.awaitOutput(t, "ready", 2)
	one.cmd.Process.Signal(syscall.SIGUSR1)
	zero.wants(t, 0)
	one.wants(t, 0)
	if strings.Count(zero.out.String(), "usr") != 2 {
		t.Errorf("ranks say %q, want that each has had USR1", zero.out.String())
	}
	zero, one = pair(t, "sh", "-c", "echo ready; sleep 100")
	zero.awaitOutput(t, "ready", 2)
	one.cmd.Process.Signal(syscall.SIGTERM)
	zero.wants(t, 143)
	one.wants(t, 143)
}

// TestALostNodeEndsTheJob kills the gompirun of one node and then of the other.
func TestALostNodeEndsTheJob(t *testing.T) {
	for lost, want := range []string{"node 0 at 127.0.0.1", "rank 1 with it"} {
		zero, one := pair(t, "sh", "-c", "sleep 1000 & setsid sleep 1000 & echo ready $$; wait")
		zero.awaitOutput(t, "ready", 2)
		all := slices.Concat(below(zero.cmd.Process.Pid), below(one.cmd.Process.Pid))
		if len(all) < 8 {
			t.Fatalf("%d processes below the nodes, want agents, shells and sleeps", len(all))
		}
		victim, other := one, zero
		if lost == 0 {
			victim, other = zero, one
		}
		victim.cmd.Process.Kill()
		other.wants(t, statusFailed)
		if !strings.Contains(other.err.String(), want) {
			t.Errorf("the node that is left says %q, want %q", other.err.String(), want)
		}
		awaitGone(t, fmt.Sprintf("node %d killed", lost), all)
	}
}

// TestAFrozenNodeEndsTheJob stops all processes of one node, or its gompirun alone, or all others
// of the node. Running processes end, and so do the stopped ones as soon as they continue.
func TestAFrozenNodeEndsTheJob(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	const all, launcher, rest = "all of", "gompirun of", "agent and ranks of"
	for _, tt := range []struct {
		frozen string
		node   int
		want   string // output of the other node
	}{
		{all, 1, "(1): nothing heard for "},
		{launcher, 1, "(1): nothing heard for "},
		{rest, 1, "(1): nothing heard for "},
		{all, 0, fmt.Sprintf("nothing heard from it for %v", ctl.Silence*beat)},
		{launcher, 0, fmt.Sprintf("nothing heard from it for %v", ctl.Silence*beat)},
	} {
		t.Run(fmt.Sprint(tt.frozen, " node ", tt.node), func(t *testing.T) {
			t.Parallel()
			zero, one := pair(t, "-heartbeat", beat.String(), "sh", "-c",
				"sleep 1000 & setsid sleep 1000 & echo ready; wait")
			zero.awaitOutput(t, "ready", 2)
			nodes := []*node{zero, one}
			frozen, other := nodes[tt.node], nodes[1-tt.node]
			agentAndRanks := below(frozen.cmd.Process.Pid)
			victims := map[string][]int{all: append(agentAndRanks, frozen.cmd.Process.Pid),
				launcher: {frozen.cmd.Process.Pid}, rest: agentAndRanks}[tt.frozen]
			both := append(below(other.cmd.Process.Pid), agentAndRanks...)
			if len(both) != 8 {
				t.Fatalf("%d processes below the nodes, want agents, shells and sleeps", len(both))
			}
			signalAll(victims, syscall.SIGSTOP)
			begun := time.Now()
			other.wants(t, statusFailed)
			if took := time.Since(begun); took > later {
				t.Errorf("the other node ended after %v, want %v or less", took, later)
			}
			if !strings.Contains(other.err.String(), tt.want) {
				t.Errorf("the other node says %q, want %q", other.err.String(), tt.want)
			}
			signalAll(victims, syscall.SIGCONT)
			frozen.wants(t, statusFailed)
			awaitGone(t, tt.frozen, both)
		})
	}
}

// TestAPausedNode0IsNotFrozen stops the job by the user's wish for longer than
// anybody may be silent.
func TestAPausedNode0IsNotFrozen(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	zero, one := pair(t, "-heartbeat", beat.String(), "sh", "-c",
		`trap "exit 0" USR1; echo ready; while :; do sleep 0.01; done`)
	zero.awaitOutput(t, "ready", 2)
	zero.cmd.Process.Signal(syscall.SIGTSTP)
	awaitState(t, zero.cmd.Process.Pid, "T")
	select {
	case status := <-one.status:
		t.Fatalf("the other node ended with status %d: %s", status, one.err.String())
	case <-time.After(2 * ctl.Silence * beat):
	}
	zero.cmd.Process.Signal(syscall.SIGCONT)
	zero.cmd.Process.Signal(syscall.SIGUSR1)
	zero.wants(t, 0)
	one.wants(t, 0)
}

// A signal that ends the job ends the ranks of its node, though node 0 does not read it.
func TestASignalEndsANodeWhileNode0IsSuspended(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		zero, one := pair(t, "sh", "-c", "echo ready; sleep 1000")
		zero.awaitOutput(t, "ready", 2)
		all := slices.Concat(below(zero.cmd.Process.Pid), below(one.cmd.Process.Pid))
		zero.cmd.Process.Signal(syscall.SIGTSTP)
		awaitState(t, zero.cmd.Process.Pid, "T")
		one.cmd.Process.Signal(sig)
		one.wants(t, 128+int(sig))
		if !strings.Contains(one.err.String(), "does not answer, and the ranks of this node are ended") {
			t.Errorf("the node says %q, want why it has ended", one.err.String())
		}
		zero.cmd.Process.Signal(syscall.SIGCONT)
		<-zero.status // of the signal, or of the loss of the node
		awaitGone(t, sig.String(), all)
	}
}

// TestNodesThatComeInTimeJoin has a third node come after there are enough, and a
// fourth when the job has begun.
func TestNodesThatComeInTimeJoin(t *testing.T) {
	stress.Long(t, "it waits for nodes that do not come")
	t.Parallel() // it waits most of the time
	at := place(t)
	start := func(rank string) *node {
		return startNode(t, []string{testToken}, "-nnodes=2:4", "-node-rank", rank,
			"--rdzv_conf=last_call_timeout=10,join_timeout=30,timeout=900", "-rdzv-endpoint", at, "sh", "-c",
			"echo ready of $WORLD_SIZE; sleep 1000")
	}
	zero := start("0")
	one := start("1")
	zero.awaitLog(t, "2 nodes are here, which is enough: waiting 10s for more (-last-call)")
	two := start("2")
	zero.awaitOutput(t, "ready of 3\n", 3)
	late := start("3")
	late.wants(t, statusFailed)
	if output := late.err.String(); !strings.Contains(output,
		"node 0 refuses this node: the job has begun without this node") {
		t.Errorf("the late node says %q, want why it is none", output)
	}
	zero.awaitLog(t, " has come too late, and was sent away")
	zero.cmd.Process.Signal(syscall.SIGTERM)
	for _, n := range []*node{zero, one, two} {
		n.wants(t, 143)
	}
}

func TestNoNodeJoinsWithoutTheToken(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits most of the time
	at := place(t)
	args := []string{"-nnodes", "2", "-rdzv-endpoint", at, "-start-timeout", "20"}
	n := startNode(t, []string{"GOMPI_TOKEN="}, append(args, "-node-rank", "0", "true")...)
	n.wants(t, statusFailed)
	if output := n.err.String(); !strings.Contains(output, "head -c 32 /dev/urandom") ||
		!strings.Contains(output, "GOMPI_TOKEN=$(cat token)") {
		t.Errorf("without a token gompirun says %q, want how to make one", output)
	}
	n = startNode(t, []string{"GOMPI_TOKEN=short"}, append(args, "-node-rank", "0", "true")...)
	n.wants(t, statusFailed)

	zero := startNode(t, []string{testToken}, append(args, "-node-rank", "0", "echo", "started")...)
	one := startNode(t, []string{"GOMPI_TOKEN=fedcba9876543210"}, append(args, "-node-rank", "1", "true")...)
	one.wants(t, statusFailed)
	if output := one.err.String(); !strings.Contains(output, "has another token") {
		t.Errorf("the node says %q, want that the token is another", output)
	}
	zero.wants(t, statusFailed)
	if output := zero.err.String(); !strings.Contains(output, "has another token") ||
		!strings.Contains(output, "still missing: node 1") || zero.out.String() != "" {
		t.Errorf("node 0 says %q, want who tried and who is missing", output)
	}
}
