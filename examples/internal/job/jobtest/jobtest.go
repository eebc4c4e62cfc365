// Package jobtest runs trainings in tests, with goroutines as ranks.
package jobtest

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/examples/internal/job"
)

// A Train is the training of an example.
type Train func(ctx context.Context, c *comm.Comm, f *job.Flags, out io.Writer) (*job.Result, error)

// Run trains on n ranks and returns rank 0's result and output.
func Run(t *testing.T, n int, f job.Flags, train Train) (*job.Result, string) {
	t.Helper()
	var first *job.Result
	var output bytes.Buffer
	commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
		out := io.Writer(io.Discard)
		if c.Rank() == 0 {
			out = &output
		}
		own := f
		res, err := train(ctx, c, &own, out)
		if c.Rank() == 0 {
			first = res
		}
		return err
	})
	if first == nil {
		t.FailNow()
	}
	return first, output.String()
}

// Writes runs the main of a program, and fails the test unless the program prints a line with this
// end, about its files, and does not train.
func Writes(t *testing.T, run func(args []string, stdout, stderr io.Writer) int, end string, args ...string) {
	t.Helper()
	var output, errs strings.Builder
	if status := run(args, &output, &errs); status != 0 || !strings.Contains(output.String(), end+"\n") ||
		strings.Contains(output.String(), "epoch") {
		t.Errorf("%q: status %d, want 0, a line that ends with %q, and no epoch:\n%s%s", args, status, end,
			output.String(), errs.String())
	}
}

// SameCurve fails the test unless the losses of all epochs, and the meters of held-out samples, are
// equal within a relative tolerance.
func SameCurve(t *testing.T, name string, got, want *job.Result, tolerance float64) {
	t.Helper()
	if len(got.Curve) > len(want.Curve) || len(got.Curve) == 0 {
		t.Fatalf("%s: %d epochs, want at most %d", name, len(got.Curve), len(want.Curve))
	}
	last := want.Curve[len(want.Curve)-len(got.Curve):] // all, or the epochs since a snapshot
	for i := range got.Curve {
		if !near(got.Curve[i][0], last[i][0], tolerance) {
			t.Errorf("%s: loss of epoch %d of %d is %v, want %v", name, i+1, len(last), got.Curve[i][0], last[i][0])
		}
	}
	for i := range got.Held {
		if !near(got.Held[i], want.Held[i], tolerance) {
			t.Errorf("%s: meter %d of what was held out is %v, want %v", name, i, got.Held[i], want.Held[i])
		}
	}
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

// AnyRanks checks that 2, 3 and 4 ranks follow the curve of one rank with the same total batch, and
// returns the result of one rank.
func AnyRanks(t *testing.T, f job.Flags, train Train, tolerance float64) *job.Result {
	t.Helper()
	f.BatchPer = "all"
	want, _ := Run(t, 1, f, train)
	for _, n := range []int{2, 3, 4} {
		got, _ := Run(t, n, f, train)
		if got.Steps != want.Steps {
			t.Errorf("%d ranks made %d steps, one makes %d", n, got.Steps, want.Steps)
		}
		SameCurve(t, "several ranks", got, want, tolerance)
	}
	return want
}

// Resumes checks that a training that stops half-way and resumes ends with the snapshot of an
// uninterrupted one, bit for bit. On another number of ranks it must have the same curve, within
// the tolerance.
func Resumes(t *testing.T, f job.Flags, train Train, tolerance float64) {
	t.Helper()
	dir := t.TempDir()
	f.BatchPer, f.Resume = "all", "auto"
	f.Snapshot = filepath.Join(dir, "whole")
	whole, _ := Run(t, 2, f, train)

	half := f
	half.Epochs = f.Epochs / 2
	half.Snapshot = filepath.Join(dir, "half")
	Run(t, 2, half, train)
	saved := read(t, half.Snapshot)

	for n, name := range map[int]string{2: "as many ranks", 3: "more ranks", 1: "fewer ranks"} {
		rest := f
		rest.Snapshot, rest.Resume = filepath.Join(dir, name), half.Snapshot
		got, _ := Run(t, n, rest, train)
		if len(got.Curve) != f.Epochs-half.Epochs || !got.Resumed {
			t.Errorf("%s made %d epochs after %d of %d", name, len(got.Curve), half.Epochs, f.Epochs)
		}
		SameCurve(t, name, got, whole, tolerance)
		if n == 2 && !bytes.Equal(read(t, rest.Snapshot), read(t, f.Snapshot)) {
			t.Errorf("%s: the snapshot is not that of a run that did not stop", name)
		}
	}
	if !bytes.Equal(read(t, half.Snapshot), saved) {
		t.Error("-resume FILE has changed the file")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
