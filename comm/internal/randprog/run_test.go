package randprog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/stress"
	choosers "gompi/internal/ways"
)

// The flags by which a failure is repeated.
var (
	seed  = flag.Int64("seed", -1, "run this program alone")
	np    = flag.Int("np", 4, "its ranks")
	way   = flag.String("way", "shm", "how they reach each other: inproc, shm, tcp or hosts")
	count = flag.Int("count", 1, "run this many programs, one after the other in one job")
	units = flag.String("units", "", "run these units of it alone: 3,7,9")
)

// timeout is the longest that one program may take: only one that hangs takes so long.
const timeout = 30 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		rankMain(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// A job is programs that ranks run one after the other.
type job struct {
	seed      uint64 // of the first
	np, count int
	way       string
	units     []int    // nil: all
	env       []string // settings of comm
}

// ways are how ranks reach each other: the flags of gompirun, and settings. Addresses of this
// machine are hosts. The ranks of each are a session of their own and, with autogroups, a group of
// their own for the scheduler: ranks that wait must let the others run.
var ways = map[string]struct {
	flags, env []string
}{
	"shm":   {},
	"tcp":   {env: []string{"GOMPI_TRANSPORT=tcp"}},
	"hosts": {flags: []string{"-H", "localhost:2,127.0.0.2:3,127.0.0.3:3", "-map-by", "node"}},
}

// settings are drawn for jobs: further conditions of the ways of messages.
var settings = [][]string{nil, nil, {"GOMPI_EAGER=100"}, {"GOMPI_EAGER=4096", "GOMPI_DETERMINISTIC=1"},
	{"GOMPI_EAGER=1000000"},
	{"GOMPI_TUNE=barrier:dissemination;bcast:0-1k:chain;allreduce:circulant;gather:linear;alltoall:bruck;scan:chain"}}

// Random programs leave in every buffer the content of a sequential model, on real processes and on
// goroutines, over all transports.
func TestStressRandomPrograms(t *testing.T) {
	gompirun := build(t)
	if *seed >= 0 {
		j := job{seed: uint64(*seed), np: *np, count: *count, way: *way, units: numbers(t, *units)}
		t.Logf("%v", j.program())
		if err := j.run(t.Context(), gompirun, timeout); err != nil {
			t.Fatal(err)
		}
		return
	}
	first, end := uint64(0), time.Now().Add(5*time.Second)
	if testing.Short() {
		end = time.Now().Add(3 * time.Second)
	}
	if stress.Asked() {
		first, end = rand.Uint64N(1<<40), stress.Until(t)
	}
	var programs atomic.Int64
	var all sync.WaitGroup
	for i, way := range []string{"inproc", "shm", "tcp", "hosts"} {
		all.Go(func() {
			for at := first; time.Now().Before(end) && !t.Failed(); at += inOneJob {
				draw := rand.New(rand.NewPCG(at, uint64(i)))
				j := job{seed: at, np: 1 + draw.IntN(6), count: inOneJob, way: way}
				if way != "inproc" { // whose ranks have this process's environment
					j.env = settings[draw.IntN(len(settings))]
				}
				if err := j.run(t.Context(), gompirun, timeout); err != nil {
					t.Error(j.report(t.Context(), gompirun, err))
				}
				programs.Add(inOneJob)
			}
		})
	}
	all.Wait()
	t.Logf("%d programs, from seed %d on", programs.Load(), first)
}

const inOneJob = 10

// build builds gompirun.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gompirun")
	if out, err := exec.Command("go", "build", "-o", path, "gompi/mpirun/gompirun").CombinedOutput(); err != nil {
		t.Fatalf("go build gompirun: %v: %s", err, out)
	}
	return path
}

func numbers(t *testing.T, list string) (all []int) {
	t.Helper()
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("-units %q: want numbers, as 3,7,9", list)
		}
		all = append(all, n)
	}
	return all
}

// program returns the first program of j.
func (j job) program() *Program { return programOf(j.seed, j.np, j.units) }

func programOf(seed uint64, np int, units []int) *Program {
	p := Generate(seed, np)
	if units != nil {
		p = p.Only(units)
	}
	return p
}

