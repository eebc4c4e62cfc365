package main

import (
	"bytes"
	"strings"
	"testing"

	"gompi/examples/internal/job"
	"gompi/examples/internal/job/jobtest"
)

func small() job.Flags {
	f := defaults()
	f.Epochs, f.Rate, f.Batch = 6, 0.01, 64
	return f
}

func TestErrorFallsToTheNoise(t *testing.T) {
	f := small()
	f.Epochs = 30
	res, _ := jobtest.Run(t, 2, f, train)
	first, last := res.Curve[0][0], res.Curve[len(res.Curve)-1][0]
	if !(last > 0.9*noise*noise && last < 1.1*noise*noise && first > 100*last) {
		t.Errorf("the squared error went from %v to %v, want %v of the noise", first, last, noise*noise)
	}
}

func TestAnyNumberOfRanksFollowsOneCurve(t *testing.T) {
	jobtest.AnyRanks(t, small(), train, 1e-4)
}

func TestSnapshotsGoOnWithAnyNumberOfRanks(t *testing.T) {
	jobtest.Resumes(t, small(), train, 1e-4)
}

// "toy 4 2" alone, as in PyTorch's tutorial; typed again with more epochs, it goes on.
func TestNumbersAreEpochsAndSaveEvery(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct{ args, want string }{
		{"4 2", "epoch 4/4: squared error "},
		{"6 2", "going on from toy.snapshot, saved after epoch 4 and step 256\n"},
		{"6 2", "run: no epochs are left of 6\n"},
		{"-resume never 1", "epoch 1/1: "},
	} {
		var out, errs bytes.Buffer
		if status := run(strings.Fields(tc.args), &out, &errs); status != 0 || errs.Len() > 0 ||
			!strings.Contains(out.String(), tc.want) {
			t.Fatalf("toy %s: status %d, want %q in\n%s%s", tc.args, status, tc.want, &out, &errs)
		}
	}
	// With another seed the samples would be others.
	var out, errs bytes.Buffer
	if status := run(strings.Fields("-seed 7 9 -snapshot toy.snapshot"), &out, &errs); status != 1 ||
		!strings.Contains(errs.String(), "trained with -seed 1, not 7") {
		t.Errorf("status %d with another seed\n%s", status, &errs)
	}
}
