package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp/sampler"
	"gompi/examples/train/internal/bytelm"
)

// shortText is a folder of few files. Judging a network by held-out parts of more text would take
// longer than training it.
const shortText = "internal/bytelm"

// small is a configuration that trains in a moment.
func small() config {
	cfg := defaults()
	cfg.data, cfg.steps, cfg.batch, cfg.every, cfg.rate = shortText, 20, 48, 1, 0.02
	cfg.shape = bytelm.Shape{Context: 4, Width: 8, Hidden: []int{24, 16}}
	return cfg
}

// trained runs the training on n ranks and returns rank 0's result.
func trained(t *testing.T, n int, cfg config) *result {
	t.Helper()
	var first *result
	commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
		res, err := train(ctx, c, cfg, io.Discard, new(kept))
		if c.Rank() == 0 {
			first = res
		}
		return err
	})
	if first == nil {
		t.FailNow()
	}
	return first
}

func sameCurve(t *testing.T, name string, got, want *result, tolerance float64) {
	t.Helper()
	if len(got.curve) != len(want.curve) {
		t.Fatalf("%s: %d points, want %d", name, len(got.curve), len(want.curve))
	}
	for i, p := range got.curve {
		if math.Abs(p.loss-want.curve[i].loss) > tolerance*want.curve[i].loss {
			t.Errorf("%s: loss at step %d is %v, want %v", name, p.step, p.loss, want.curve[i].loss)
		}
	}
	if math.Abs(got.loss-want.loss) > tolerance*want.loss {
		t.Errorf("%s: loss on the text held out is %v, want %v", name, got.loss, want.loss)
	}
}

// The batch is the same, only divided otherwise: only the order of float32 additions differs.
func TestAnyNumberOfRanksFollowsOneCurve(t *testing.T) {
	want := trained(t, 1, small())
	if !(want.loss < 0.9*want.curve[0].loss) {
		t.Fatalf("loss went from %.3f to %.3f: nothing was learnt", want.curve[0].loss, want.loss)
	}
	for _, n := range []int{2, 4, 5} { // 5 does not divide the batch
		sameCurve(t, fmt.Sprintf("%d ranks", n), trained(t, n, small()), want, 1e-4)
	}
	parts := small()
	parts.accumulate = 3
	sameCurve(t, "2 ranks in 3 passes", trained(t, 2, parts), want, 1e-4)
}

// saved trains and returns the file it leaves.
func saved(t *testing.T, n int, cfg config) []byte {
	t.Helper()
	cfg.snapshot = filepath.Join(t.TempDir(), "snapshot")
	trained(t, n, cfg)
	return readFile(t, cfg.snapshot)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRepeatedAndOverlappedRunsAreEqualBitForBit(t *testing.T) {
	want := saved(t, 3, small())
	if !bytes.Equal(saved(t, 3, small()), want) {
		t.Error("the same run again ends with other parameters")
	}
	after := small()
	after.overlap = false
	if !bytes.Equal(saved(t, 3, after), want) {
		t.Error("without overlap the run ends with other parameters")
	}
	other := small()
	other.seed++
	if bytes.Equal(saved(t, 3, other), want) {
		t.Error("another seed gives the same parameters")
	}
}

// A lineWriter calls seen with each line written.
type lineWriter func(line string)

func (w lineWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// interrupted runs the training on n ranks until each has printed the line of a step, and returns
// their kept states, with -recover.
func interrupted(t *testing.T, n int, cfg config, step int) []kept {
	t.Helper()
	return ended(t, n, cfg, step, func(int) bool { return true })
}

// ended is the same for ranks of which some end after that step. The others begin the next one.
func ended(t *testing.T, n int, cfg config, step int, ends func(rank int) bool) []kept {
	t.Helper()
	ks := make([]kept, n)
	last := fmt.Sprintf("step %5d", step)
	commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		out := lineWriter(func(line string) {
			if strings.HasPrefix(line, last) && ends(c.Rank()) {
				cancel(errors.New("killed"))
			}
		})
		if _, err := train(ctx, c, cfg, out, &ks[c.Rank()]); err == nil {
			return errors.New("the run was not interrupted")
		}
		return nil
	})
	return ks
}

