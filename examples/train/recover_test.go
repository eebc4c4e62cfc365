package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// recovering is a training with a hook that remembers, as gompirun -recover would have it.
func recovering(t *testing.T, hook string) config {
	cfg := small()
	cfg.hook, cfg.recover, cfg.snapshot = hook, restore, filepath.Join(t.TempDir(), "snapshot")
	return cfg
}

// goOn trains to the end with each rank's kept state, and returns rank 0's output and snapshot.
func goOn(t *testing.T, cfg config, ks []kept) (out string, file []byte) {
	t.Helper()
	var output bytes.Buffer
	commtest.Run(t, len(ks), func(ctx context.Context, c *comm.Comm) error {
		k, mine := ks[c.Rank()], io.Writer(io.Discard)
		if c.Rank() == 0 {
			mine = &output
		}
		_, err := train(ctx, c, cfg, mine, &k)
		return err
	})
	return output.String(), readFile(t, cfg.snapshot)
}

// survivors runs the training on n ranks until one ends after a step, and returns the kept state of
// the others, which have begun the next step. It does so twice, with another rank that ends, to
// have each rank's state when another dies.
func survivors(t *testing.T, n int, cfg config, step int) []kept {
	t.Helper()
	others := ended(t, n, cfg, step, func(rank int) bool { return rank == 0 })
	return append(ended(t, n, cfg, step, func(rank int) bool { return rank == n-1 })[:n-1], others[n-1])
}

// A step that failed is undone on each rank, also in the unsent numbers of its hook. So ranks that
// all live go on bit for bit, whatever the snapshot is of.
func TestSurvivorsKeepWhatAHookHadNotSent(t *testing.T) {
	for _, hook := range []string{"powersgd", "topk"} {
		for _, n := range []int{2, 3} {
			for _, saveEvery := range []int{0, 5} {
				cfg := recovering(t, hook)
				cfg.saveEvery = saveEvery
				want := saved(t, n, cfg)
				out, got := goOn(t, cfg, survivors(t, n, cfg, 13))
				if line := fmt.Sprintf("recovery: %d of %d ranks keep what -hook %s had not sent\n", n, n,
					hook); !strings.Contains(out, line) || strings.Contains(out, "snapshot:") {
					t.Errorf("output lacks %q, or speaks of a snapshot:\n%s", line, out)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s on %d ranks, saved every %d steps: the run ends with other parameters, or another memory", hook, n, saveEvery)
				}
			}
		}
	}
}

// A snapshot of the very step has the dead rank's unsent numbers, too: its replacement gets them.
func TestReplacementsGetWhatASnapshotOfTheStepHas(t *testing.T) {
	for _, hook := range []string{"powersgd", "topk"} {
		cfg := recovering(t, hook)
		ks := interrupted(t, 3, cfg, 10)
		ks[1] = kept{}
		cfg.saveEvery = 10
		want := saved(t, 3, cfg)
		interrupted(t, 3, cfg, 11) // leaves the snapshot
		if out, got := goOn(t, cfg, ks); !bytes.Equal(got, want) ||
			!strings.Contains(out, "snapshot: memory of the hook: restored\n") {
			t.Errorf("%s: the run ends with other parameters, or another memory:\n%s", hook, out)
		}
	}
}

// An adopted is the state that a rank begins with.
type adopted struct {
	step  int64
	own   []float32 // of the hook, one slice after the other
	order []int     // of the buckets
}

// adopt makes trainers that begin with ks, and returns their states, and rank 0's output.
func adopt(t *testing.T, cfg config, ks []kept) (all []adopted, out string) {
	t.Helper()
	all = make([]adopted, len(ks))
	var output bytes.Buffer
	commtest.Run(t, len(ks), func(ctx context.Context, c *comm.Comm) error {
		k, mine := ks[c.Rank()], io.Writer(io.Discard)
		if c.Rank() == 0 {
			mine = &output
		}
		trainer, err := newTrainer(ctx, c, cfg, mine, &k)
		if err != nil {
			return err
		}
		a := &all[c.Rank()]
		a.step, a.order = trainer.state.Step, trainer.d.BucketOrder()
		for _, s := range trainer.state.Hook.Own {
			a.own = append(a.own, comm.Slice[float32](s.Data)...)
		}
		if err := trainer.d.Close(ctx); err != nil {
			return err
		}
		return trainer.model.Close()
	})
	return all, output.String()
}

