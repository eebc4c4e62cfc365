package ddp

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

func TestAnyNumberOfRanksLoadsWhatAnotherSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	want := testSnapshot()
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		mine := path
		if c.Rank() != 0 {
			mine = "/nowhere/else" // the others must not touch a disk
		}
		for range 2 { // the second replaces the first
			if err := Save(ctx, c, mine, want); err != nil {
				return err
			}
		}
		return nil
	})
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("folder holds %v, %v: want the snapshot alone", entries, err)
	}
	for _, n := range []int{1, 2, 5} {
		commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
			got := emptied(want)
			found, err := Load(ctx, c, path, got)
			if err != nil || !found {
				return fmt.Errorf("found %v, %v", found, err)
			}
			if !same(got, want) {
				return fmt.Errorf("loaded %+v, want %+v", got, want)
			}
			return nil
		})
	}
}

func TestRanksAgreeThatThereIsNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := replace(there, testSnapshot()); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		path := there // what the others see does not count
		if c.Rank() == 0 {
			path = filepath.Join(dir, "missing")
		}
		s := emptied(testSnapshot())
		found, err := Load(ctx, c, path, s)
		if found || err != nil || !same(s, emptied(testSnapshot())) {
			return fmt.Errorf("found %v, %v, %+v", found, err, s)
		}
		return nil
	})
}

func TestEveryRankLearnsWhyASnapshotFails(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	file := encoded(t, testSnapshot())
	file[len(file)/2]++
	if err := os.WriteFile(damaged, file, 0o644); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		s := emptied(testSnapshot())
		if _, err := Load(ctx, c, damaged, s); wantError(err, damaged, "checksum") != nil {
			return wantError(err, damaged, "checksum")
		}
		return wantError(Save(ctx, c, filepath.Join(dir, "missing", "file"), s), "missing/file", "no such file")
	})
}

func TestFailedSaveLeavesTheOldFileAndNoOther(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replace(path, testSnapshot()); err == nil {
		t.Error("a folder was replaced by a snapshot")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || !entries[0].IsDir() {
		t.Errorf("folder holds %v, %v: want what it held", entries, err)
	}
}

// A job that goes on with another number of ranks follows the curve of one that never stopped. What
// an optimiser of shards remembers is saved whole.
func TestSnapshotGoesOnWithAnotherNumberOfRanks(t *testing.T) {
	for name, opts := range map[string]Options{"exact": {Quantum: 0x1p-44}, "average": {}, "shards": {Shard: true, FirstBucketBytes: 40, BucketBytes: 40}} {
		want, curve := trainToy(t, 2, run{opts: opts, to: 30})
		for _, size := range []int{1, 3, 4} {
			path := filepath.Join(t.TempDir(), "snapshot")
			trainToy(t, 2, run{opts: opts, to: 10, snapshot: path}) // in the middle of an epoch of 7 steps
			got, rest := trainToy(t, size, run{opts: opts, from: 10, to: 30, snapshot: path})
			if opts.Quantum != 0 && !slices.Equal(got, want) {
				t.Errorf("%d ranks after 2 end with other parameters", size)
			}
			for i, loss := range rest {
				if math.Abs(loss-curve[10+i]) > 1e-4*curve[10+i] {
					t.Errorf("%s: %d ranks after 2: loss at step %d is %v, want %v", name, size, 10+i, loss, curve[10+i])
				}
			}
		}
	}
}