func TestRunThatDiedContinuesBitForBit(t *testing.T) {
	cfg := small()
	cfg.saveEvery = 5
	want := saved(t, 2, cfg)

	cfg.snapshot = filepath.Join(t.TempDir(), "snapshot")
	interrupted(t, 2, cfg, 12)
	if bytes.Equal(readFile(t, cfg.snapshot), want) {
		t.Fatal("the run was interrupted too late")
	}
	half := readFile(t, cfg.snapshot)
	res := trained(t, 2, cfg)
	if first := res.curve[0].step; first != 11 {
		t.Errorf("the run goes on with step %d, want 11", first)
	}
	if !bytes.Equal(readFile(t, cfg.snapshot), want) {
		t.Error("the resumed run ends with other parameters")
	}

	// Another number of ranks may take over, to rounding.
	if err := os.WriteFile(cfg.snapshot, half, 0o644); err != nil {
		t.Fatal(err)
	}
	sameCurve(t, "3 ranks after 2", trained(t, 3, cfg), res, 1e-4)
}

// A hook's unsent numbers are in the snapshot, for each rank: so with hooks, too, a run that died
// goes on bit for bit, and its last snapshot equals the last one of an uninterrupted run.
func TestRunWithAHookThatDiedContinuesBitForBit(t *testing.T) {
	for _, hook := range hookNames[1:] {
		for _, n := range []int{2, 3} { // one rank alone is not interrupted
			cfg := small()
			cfg.hook, cfg.saveEvery = hook, 5
			want := saved(t, n, cfg)
			cfg.snapshot = filepath.Join(t.TempDir(), "snapshot")
			interrupted(t, n, cfg, 12)
			if res := trained(t, n, cfg); res.curve[0].step != 11 {
				t.Errorf("%s: the run goes on with step %d, want 11", hook, res.curve[0].step)
			}
			if !bytes.Equal(readFile(t, cfg.snapshot), want) {
				t.Errorf("%s: the resumed run of %d ranks ends with other parameters, or another memory", hook, n)
			}
		}
	}
}

// A run reports the fate of the hook's memory. The network is the same in any case.
func TestRunSaysWhatBecameOfTheHooksMemory(t *testing.T) {
	cfg := small()
	cfg.hook, cfg.steps = "powersgd", 10
	file := saved(t, 2, cfg)
	for _, tc := range []struct {
		name, hook string
		ranks      int
		want       string
	}{
		{"the same", "powersgd", 2, "snapshot: memory of the hook: restored\n"},
		{"another number of ranks", "powersgd", 3,
			"snapshot: memory of the hook: each rank has the average, as another number of ranks has saved it\n"},
		{"another hook", "topk", 2, "snapshot: memory of the hook: not in the file, it starts with zeros\n"},
		{"no hook", "none", 2, "snapshot: memory of the hook: in the file, and not used\n"},
	} {
		again := cfg
		again.snapshot, again.hook, again.steps = filepath.Join(t.TempDir(), "snapshot"), tc.hook, 15
		if err := os.WriteFile(again.snapshot, file, 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		commtest.Run(t, tc.ranks, func(ctx context.Context, c *comm.Comm) error {
			mine := io.Writer(io.Discard)
			if c.Rank() == 0 {
				mine = &out
			}
			res, err := train(ctx, c, again, mine, new(kept))
			if err == nil && res.curve[0].step != 11 {
				err = fmt.Errorf("the run goes on with step %d, want 11", res.curve[0].step)
			}
			return err
		})
		if !strings.Contains(out.String(), "saved after step 10\n"+tc.want) {
			t.Errorf("%s: output lacks %q:\n%s", tc.name, tc.want, &out)
		}
	}
}

func TestEvaluationAloneGivesTheSavedNetworksLoss(t *testing.T) {
	cfg := small()
	cfg.snapshot = filepath.Join(t.TempDir(), "snapshot")
	want := trained(t, 2, cfg)
	cfg.evalOnly = true
	if got := trained(t, 2, cfg); got.loss != want.loss || len(got.curve) != 0 {
		t.Errorf("loss %v with %d steps, want %v with none", got.loss, len(got.curve), want.loss)
	}
	cfg.snapshot += ".missing"
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if _, err := train(ctx, c, cfg, io.Discard, new(kept)); err == nil ||
			!strings.Contains(err.Error(), "no such file") {
			return fmt.Errorf("a missing snapshot gives error %v", err)
		}
		return nil
	})
}

