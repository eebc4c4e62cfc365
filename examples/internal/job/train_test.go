package job

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/examples/internal/nn"
)

// A count learns nothing, and counts samples. Held-out samples are judged by script, epoch by
// epoch.
type count struct {
	param          *ddp.Param
	loaded, judged int
	script         []float64
	epoch          int
}

func newCount() *count {
	return &count{param: &ddp.Param{Name: "p", Data: make([]float32, 1), Grad: make([]float32, 1)}}
}

func (m *count) Params() []*ddp.Param      { return []*ddp.Param{m.param} }
func (m *count) Memory() []ddp.Slice       { return nil }
func (m *count) Update(*ddp.DDP, At)       { m.param.Data[0] -= m.param.Grad[0] }
func (m *count) Load(s []int, _ bool)      { m.loaded = len(s) }
func (m *count) means(v float64) []float64 { return []float64{v * float64(m.loaded)} }

func (m *count) Judge() []float64 {
	m.judged += m.loaded
	return m.means(m.script[min(m.epoch, len(m.script)-1)])
}

func (m *count) Learn(d *ddp.DDP, scale float32) []float64 {
	m.param.Grad[0] += scale * float32(m.loaded)
	d.Ready(0)
	return m.means(2)
}

var plain = []Meter{{Name: "loss", Show: func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }}}

// trains calls check on every rank after a training of its count.
func trains(t *testing.T, n int, f Flags, spec Spec, script []float64,
	check func(c *comm.Comm, m *count, res *Result, output string) error) {
	t.Helper()
	commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
		m, own := newCount(), f
		m.script = script
		var output bytes.Buffer
		res, err := Train(ctx, c, &own, &epochs{count: m}, spec, &output)
		if err != nil {
			return err
		}
		return check(c, m, res, output.String())
	})
}

// epochs tells a count which epoch it is.
type epochs struct{ *count }

func (e *epochs) Update(d *ddp.DDP, at At) {
	e.count.Update(d, at)
	e.epoch = int(at.Epoch)
}

// Shares of 3 ranks of batches of 10, the last of 5, are uneven: the gradient of the mean over the
// batch is 1 all the same. No sample that is held out is judged twice.
func TestEverySampleCountsOnce(t *testing.T) {
	f := Flags{Epochs: 2, Batch: 10, BatchPer: "all", Rate: 1, Resume: "auto", Every: 2}
	trains(t, 3, f, Spec{Samples: 25, Held: 1000, Meters: plain}, []float64{0.5},
		func(c *comm.Comm, m *count, res *Result, output string) error {
			judged := []int{m.judged}
			if err := comm.Allreduce(context.Background(), c, judged, judged, comm.Sum); err != nil {
				return err
			}
			if res.Steps != 6 || m.param.Data[0] != -6 || judged[0] != 2*1000 || res.Curve[1][0] != 2 ||
				res.Held[0] != 0.5 {
				return fmt.Errorf("steps %d, parameter %v, judged %d times, curve %v, held out %v", res.Steps,
					m.param.Data[0], judged[0], res.Curve, res.Held)
			}
			for _, want := range []string{
				"data: 25 samples to train on, 1000 held out; model: 1 parameters",
				"run: epochs 1 to 2 of 3 steps; a step has 10 samples of all 3 ranks, -batch 10 per all; compute goroutines of a rank: " + fmt.Sprint(int(nn.WorkersOf(3))),
				"\nstep 2: time ", "\nstep 6: time ", "\nepoch 2/2: loss 2.00; held out: loss 0.50; ",
			} {
				if !strings.Contains(output, want) {
					return fmt.Errorf("%q is not in\n%s", want, output)
				}
			}
			return nil
		})
}

// The best of the epochs 1 to 4 is the third; a job that goes on remembers how good that was.
func TestBestModelIsKept(t *testing.T) {
	f := Flags{Epochs: 4, Batch: 1, BatchPer: "all", Rate: 1, Resume: "auto", KeepBest: true,
		Snapshot: filepath.Join(t.TempDir(), "s")}
	for _, tc := range []struct {
		higher bool
		script []float64
	}{{false, []float64{5, 4, 1, 2, 3}}, {true, []float64{5, 6, 9, 7, 8}}} {
		meters := []Meter{{Name: "m", Show: plain[0].Show, Higher: tc.higher}}
		for _, epochs := range []int{4, 5} {
			f.Epochs = epochs
			trains(t, 2, f, Spec{Samples: 2, Held: 2, Meters: meters}, tc.script,
				func(c *comm.Comm, m *count, _ *Result, _ string) error { return nil })
		}
		trains(t, 1, Flags{Epochs: 1, Batch: 1, BatchPer: "all", Rate: 1, Eval: true, Resume: f.Snapshot + ".best"},
			Spec{Samples: 2, Held: 2, Meters: meters}, []float64{7},
			func(_ *comm.Comm, m *count, res *Result, output string) error {
				if m.param.Data[0] != -6 || res.Steps != 6 || !strings.Contains(output, "held out: m 7.00\n") {
					return fmt.Errorf("higher %v: the best was saved after %d steps with %v, want those of epoch 3; it said\n%s", tc.higher, res.Steps, m.param.Data, output)
				}
				return nil
			})
		if err := os.Remove(f.Snapshot); err != nil {
			t.Fatal(err)
		}
	}
}