// run runs the programs of j.
func (j job) run(ctx context.Context, gompirun string, limit time.Duration) error {
	if j.way == "inproc" {
		return j.inproc(ctx, limit)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w, ok := ways[j.way]
	if !ok {
		return fmt.Errorf("-way %q: want inproc, shm, tcp or hosts", j.way)
	}
	whole := time.Duration(j.count)*limit + 30*time.Second
	args := append([]string{"-q", "-np", strconv.Itoa(j.np), "-timeout",
		strconv.Itoa(int(whole.Seconds()))}, w.flags...)
	args = append(args, self, "rank", strconv.FormatUint(j.seed, 10), strconv.Itoa(j.count), limit.String())
	for _, u := range j.units {
		args = append(args, strconv.Itoa(u))
	}
	cmd := exec.CommandContext(ctx, gompirun, args...)
	cmd.Env = slices.Concat(os.Environ(), []string{"GORACE=atexit_sleep_ms=0"}, w.env, j.env)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v\n%s", err, out)
	}
	return nil
}

func (j job) inproc(ctx context.Context, limit time.Duration) error {
	return errors.Join(commtest.Ranks(ctx, j.np, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		return runAll(ctx, c, j.seed, j.count, limit, j.units)
	})...)
}

// rankMain is one rank of a job: its arguments are a seed, a number of programs, the time limit of
// one, and units.
func rankMain(args []string) {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	choosers.AtRandom.Store(seed%2 == 0)
	count, err2 := strconv.Atoi(args[1])
	limit, err3 := time.ParseDuration(args[2])
	var units []int
	for _, s := range args[3:] {
		n, err := strconv.Atoi(s)
		err2 = errors.Join(err2, err)
		units = append(units, n)
	}
	err = errors.Join(err, err2, err3)
	ctx := context.Background()
	var c *comm.Comm
	if err == nil {
		c, err = comm.Init(ctx)
	}
	if err == nil {
		err = errors.Join(runAll(ctx, c, seed, count, limit, units), c.Close(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runAll(ctx context.Context, c *comm.Comm, seed uint64, count int, limit time.Duration, units []int) error {
	for i := range count {
		at := seed + uint64(i)
		on, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the program took %v", limit))
		err := Run(on, c, programOf(at, c.Size(), units))
		cancel()
		if err != nil {
			return fmt.Errorf("program %d: %w", at, err)
		}
	}
	return nil
}

// report returns the failure, in as few units as fail, and the command that repeats it.
func (j job) report(ctx context.Context, gompirun string, failure error) error {
	alone := j
	alone.count = 1
	if _, rest, ok := strings.Cut(failure.Error(), "program "); ok {
		fmt.Sscan(rest, &alone.seed) // "program 17: rank ..."
		alone.seed = max(alone.seed, j.seed)
	}
	end := time.Now().Add(time.Minute)
	if alone.fails(ctx, gompirun, end) == nil {
		return fmt.Errorf("%w\nprogram %d does not fail alone; to repeat all: %s", failure, alone.seed, j.command())
	}
	alone.units = alone.program().Units()
	for part := len(alone.units) / 2; part > 0; part /= 2 {
		for at := 0; at+part <= len(alone.units) && time.Now().Before(end); {
			less := alone
			less.units = slices.Delete(slices.Clone(alone.units), at, at+part)
			if err := less.fails(ctx, gompirun, end); err != nil {
				alone, failure = less, err
			} else {
				at += part
			}
		}
	}
	return fmt.Errorf("%w\n%vto repeat it: %s", failure, alone.program(), alone.command())
}

// fails tries j a few times, until it fails.
func (j job) fails(ctx context.Context, gompirun string, end time.Time) error {
	for range 5 {
		if err := j.run(ctx, gompirun, 5*time.Second); err != nil || time.Now().After(end) {
			return err
		}
	}
	return nil
}

func (j job) command() string {
	s := strings.Join(append(j.env, "go test ./comm/internal/randprog -count=1 -run TestStressRandomPrograms -args"), " ")
	s += fmt.Sprintf(" -seed %d -np %d -way %s", j.seed, j.np, j.way)
	if j.count > 1 {
		s += fmt.Sprintf(" -count %d", j.count)
	}
	for i, u := range j.units {
		s += fmt.Sprintf("%s%d", map[bool]string{true: " -units ", false: ","}[i == 0], u)
	}
	return s
}