// The network is judged while it learns, on the same text as at the end, and -keep-best keeps the
// best of all, also over a resumed run that only makes it worse.
func TestBestNetworkIsKept(t *testing.T) {
	cfg := small()
	cfg.snapshot, cfg.evalEvery, cfg.keepBest = filepath.Join(t.TempDir(), "snapshot"), 5, true
	res := trained(t, 2, cfg)
	if n := len(res.evaluations); n != 4 || res.evaluations[3] != res.evaluation || res.step != 20 {
		t.Fatalf("%d evaluations, the last %+v, at the end %+v", n, res.evaluations[n-1], res.evaluation)
	}
	if !(res.accuracy > 0.05 && res.accuracy < 1) {
		t.Errorf("accuracy is %v", res.accuracy)
	}
	best := res.evaluations[0]
	for _, e := range res.evaluations {
		if e.loss < best.loss {
			best = e
		}
	}
	cfg.rate, cfg.steps = 50, 40
	worse := trained(t, 3, cfg)
	if first := worse.evaluations[0]; first.step != 25 || first.loss < best.loss {
		t.Fatalf("the resumed run begins with %+v: want one that is worse than %+v", first, best)
	}
	cfg.evalOnly, cfg.snapshot = true, cfg.snapshot+".best"
	if got := trained(t, 2, cfg); got.evaluation != best {
		t.Errorf("the network kept is judged %+v, want %+v", got.evaluation, best)
	}
}

// All ranks clip to the norm of all gradients, so the curve is one; and it is another than without.
func TestClippedGradientsFollowOneCurve(t *testing.T) {
	cfg := small()
	without := trained(t, 1, cfg)
	cfg.clipNorm = 0.01
	want := trained(t, 1, cfg)
	if want.loss == without.loss {
		t.Error("clipping changes nothing")
	}
	sameCurve(t, "3 ranks", trained(t, 3, cfg), want, 1e-4)
}

// With exact sums not only the curve is one: the networks are the same bits. A run that died goes
// on with fewer ranks as if nothing had been.
func TestExactRunsOnAnyNumberOfRanksAreEqualBitForBit(t *testing.T) {
	cfg := small()
	cfg.exact, cfg.saveEvery, cfg.clipNorm = 8, 5, 0.5 // a batch is 6 passes
	want := saved(t, 1, cfg)
	if bytes.Equal(want, saved(t, 1, small())) {
		t.Error("averages give the same network: the test shows nothing")
	}
	for _, n := range []int{2, 3, 4} {
		if !bytes.Equal(saved(t, n, cfg), want) {
			t.Errorf("%d ranks end with another network than one", n)
		}
	}
	cfg.snapshot = filepath.Join(t.TempDir(), "snapshot")
	interrupted(t, 3, cfg, 12)
	trained(t, 2, cfg)
	if !bytes.Equal(readFile(t, cfg.snapshot), want) {
		t.Error("2 ranks that go on for 3 end with another network")
	}
}

