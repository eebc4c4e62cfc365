package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
)

// scattered is a job whose backward reaches parameters neither from the last to the first nor the
// other way, so that its first step makes other buckets than it began with: the bias and the upper
// weight are in one, instead of the bias and the lower. In a ring the place in a bucket decides in
// which order the ranks' gradients are added up.
func scattered(hook func() (ddp.Hook, error)) job {
	const bytes = 4 * (half*features + outputs)
	return job{hook: hook, tuning: "allreduce:circulant",
		opts: ddp.Options{FirstBucketBytes: bytes, BucketBytes: bytes}, order: []int{2, 0, 1}}
}

// file trains and returns the snapshot.
func (j job) file(t *testing.T, size int) []byte {
	t.Helper()
	j.train(t, size)
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Backward has an order of its own. A job that continues begins with the buckets of the last step
// before, and ends with the file of one that never stopped, of which all bytes are compared.
// Without the order it does not, which shows that the test can tell.
func TestBucketsInTheOrderOfBackwardGoOnBitForBit(t *testing.T) {
	hooks := map[string]func() (ddp.Hook, error){"none": nil}
	for name, hook := range remembering {
		hooks[name] = hook
	}
	for name, hook := range hooks {
		recalls := NoMemory
		if hook != nil {
			recalls = Restored
		}
		named := 0
		for _, size := range []int{2, 3, 4} {
			dir := t.TempDir()
			run := func(file string, from, to int64, unsorted bool) []byte {
				j := scattered(hook)
				j.path, j.from, j.to, j.unsorted, j.recalls = filepath.Join(dir, file), from, to, unsorted, recalls
				return j.file(t, size)
			}
			want := run("undisturbed", 0, 30, false)
			run("stopped", 0, 10, false)
			if !bytes.Equal(run("stopped", 10, 30, false), want) {
				t.Errorf("%s on %d ranks: a job that went on leaves another file", name, size)
			}
			run("unsorted", 0, 10, true)
			if !bytes.Equal(run("unsorted", 10, 30, false), want) {
				named++
			}
		}
		if named == 0 {
			t.Errorf("%s: without the order of the buckets a job leaves the same file: the test shows nothing", name)
		}
	}
}

// All ranks take up the order that was saved, also if they are more or fewer, or if their buckets
// have another size. The curve equals the curve of a job that never stopped, to rounding.
func TestAnyRanksAndSizesTakeUpTheOrderOfTheBuckets(t *testing.T) {
	whole := scattered(nil)
	whole.to = 30
	_, curve := whole.train(t, 2)
	path := filepath.Join(t.TempDir(), "snapshot")
	for _, size := range []int{1, 2, 3} {
		for _, bucketBytes := range []int{4, whole.opts.BucketBytes, 1 << 20} {
			first := scattered(nil)
			first.to, first.path = 10, path
			first.train(t, 2)
			j := scattered(nil)
			j.from, j.to, j.path = 10, 30, path
			j.opts.FirstBucketBytes, j.opts.BucketBytes = bucketBytes, bucketBytes
			j.order = []int{0, 1, 2} // it would make others
			_, rest := j.train(t, size)
			for i, loss := range rest {
				if math.Abs(loss-curve[10+i]) > 1e-4*curve[10+i] {
					t.Errorf("%d ranks with buckets of %d bytes: loss at step %d is %v, want %v", size, bucketBytes,
						10+i, loss, curve[10+i])
				}
			}
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				s := newLinear(nil).state()
				if _, err := Load(ctx, c, path, s); err != nil || !slices.Equal(s.BucketOrder, []int{2, 0, 1}) {
					return fmt.Errorf("the order is %v (%v), want that of the job before", s.BucketOrder, err)
				}
				return nil
			})
		}
	}
}

// A Hook's unsent numbers belong to parameters, not to buckets: buckets of another size continue
// with them, and learn as well.
func TestHooksGoOnWithBucketsOfAnotherSize(t *testing.T) {
	for name, hook := range remembering {
		whole := scattered(hook)
		whole.to = 60
		_, curve := whole.train(t, 2)
		for _, bucketBytes := range []int{4, 1 << 20} {
			first := scattered(hook)
			first.to, first.path = 30, filepath.Join(t.TempDir(), "snapshot")
			first.train(t, 2)
			j := scattered(hook)
			j.from, j.to, j.path, j.recalls = 30, 60, first.path, Restored
			j.opts.FirstBucketBytes, j.opts.BucketBytes = bucketBytes, bucketBytes
			if _, rest := j.train(t, 2); !(rest[29] < 1.2*curve[59]) {
				t.Errorf("%s: buckets of %d bytes end with the loss %v, those of before with %v, from %v", name,
					bucketBytes, rest[29], curve[59], curve[29])
			}
		}
	}
}
