package mpirun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// surviveMain is a rank of a job that continues without its dead. Its arguments are the number of
// steps, and optionally "input" for ranks that read all their input first, "deaf" for ranks that
// do not shrink, "restore" for ranks that replace the dead, "gate" and a file without which no
// rank makes the last step, and "strike" or "strike-parent" with ranks each of which kills
// itself, or its parent process, in the middle.
func surviveMain() {
	s := &survivor{}
	steps, err := strconv.Atoi(os.Args[1])
	for i, arg := range os.Args[2:] {
		switch arg {
		case "deaf":
			s.deaf = true
		case "restore":
			s.restores = true
		case "input":
			io.Copy(io.Discard, os.Stdin)
		case "gate":
			s.gate = os.Args[i+3]
		case "strike", "strike-parent":
			s.strikes, s.parent = os.Args[i+3:], arg == "strike-parent"
		}
	}
	if err == nil {
		err = s.live(context.Background(), int64(steps))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// A survivor is such a rank. Its state is like a training's: equal on all ranks after each step,
// and a function of the number of steps alone.
type survivor struct {
	c     *comm.Comm
	step  int64
	state uint64
	heap  []int64 // from Alloc

	deaf     bool     // it does not shrink
	restores bool     // the dead are replaced
	gate     string   // a file that is there when the last step may be made; "" for none
	strikes  []string // world ranks that kill themselves, their replacements do not
	parent   bool     // they kill what started them
}

func (s *survivor) live(ctx context.Context, steps int64) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("rank %d is process %d\n", world.Rank(), os.Getpid())
	s.c = world
	for {
		err := s.train(ctx, steps)
		if err == nil {
			err = comm.Barrier(ctx, s.c) // so that all that are needed are there
		}
		if err == nil {
			break
		}
		if s.deaf || !errors.Is(err, comm.ErrRevoked) && !errors.Is(err, comm.ErrLeft) {
			return err
		}
		renew := s.c.Shrink
		if s.restores {
			renew = s.c.Restore
		}
		next, err := renew(ctx)
		if err != nil {
			return err
		}
		if err := s.c.Close(ctx); err != nil {
			return err
		}
		s.c = next
	}
	fmt.Printf("%d ranks end with state %d in %s\n", s.c.Size(), s.state, s.c.Name())
	return s.c.Close(ctx)
}

// train takes the state of the rank that is ahead, and makes the steps that are left.
func (s *survivor) train(ctx context.Context, steps int64) error {
	ahead := []int64{s.step, -int64(s.c.Rank())}
	all := make([]int64, 2*s.c.Size())
	if err := comm.Allgather(ctx, s.c, ahead, all); err != nil {
		return err
	}
	best := 0
	for r := range s.c.Size() {
		if all[2*r] > all[2*best] {
			best = r
		}
	}
	state := []uint64{s.state}
	if err := comm.Bcast(ctx, s.c, best, state); err != nil {
		return err
	}
	s.step, s.state = all[2*best], state[0]
	heap, err := comm.Alloc[int64](ctx, s.c, 60_000)
	if err != nil {
		return err
	}
	s.heap = heap
	for s.step < steps {
		s.strike()
		if err := s.await(ctx, s.step == steps-1); err != nil {
			return err
		}
		if err := s.exchange(ctx); err != nil {
			return err
		}
		s.step++
		s.state = advance(s.state, s.step)
	}
	return nil
}

// await continues with exchanges until the last step may be made, if it is that.
func (s *survivor) await(ctx context.Context, last bool) error {
	for open := []int{0}; last && s.gate != "" && open[0] == 0; {
		if _, err := os.Stat(s.gate); err == nil {
			open[0] = 1
		}
		if err := comm.Bcast(ctx, s.c, 0, open); err != nil {
			return err
		}
		if err := s.exchange(ctx); err != nil {
			return err
		}
	}
	return nil
}

// strike kills this rank, if it is to be, in a step of its own.
func (s *survivor) strike() {
	rank := os.Getenv("RANK")
	if i := slices.Index(s.strikes, rank); i < 0 || s.c.Restored() || s.step != int64(10*(i+1)) {
		return
	}
	pid := os.Getpid()
	if s.parent {
		pid = os.Getppid()
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

// advance returns the state after one more step.
func advance(state uint64, step int64) uint64 { return state*0x9e3779b97f4a7c15 + uint64(step) }

// exchange sums a vector over all ranks, whose length, and whose place in memory, differ from step
// to step, and sends messages around.
func (s *survivor) exchange(ctx context.Context) error {
	lengths := []int{1, 100, 3000, 60_000}
	n := lengths[s.step%4]
	x := s.heap[:n]
	if s.step%3 == 0 {
		x = make([]int64, n)
	}
	for i := range x {
		x[i] = s.step + int64(i)
	}
	if err := comm.Allreduce(ctx, s.c, x, x, comm.Sum); err != nil {
		return err
	}
	for i, got := range x {
		if want := int64(s.c.Size()) * (s.step + int64(i)); got != want {
			return fmt.Errorf("%v, step %d: element %d is %d, want %d", s.c, s.step, i, got, want)
		}
	}
	if s.c.Size() == 1 {
		return nil
	}
	next, last := (s.c.Rank()+1)%s.c.Size(), (s.c.Rank()+s.c.Size()-1)%s.c.Size()
	got := make([]int64, n)
	if _, err := comm.Sendrecv(ctx, s.c, next, 1, x, last, 1, got); err != nil {
		return err
	}
	if got[n-1] != x[n-1] {
		return fmt.Errorf("%v, step %d: the message ends with %d, want %d", s.c, s.step, got[n-1], x[n-1])
	}
	return nil
}

// finalState is every survivor's last state.
func finalState(steps int64) (state uint64) {
	for step := range steps {
		state = advance(state, step+1)
	}
	return state
}

// A siege is a job of survivors of whose ranks some are killed.
type siege struct {
	np, deaths, steps int
	restore           bool     // the dead are replaced
	input             bool     // ranks read their input first
	flags             []string // of gompirun
}

// abortOfUCX is UCX 1.13's message when it aborts a rank that answers a dead rank
// (docs/recovery.md; UCX 1.14 lacks that assertion). The others must go on without both.
const abortOfUCX = "Assertion `(req->send.wireup.type == UCP_WIREUP_MSG_EP_REMOVED)"

// play kills ranks of the siege at random, and checks the others' output at the end.
func (s siege) play(t *testing.T, rng *rand.Rand) {
	t.Helper()
	args := append(s.flags, "-recover", "-timeout", "100", "-np", fmt.Sprint(s.np))
	gate := filepath.Join(t.TempDir(), "gate")
	program := []string{"survive", fmt.Sprint(s.steps), "gate", gate}
	if s.restore {
		args, program = append(args, "-spares", fmt.Sprint(s.deaths)), append(program, "restore")
	}
	if s.input {
		program = append(program, "input")
	}
	cmd := exec.Command("gompirun", append(args, program...)...)
	var output strings.Builder
	cmd.Stderr = &output
	lines := started(t, cmd)
	pids := processes(t, lines, s.np)
	victims := rng.Perm(s.np)[:s.deaths]
	for _, v := range victims {
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond) // somewhere in the training
		syscall.Kill(pids[v], syscall.SIGKILL)
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
		ranks, state, end := strings.Cut(strings.TrimSpace(line), " ranks end with state ")
		if !end {
			continue // a replacement says where it is
		}
		n, err := strconv.Atoi(ranks)
		if err != nil || n > s.np || !strings.HasPrefix(state, fmt.Sprintf("%d in world", finalState(int64(s.steps)))) {
			t.Errorf("a rank says %q, want state %d", line, finalState(int64(s.steps)))
		}
		ends++
	}
	err := cmd.Wait()
	hit := strings.Count(output.String(), "the job continues without it")
	least := s.np - hit
	if s.restore {
		least = s.np
	}
	if err != nil || hit < s.deaths || hit > s.deaths+strings.Count(output.String(), abortOfUCX) || ends != least {
		t.Errorf("%+v: %v killed, %d died; %d ranks came to the end, want %d; gompirun: %v\n%s", s, victims, hit, ends,
			least, err, output.String())
	}
}

// processes reads which process each rank is.
func processes(t *testing.T, lines *bufio.Reader, np int) map[int]int {
	t.Helper()
	pids := map[int]int{}
	for len(pids) < np {
		var rank, pid int
		line, err := lines.ReadString('\n')
		if _, scan := fmt.Sscanf(line, "rank %d is process %d", &rank, &pid); err != nil || scan != nil {
			t.Fatalf("%q, %v: want the processes of %d ranks", line, err, np)
		}
		pids[rank] = pid
	}
	return pids
}

// TestStressSurvivorsOfKilledRanksGoOn kills ranks at random, over shared memory and TCP.
func TestStressSurvivorsOfKilledRanksGoOn(t *testing.T) {
	stress.Slow(t, "it kills ranks again and again")
	t.Parallel() // it sleeps before each blow
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	tcp := []string{"-x", "GOMPI_TRANSPORT=tcp"}
	for round, end := 0, stress.Until(t); (round < 2 || time.Now().Before(end)) && !t.Failed(); round++ {
		deaths := 1 + round%3
		for _, restore := range []bool{false, true} {
			siege{np: 4, deaths: deaths, steps: 300, restore: restore}.play(t, rng)
			siege{np: 4, deaths: deaths, steps: 300, restore: restore, flags: tcp}.play(t, rng)
		}
	}
}

func TestSurvivorsOnTwoHostsGoOn(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 2)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, deaths := range []int{1, 2} {
		for _, restore := range []bool{false, true} {
			siege{np: 4, deaths: deaths, steps: 300, restore: restore,
				flags: []string{"-rsh", b.RSH(), "-H", "host1:2,host2:2"}}.play(t, rng)
		}
	}
	b.AwaitEmpty(soon)
}

// A host all of whose ranks have died gets replacements, too.
func TestTheOnlyRankOfAHostIsReplaced(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 2)
	rng := rand.New(rand.NewPCG(7, 0))
	siege{np: 2, deaths: 1, steps: 300, restore: true,
		flags: []string{"-rsh", b.RSH(), "-H", "host1,host2"}}.play(t, rng)
	b.AwaitEmpty(soon)
}

