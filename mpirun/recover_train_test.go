//go:build linux

package mpirun

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
)

// TestTrainingContinuesWithReplacementsOfKilledRanks kills ranks of a training at random. It ends
// with the loss, the evaluations, the best network and the parameters of one that nothing has
// happened to, bit by bit.
func TestTrainingContinuesWithReplacementsOfKilledRanks(t *testing.T) {
	g := newTraining(t, "-recover", "restore", "-eval-every", "20", "-keep-best")
	g.goesOn(t, []int{1, 3})
}

// TestTrainingContinuesWithFewerRanks is the same without replacements: exact sums do not depend on
// the number of ranks.
func TestTrainingContinuesWithFewerRanks(t *testing.T) {
	g := newTraining(t, "-recover", "shrink", "-exact", "8")
	g.goesOn(t, []int{1, 2})
}

// A training is a job of examples/train.
type training struct {
	dir, data string
	np, steps int
	flags     []string
}

func newTraining(t *testing.T, flags ...string) *training {
	t.Helper()
	stress.Long(t, "it trains three times")
	t.Parallel() // others wait meanwhile
	g := &training{dir: t.TempDir(), np: 4, steps: 100, flags: flags}
	if out, err := exec.Command("go", "build", "-o", g.dir, "gompi/examples/train").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var err error
	// Of little text little is held out. To judge a network by more takes longer than to train it.
	if g.data, err = filepath.Abs("internal/remote"); err != nil {
		t.Fatal(err)
	}
	return g
}

// goesOn trains without deaths, and with each of these numbers of deaths.
func (g *training) goesOn(t *testing.T, deaths []int) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	want := g.run(t, filepath.Join(g.dir, "whole"), nil, 0)
	for i, n := range deaths {
		got := g.run(t, filepath.Join(g.dir, fmt.Sprint("killed", i)), rng, n)
		if got.loss != want.loss || !bytes.Equal(got.state, want.state) || !bytes.Equal(got.best, want.best) {
			t.Errorf("%d ranks killed: %s, want %s, and the same parameters", n, got.loss, want.loss)
		}
		for step, line := range got.curve {
			if line != want.curve[step] {
				t.Errorf("%d ranks killed: step %s: %s, want %s", n, step, line, want.curve[step])
			}
		}
		for step, line := range want.held {
			if got.held[step] != line {
				t.Errorf("%d ranks killed: step %s: held out %q, want %q", n, step, got.held[step], line)
			}
		}
		t.Logf("%d ranks killed: took %v, undisturbed %v", n, got.took, want.took)
	}
}

// An ending is the result of a training.
type ending struct {
	loss  string
	state []byte            // the snapshot,
	best  []byte            // and that of the best network, if any
	curve map[string]string // the loss of each step that rank 0 has told
	held  map[string]string // the loss of each evaluation
	took  time.Duration
}

// run trains, and kills some ranks at random once there is a step.
func (g *training) run(t *testing.T, snapshot string, rng *rand.Rand, deaths int) *ending {
	t.Helper()
	begun := time.Now()
	cmd := exec.Command("gompirun", "-recover", "-spares", "3", "-timeout", "300", "-np", fmt.Sprint(g.np), "-x",
		"GOMPI_DETERMINISTIC=1",
		"sh", "-c", `echo "rank $RANK is process $$"; exec "$@"`, "sh",
		filepath.Join(g.dir, "train"), "-data", g.data, "-batch", "32", "-steps", fmt.Sprint(g.steps), "-print-every",
		"1", "-snapshot", snapshot)
	cmd.Args = append(cmd.Args, g.flags...)
	var output strings.Builder
	cmd.Stderr = &output
	lines := started(t, cmd)
	e := &ending{curve: map[string]string{}, held: map[string]string{}}
	pids := map[int]int{}
	struck := 0
	var out strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		out.WriteString(line)
		var rank, pid int
		if n, _ := fmt.Sscanf(line, "rank %d is process %d", &rank, &pid); n == 2 {
			pids[rank] = pid
		}
		if m := heldLine.FindStringSubmatch(line); m != nil {
			e.held[m[1]] = m[2]
		}
		m := stepLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		e.curve[m[1]] = m[2]
		if step, _ := strconv.Atoi(m[1]); struck < deaths && step > 10*(struck+1) {
			struck++
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // somewhere in a step
			living := slices.Sorted(maps.Keys(pids))
			rank := living[rng.IntN(len(living))]
			syscall.Kill(pids[rank], syscall.SIGKILL)
			delete(pids, rank)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("gompirun: %v\n%s%s", err, out.String(), output.String())
	}
	e.took = time.Since(begun)
	if n := strings.Count(output.String(), "the job continues without it"); n != deaths {
		t.Errorf("%d ranks died, want %d:\n%s", n, deaths, output.String())
	}
	e.loss = regexp.MustCompile(`result: loss [\d.]+`).FindString(out.String())
	var err error
	if e.state, err = os.ReadFile(snapshot); err != nil || e.loss == "" {
		t.Fatalf("%v, loss %q:\n%s", err, e.loss, out.String())
	}
	e.best, _ = os.ReadFile(snapshot + ".best") // with -keep-best alone
	return e
}

var (
	stepLine = regexp.MustCompile(`^step +(\d+)/\d+ +([\d.]+) bits/byte`)
	heldLine = regexp.MustCompile(`^step +(\d+)/\d+ +held out: (.*)`)
)