// The sent gradients are rounded, or a part, and the network learns nearly as well.
func TestNetworkLearnsFromCompressedGradients(t *testing.T) {
	cfg := small()
	cfg.steps = 60
	want := trained(t, 2, cfg)
	for _, hook := range hookNames[1:] {
		cfg.hook = hook
		got := trained(t, 2, cfg)
		if got.loss == want.loss {
			t.Errorf("%s: the loss is the same as without: nothing was compressed", hook)
		}
		if !(got.loss < 1.1*want.loss) {
			t.Errorf("%s: loss %.3f, without a hook %.3f", hook, got.loss, want.loss)
		}
	}
}

func TestTraceShowsEveryRank(t *testing.T) {
	cfg := small()
	cfg.trace, cfg.evalEvery = filepath.Join(t.TempDir(), "trace.json"), 10
	trained(t, 2, cfg)
	var trace struct {
		TraceEvents []struct {
			Name string
			PID  int
			Dur  float64
		}
	}
	if err := json.Unmarshal(readFile(t, cfg.trace), &trace); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range trace.TraceEvents {
		counts[fmt.Sprint(e.PID, " ", e.Name)]++
	}
	for _, rank := range []string{"0 ", "1 "} {
		for name, want := range map[string]int{"step 1": 1, "step 20": 1, "computation": 20,
			"exposed communication": 20, "optimiser": 20, "bucket 0": 20, "evaluate": 3} {
			if got := counts[rank+name]; got != want {
				t.Errorf("rank %s has %d of %q, want %d", rank, got, name, want)
			}
		}
	}
}

func TestCurveGoesToTableAndPicture(t *testing.T) {
	cfg := small()
	dir := t.TempDir()
	cfg.csv, cfg.plot, cfg.every = filepath.Join(dir, "curve.csv"), filepath.Join(dir, "curve.svg"), 7
	trained(t, 2, cfg)
	lines := strings.Split(strings.TrimSpace(string(readFile(t, cfg.csv))), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "step,") || !strings.HasPrefix(lines[3], "20,") {
		t.Errorf("table is\n%s", strings.Join(lines, "\n"))
	}
	picture := string(readFile(t, cfg.plot))
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil || strings.Count(picture, "<polyline") != 4 {
		t.Errorf("%v, want lines for the training and for held-out text, the unigram and flate:\n%s", err, picture)
	}
}

func TestMissingFoldersFailOnEveryRank(t *testing.T) {
	for name, change := range map[string]func(*config){
		"data":     func(cfg *config) { cfg.data = "/no/such/folder" },
		"snapshot": func(cfg *config) { cfg.snapshot = "/no/such/folder/file" },
		"trace":    func(cfg *config) { cfg.trace = "/no/such/folder/file" },
		"csv":      func(cfg *config) { cfg.csv = "/no/such/folder/file" },
		"plot":     func(cfg *config) { cfg.plot = "/no/such/folder/file.png" },
	} {
		cfg := small()
		cfg.steps, cfg.every = 1, 1
		change(&cfg)
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			var output bytes.Buffer
			if _, err := train(ctx, c, cfg, &output, new(kept)); err == nil ||
				!strings.Contains(err.Error(), "/no/such/folder") {
				return fmt.Errorf("%s: error %v, want one that names the folder", name, err)
			}
			if strings.Contains(output.String(), "\nstep ") {
				return fmt.Errorf("%s: told after the first step:\n%s", name, &output)
			}
			return nil
		})
	}
}

