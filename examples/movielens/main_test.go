package main

import (
	"context"
	"fmt"
	"io"
	"math"
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

func with(o options) jobtest.Train {
	return func(ctx context.Context, c *comm.Comm, f *job.Flags, out io.Writer) (*job.Result, error) {
		return train(ctx, c, f, o, out)
	}
}

// small is a training of a moment.
func small() (job.Flags, options) {
	f, o := defaults()
	f.Epochs, f.Batch, f.BatchPer = 4, 64, "all"
	o.plan, o.width = plan{Users: 60, Films: 80, Ratings: 1500}, 8
	return f, o
}

// Made-up ratings have an error that nobody can beat: the model comes near, and is far better than
// biases. So it is with all of the gradient, which is many times as much.
func TestKnownErrorIsApproached(t *testing.T) {
	stress.Long(t, "computes for seconds")
	f, o := defaults()
	f.Epochs, f.Batch, f.BatchPer = 12, 128, "all"
	o.plan, o.width = plan{Users: 300, Films: 400, Ratings: 40000}, 16
	set := makeRatings(o.plan, f.Seed).Set()
	var bytes []int64
	for _, o.sparse = range []bool{true, false} {
		res, output := jobtest.Run(t, 2, f, with(o))
		rmse := math.Sqrt(res.Held[0])
		if !(rmse < 1.25*set.Reachable && rmse < 0.7*set.BiasError()) || rmse < set.Reachable {
			t.Errorf("sparse %v: RMSE %.4f; %.4f can be reached, biases have %.4f\n%s", o.sparse, rmse, set.Reachable,
				set.BiasError(), output)
		}
		bytes = append(bytes, res.Bytes)
		if want := fmt.Sprintf("; the model that made them %.4f", set.Reachable); !strings.Contains(output, want) {
			t.Errorf("it does not say %q:\n%s", want, output)
		}
	}
	if bytes[0] > bytes[1]*2/3 {
		t.Errorf("sparse gradients have %d bytes, all of them %d", bytes[0], bytes[1])
	}
}

func TestAnyNumberOfRanksFollowsOneCurve(t *testing.T) {
	f, o := small()
	for _, o.sparse = range []bool{true, false} {
		jobtest.AnyRanks(t, f, with(o), 1e-3)
	}
}

func TestSnapshotsGoOnWithAnyNumberOfRanks(t *testing.T) {
	f, o := small()
	for _, o.sparse = range []bool{true, false} {
		jobtest.Resumes(t, f, with(o), 1e-3)
	}
}

// -gen writes the ratings that are made up without it, once, and does not train.
func TestFilesAreWrittenOnceAndRead(t *testing.T) {
	f, o := small()
	o.plan = likeMovieLens(1500)
	want, _ := jobtest.Run(t, 2, f, with(o))
	o.dir = filepath.Join(t.TempDir(), "made")
	for _, end := range []string{" written to the folder " + o.dir, " the folder " + o.dir + " has " + ratingsFile} {
		jobtest.Writes(t, run, end, "-gen", "-data", o.dir, "-ratings", "1500")
	}
	got, output := jobtest.Run(t, 2, f, with(o))
	if got.Held[0] != want.Held[0] || !strings.Contains(output, "ratings: the files in "+o.dir) {
		t.Errorf("from files the error is %v, want %v\n%s", got.Held[0], want.Held[0], output)
	}
	if err := os.WriteFile(filepath.Join(o.dir, ratingsFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if _, err := with(o)(ctx, c, &f, io.Discard); err == nil || !strings.Contains(err.Error(), ratingsFile) {
			return fmt.Errorf("a damaged file gives error %v", err)
		}
		return nil
	})
}

func TestArgumentsThatMakeNoSenseAreQuoted(t *testing.T) {
	for args, want := range map[string]string{
		"-gen":        "-gen without -data: want the folder to write to",
		"-width 0":    "-width 0: want at least 1",
		"-decay Inf":  "-decay +Inf: want a finite number, 0 or more",
		"-ratings 10": "-ratings 10: want 1000 to 1000000",
		"ten":         `"ten"`,
	} {
		var errs strings.Builder
		if status := run(strings.Fields(args), io.Discard, &errs); status != 2 ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%q: status %d and %q, want 2 and %q", args, status, errs.String(), want)
		}
	}
}
