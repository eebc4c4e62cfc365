package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/examples/internal/job"
	"gompi/examples/internal/job/jobtest"
	"gompi/internal/stress"
)

// on returns a training with made-up digits.
func on(samples int) jobtest.Train {
	return func(ctx context.Context, c *comm.Comm, f *job.Flags, out io.Writer) (*job.Result, error) {
		return train(ctx, c, f, source{samples: samples}, out)
	}
}

func small() job.Flags {
	f := defaults()
	f.Epochs, f.Batch, f.BatchPer, f.Every = 2, 24, "all", 0
	return f
}

func TestDigitsAreLearnt(t *testing.T) {
	stress.Long(t, "computes for seconds")
	f := small()
	f.Epochs, f.Batch, f.Rate = 1, 32, 0.02
	res, output := jobtest.Run(t, 2, f, on(2400))
	loss, top1, top5 := res.Held[0], res.Held[1], res.Held[2]
	if !(loss < 1 && top1 > 0.7 && top5 > 0.94) {
		t.Errorf("after an epoch of 2400 digits loss %.3f, top-1 %.3f, top-5 %.3f of those held out; want less than 1, more than 0.7, 0.94\n%s", loss, top1, top5, output)
	}
}

func TestAnyNumberOfRanksFollowsOneCurve(t *testing.T) {
	jobtest.AnyRanks(t, small(), on(60), 1e-3)
}

func TestSnapshotsGoOnWithAnyNumberOfRanks(t *testing.T) {
	jobtest.Resumes(t, small(), on(60), 1e-3)
}

// -gen writes the digits that are made up without it, once, and does not train.
func TestFilesAreWrittenOnceAndRead(t *testing.T) {
	f := small()
	f.Epochs = 1
	want, _ := jobtest.Run(t, 2, f, on(60))
	dir := filepath.Join(t.TempDir(), "made")
	for _, end := range []string{" written to the folder " + dir, " the folder " + dir + " has all four files"} {
		jobtest.Writes(t, run, end, "-gen", "-data", dir, "-samples", "60")
	}
	files := func(ctx context.Context, c *comm.Comm, f *job.Flags, out io.Writer) (*job.Result, error) {
		return train(ctx, c, f, source{dir: dir}, out)
	}
	got, output := jobtest.Run(t, 2, f, files)
	if got.Held[0] != want.Held[0] || !strings.Contains(output, "pictures: the files in "+dir) {
		t.Errorf("from files the loss is %v, want %v\n%s", got.Held[0], want.Held[0], output)
	}
	if err := os.WriteFile(filepath.Join(dir, testLabels), []byte("<html>"), 0o644); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if _, err := files(ctx, c, &f, io.Discard); err == nil || !strings.Contains(err.Error(), testLabels) {
			return fmt.Errorf("a damaged file gives error %v", err)
		}
		return nil
	})
}

func TestSnapshotsOfOtherDigitsAreRefused(t *testing.T) {
	f := small()
	f.Epochs, f.Snapshot = 1, filepath.Join(t.TempDir(), "s")
	jobtest.Run(t, 2, f, on(60))
	f.Epochs = 2
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		const before, now = "it was trained with 60 samples and 12 held out", "not with 90 samples and 18 held out"
		if _, err := on(90)(ctx, c, &f, io.Discard); err == nil || !strings.Contains(err.Error(), before) ||
			!strings.Contains(err.Error(), now) {
			return fmt.Errorf("error %v, want %q and %q", err, before, now)
		}
		return nil
	})
}

// Files written in part, as by another program, are not completed with other digits.
func TestSomeFilesWithoutTheOthersAreRefused(t *testing.T) {
	d := source{dir: filepath.Join(t.TempDir(), "made"), samples: 10}
	if err := d.generate(1, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(d.dir, testImages)); err != nil {
		t.Fatal(err)
	}
	err := d.generate(1, io.Discard)
	if err == nil || !strings.Contains(err.Error(), d.dir) || !strings.Contains(err.Error(), "but not "+testImages) {
		t.Errorf("error %v, want one that names the folder and %s", err, testImages)
	}
}

func TestPicturesOfNoDigitsAreRefused(t *testing.T) {
	good := &digits{Height: 28, Width: 28, Labels: []byte{3, 9}}
	for _, tc := range []struct {
		held *digits
		want string
	}{
		{good, ""},
		{&digits{Height: 28, Width: 27, Labels: []byte{1}}, "28 x 28 and 28 x 27"},
		{&digits{Height: 28, Width: 28, Labels: []byte{1, 10}}, "label 1 in d is 10"},
	} {
		err := check("d", good, tc.held)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
}

func TestArgumentsThatMakeNoSenseAreQuoted(t *testing.T) {
	for args, want := range map[string]string{
		"-gen":         "-gen without -data: want the folder to write to",
		"-samples 1":   "-samples 1: want at least 5",
		"-batch-per x": `-batch-per "x"`,
	} {
		var errs strings.Builder
		if status := run(strings.Fields(args), io.Discard, &errs); status != 2 ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%q: status %d and %q, want 2 and %q", args, status, errs.String(), want)
		}
	}
}

// A step of one rank, without the averages.
func BenchmarkStep(b *testing.B) {
	const batch = 128
	f, set := defaults(), makeDigits(batch, 1)
	m := newModel(set, set, &f, 1)
	samples := make([]int, batch)
	for i := range samples {
		samples[i] = i
	}
	for b.Loop() {
		m.Load(samples, false)
		logits := m.network.Forward(m.x)
		m.sums(logits, 1./batch)
		m.network.Backward(logits, func(int) {})
		m.sgd.Step(0.001)
		for _, p := range m.Params() {
			clear(p.Grad)
		}
	}
	b.ReportMetric(batch*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}