func TestProgramAloneTrainsAndReports(t *testing.T) {
	var out, errs bytes.Buffer
	args := strings.Fields("-data " + shortText + " -steps 40 -batch 96 -print-every 20")
	if status := run(args, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Fatalf("status %d\n%s%s", status, &out, &errs)
	}
	for _, want := range []string{"text: files in " + shortText, "step    20/40 ", "step    40/40 ", " 0s left\n",
		"\nresult: loss ", "\nstart-up "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
	if status := run([]string{"-batch", "x"}, &out, &errs); status != 2 {
		t.Errorf("status %d after a bad flag, want 2", status)
	}
}

func TestTimeChoosesTheLastStep(t *testing.T) {
	for _, tc := range []struct {
		time         time.Duration
		steps, every int
		want         int64
	}{
		{time.Nanosecond, 0, 3, 3}, // the time is looked at with each line of progress
		{time.Hour, 7, 2, 7},       // -steps still limits
	} {
		cfg := small()
		cfg.maxTime, cfg.steps, cfg.every = tc.time, tc.steps, tc.every
		curve := trained(t, 3, cfg).curve
		if last := curve[len(curve)-1].step; last != tc.want {
			t.Errorf("-max-time %v -steps %d: the last step is %d, want %d", tc.time, tc.steps, last, tc.want)
		}
	}
}

func TestNetworkThatLearntNothingSaysSo(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(strings.Fields("-data "+shortText+" -steps 1 -batch 8"), &out, &errs); status != 0 {
		t.Errorf("status %d, want 0\n%s%s", status, &out, &errs)
	}
	if !strings.Contains(errs.String(), "nothing was learnt") {
		t.Errorf("standard error says %q", &errs)
	}
}

// "train 4 2" alone, as in PyTorch's tutorial: the snapshot has a name without being
// given one, and the same line goes on from it.
func TestEpochsAndSaveEveryAloneSaveAndResume(t *testing.T) {
	data, err := filepath.Abs(shortText)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	flags := []string{"-data", data, "-batch", "48", "-epoch-samples", "480", "-print-every", "5"}
	if status := run(append(flags, "4", "2"), &out, &errs); status != 0 ||
		!strings.Contains(out.String(), "step    40/40 ") {
		t.Fatalf("status %d, want 4 epochs of 10 steps\n%s%s", status, &out, &errs)
	}
	if _, err := os.Stat(defaultSnapshot); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if status := run(append(flags, "6", "2"), &out, &errs); status != 0 {
		t.Fatalf("status %d\n%s%s", status, &out, &errs)
	}
	for _, want := range []string{"going on from train.snapshot, saved after step 40\n", "run: steps 41 to 60 of 48"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
}

// An epoch of the defaults is minutes at the most on two cores, whatever the text.
func TestAnEpochHasTheSamplesAskedFor(t *testing.T) {
	s, err := sampler.New(1000, 10, 1, sampler.Drop)
	if err != nil {
		t.Fatal(err)
	}
	for samples, want := range map[int]int64{0: 100, 5: 1, 10: 1, 95: 9, 1000: 100, 5000: 100} {
		tr := &trainer{cfg: config{batch: 10, epochSamples: samples, epochs: 3}, sampler: s}
		tr.epochSteps = tr.stepsPerEpoch()
		if tr.epochSteps != want || tr.lastStep() != 3*want {
			t.Errorf("-epoch-samples %d: %d steps of %d, want %d", samples, tr.lastStep(), tr.epochSteps, want)
		}
		if tr.cfg.epochs = math.MaxInt; tr.lastStep() < math.MaxInt-want {
			t.Errorf("-epochs %d: %d steps", tr.cfg.epochs, tr.lastStep())
		}
	}
}

func TestSavesFallOnEpochsOrSteps(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		epochs, steps, every int
		step                 int64 // that is done
		want                 bool
	}{
		{"last step", 0, 10, 0, 10, true},
		{"no interval", 0, 10, 0, 5, false},
		{"steps", 0, 10, 4, 8, true},
		{"between", 0, 10, 4, 9, false},
		{"within an epoch", 3, 0, 1, 5, false},
		{"end of an epoch", 3, 0, 1, 6, true},
		{"end of another epoch", 3, 0, 2, 3, false},
	} {
		trainer := &trainer{cfg: config{snapshot: "f", epochs: tc.epochs, steps: tc.steps, saveEvery: tc.every},
			epochSteps: 3, last: 10}
		trainer.state.Step = tc.step
		if got := trainer.saveNow(); got != tc.want {
			t.Errorf("%s: saveNow is %v", tc.name, got)
		}
		trainer.cfg.snapshot = ""
		if trainer.saveNow() {
			t.Errorf("%s: saves without a file", tc.name)
		}
	}
}