// scaled returns the hook's own memory in k, times by.
func (k *kept) scaled(by float32) (own []float32) {
	for _, b := range k.own {
		for ; len(b) > 0; b = b[4:] {
			var v float32
			if _, err := binary.Decode(b, binary.NativeEndian, &v); err != nil {
				panic(err)
			}
			own = append(own, v*by)
		}
	}
	return own
}

// The dead rank's unsent numbers are lost; so are the numbers of a rank that has not completed the
// last step of others. The others contribute as much as they would have done, on fewer ranks, too.
// All begin with the buckets of the rank that has come farthest.
func TestRanksBeginWithWhatTheyHadNotSent(t *testing.T) {
	for _, hook := range []string{"powersgd", "topk"} {
		cfg := recovering(t, hook)
		cfg.snapshot = ""
		last, before := interrupted(t, 3, cfg, 13), interrupted(t, 3, cfg, 12)
		for _, ks := range [][]kept{last, before} {
			for i := range ks {
				slices.Reverse(ks[i].bucketOrder) // to tell it from the order of the first step
			}
		}
		order := last[0].bucketOrder
		for _, tc := range []struct {
			name string
			ks   []kept
			by   []float32 // factor of each rank's kept numbers; 0: nothing
			want string
		}{
			{"replaced", []kept{last[0], {}, last[2]}, []float32{1, 0, 1}, "2 of 3"},
			{"rank 0 replaced", []kept{{}, last[1], last[2]}, []float32{0, 1, 1}, "2 of 3"},
			{"fewer", []kept{last[0], last[2]}, []float32{2. / 3, 2. / 3}, "2 of 3"},
			{"alone", []kept{last[2]}, []float32{1. / 3}, "1 of 3"},
			{"a step behind", []kept{before[0], last[1], last[2]}, []float32{0, 1, 1}, "2 of 3"},
		} {
			all, out := adopt(t, cfg, tc.ks)
			if line := "recovery: " + tc.want + " ranks keep what -hook " + hook +
				" had not sent\n"; !strings.Contains(out, line) {
				t.Errorf("%s, %s: output lacks %q:\n%s", hook, tc.name, line, out)
			}
			for rank, a := range all {
				want := make([]float32, len(last[0].scaled(1)))
				if tc.by[rank] != 0 {
					want = tc.ks[rank].scaled(tc.by[rank])
				}
				if a.step != 13 || !slices.Equal(a.own, want) || !slices.Equal(a.order, order) {
					t.Errorf("%s, %s: rank %d begins after step %d with buckets in the order %v, want 13 and %v, or with another memory",
						hook, tc.name, rank, a.step, a.order, order)
				}
			}
		}
		if own := last[0].scaled(1); !slices.ContainsFunc(own, func(v float32) bool { return v != 0 }) {
			t.Errorf("%s has sent everything: the test shows nothing", hook)
		}
	}
}

// A step that failed is made again. So the hook's memory is kept as it was before: PowerSGD counts
// steps, and all ranks have to begin to compress at the same one.
func TestAStepThatFailedIsNothingToTheHook(t *testing.T) {
	cfg := small()
	cfg.hook, cfg.recover = "powersgd", restore
	cfg.snapshot = ""
	for _, step := range []int{1, 13} {
		for rank, k := range survivors(t, 2, cfg, step) {
			var numbers []int64 // among the shared numbers; the hook's count of steps is one of them
			for _, b := range k.slices {
				if len(b) == 8 {
					numbers = append(numbers, int64(binary.NativeEndian.Uint64(b)))
				}
			}
			if !slices.Contains(numbers, k.step) || slices.Contains(numbers, k.step+1) {
				t.Errorf("rank %d was interrupted after step %d, and its hook remembers %d", rank, k.step, numbers)
			}
		}
	}
}