// A snapshot of other samples may be judged, but not gone on from: both are quoted.
func TestASnapshotContinuesWithItsDataOnly(t *testing.T) {
	f := Flags{Epochs: 1, Batch: 1, BatchPer: "all", Rate: 1, Resume: "auto", Snapshot: filepath.Join(t.TempDir(), "s")}
	spec := Spec{Samples: 3, Held: 1, Checksum: 0xabc, Meters: plain}
	ok := func(*comm.Comm, *count, *Result, string) error { return nil }
	trains(t, 2, f, spec, []float64{0}, ok)
	f.Epochs = 2
	for name, change := range map[string]func(s *Spec){
		"not with 4 samples and 1 held out, whose checksum is 00000abc": func(s *Spec) { s.Samples = 4 },
		"not with 3 samples and 2 held out, whose checksum is 00000abc": func(s *Spec) { s.Held = 2 },
		"not with 3 samples and 1 held out, whose checksum is 00000abd": func(s *Spec) { s.Checksum++ },
	} {
		other := spec
		change(&other)
		want := "snapshot " + f.Snapshot + ": it was trained with 3 samples and 1 held out, whose checksum is 00000abc, " + name
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			m := newCount()
			m.script = []float64{0}
			if _, err := Train(ctx, c, &f, m, other, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("error %v, want one with %q", err, want)
			}
			return nil
		})
		judge := f
		judge.Eval = true
		trains(t, 2, judge, other, []float64{0}, ok)
	}
	trains(t, 2, f, spec, []float64{0}, func(_ *comm.Comm, _ *count, res *Result, _ string) error {
		if !res.Resumed || res.Steps != 6 {
			return fmt.Errorf("resumed %v, %d steps; want true, 6", res.Resumed, res.Steps)
		}
		return nil
	})
}

func TestMissingSnapshotsAndFoldersFailOnEveryRank(t *testing.T) {
	base := Flags{Epochs: 1, Batch: 1, BatchPer: "all", Rate: 1, Resume: "auto", Snapshot: "/no/such/folder/s"}
	for name, change := range map[string]func(f *Flags, s *Spec){
		"no such file or directory":       func(*Flags, *Spec) {},
		"/no/such/file: no such file":     func(f *Flags, _ *Spec) { f.Resume, f.Snapshot = "/no/such/file", "" },
		"/no/such/folder/s: no such file": func(f *Flags, _ *Spec) { f.Eval = true },
		"holds no samples out":            func(f *Flags, s *Spec) { f.Eval, s.Held = true, 0 },
	} {
		f, spec := base, Spec{Samples: 2, Held: 2, Meters: plain}
		change(&f, &spec)
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			m := newCount()
			m.script = []float64{0}
			if _, err := Train(ctx, c, &f, m, spec, io.Discard); err == nil || !strings.Contains(err.Error(), name) {
				return fmt.Errorf("error %v, want one with %q", err, name)
			}
			if m.loaded+m.judged != 0 {
				return fmt.Errorf("%s: told after %d samples, want it before the first step", name, m.loaded+m.judged)
			}
			return nil
		})
	}
}

// A threefold has three parameters, which its backward reaches in another order than ddp expects.
type threefold struct {
	*count
	params []*ddp.Param
	begins []int // the order of the buckets in the first step
}

func (m *threefold) Params() []*ddp.Param { return m.params }

func (m *threefold) Learn(d *ddp.DDP, _ float32) []float64 {
	if m.begins == nil {
		m.begins = append([]int{}, d.BucketOrder()...)
	}
	for _, i := range []int{1, 2, 0} {
		d.Ready(i)
	}
	return m.means(2)
}

// A job begins with the buckets that the one before has ended with.
func TestASnapshotContinuesWithItsBuckets(t *testing.T) {
	f := Flags{Batch: 1, BatchPer: "all", Rate: 1, Resume: "auto", Snapshot: filepath.Join(t.TempDir(), "s")}
	spec := Spec{Samples: 3, Meters: plain, Options: ddp.Options{FirstBucketBytes: 4, BucketBytes: 4}}
	for done, want := range []string{"[]", "[1 2 0]", "[1 2 0]"} {
		f.Epochs = done + 1
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			m, own := &threefold{count: newCount()}, f
			for i := range 3 {
				m.params = append(m.params, &ddp.Param{Name: fmt.Sprint(i), Data: make([]float32, 1)})
			}
			if _, err := Train(ctx, c, &own, m, spec, io.Discard); err != nil {
				return err
			}
			if got := fmt.Sprint(m.begins); got != want {
				return fmt.Errorf("training to epoch %d begins with buckets in the order %s, want %s",
					own.Epochs, got, want)
			}
			return nil
		})
	}
}