// A replacement comes when the input has ended: its own ends at once.
func TestTheInputOfAReplacementEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	siege{np: 2, deaths: 1, steps: 50, restore: true, input: true, flags: []string{"-stdin", "all"}}.play(t, rng)
}

// Between two hosts that are one machine, over UCX's own tcp.
func TestSurvivorsOverUCXGoOn(t *testing.T) {
	stress.Long(t, "it wants UCX, and tests that are built with cgo")
	t.Parallel() // it sleeps before each blow
	flags := []string{"-H", "localhost:2,127.0.0.2:2", "-x", "GOMPI_TRANSPORT=ucx:tcp"}
	args := append(slices.Clone(flags), "-x", "GOMPI_LOG=info", "-recover", "-timeout", "100", "-np", "4", "survive",
		"50", "strike", "1")
	out, err := exec.Command("gompirun", args...).CombinedOutput()
	if strings.Contains(string(out), "no RDMA: all ranks use TCP") {
		t.Skip("no UCX (package libucx0): CGO_ENABLED=1 go test ./mpirun")
	}
	if output := string(out); err != nil || strings.Count(output, "3 ranks end with state") != 3 ||
		strings.Count(output, "msg=used part=ucx") != 3 {
		t.Errorf("%v, want 3 ranks that have used UCX, and end:\n%s", err, out)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for deaths := 1; deaths <= 2; deaths++ {
		siege{np: 4, deaths: deaths, steps: 300, flags: flags}.play(t, rng)
	}
}
