package shmcoll

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"gompi/internal/core/path"
	"gompi/internal/core/shmsync/shmsynctest"
)

// inHeap returns a mover to a rank's heap, where what is moved lies one behind the
// other, apart from each other by a few elements.
func inHeap(h *shmsynctest.Host, rank int) mover {
	free := h.Heaps[rank]
	return func(v []int64) []int64 {
		const gap = 3 * 8
		moved := unsafe.Slice((*int64)(unsafe.Pointer(&free[gap])), len(v))
		copy(moved, v)
		free = free[gap+8*len(v):]
		return moved
	}
}

// crossing makes members reach vectors through the kernel: always, or as trials have shown.
func crossing(t *testing.T, r *Collectives, tuning string) {
	t.Helper()
	rules := &path.Rules{Oversubscribed: r.Size()%2 == 1}
	if err := rules.Tune(tuning); err != nil {
		t.Fatal(err)
	}
	r.paths = path.New(r.paths.Topology, rules)
}

// spoil writes to vectors, which the race detector sees; clear would not be seen.
func spoil(all [][]int64) {
	for _, v := range all {
		for i := range v {
			v[i] = -1
		}
	}
}

// Vectors are used again at once when a call returns: no member reads or writes there any more,
// which the race detector would see.
func TestStressVectorsOfMembersAlone(t *testing.T) {
	for _, tuning := range []string{"shm.read=1;shm.trial=never", "shm.trial=1"} {
		shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
			members, h := comms(t, p, pause)
			for _, r := range members {
				crossing(t, r, tuning)
			}
			return shmsynctest.Together(members, func(r *Collectives) error {
				rng := rand.New(rand.NewPCG(round, 99)) // the same on all
				r.paths.AddAllocations(rng.IntN(2))
				for nth := range 100 {
					kind, n, root := rng.IntN(kinds), rng.IntN(1<<rng.IntN(13)), rng.IntN(p)
					var used [][]int64
					move := func(v []int64) []int64 {
						used = append(used, v)
						return v
					}
					if shared := rng.IntN(2 * p); shared == r.Me() {
						move = inHeap(h, r.Me())
					}
					pause(r.Me())
					if err := once(r, kind, n, root, nth, move); err != nil {
						return h.Break(err)
					}
					pause(r.Me())
					spoil(used)
					clear(h.Heaps[r.Me()])
				}
				return nil
			})
		})
	}
}

// A member whose collective fails returns, and then no member writes to its vector any more.
func TestWhoFailsIsNotWrittenTo(t *testing.T) {
	fault := errors.New("no such memory")
	for _, p := range []int{2, 3, 5} {
		for kind := 1; kind < kinds; kind++ {
			for after := range 4 {
				members, h := comms(t, p, func(int) {})
				for _, r := range members {
					crossing(t, r, "shm.read=1;shm.trial=never")
					left := after
					r.cross = &ownMemory{after: func() error {
						if left--; r.Me() == p-1 && left < 0 {
							return fault
						}
						return nil
					}}
				}
				spoilt := make([][][]int64, p) // by member that has failed
				_ = shmsynctest.Together(members, func(r *Collectives) error {
					var used [][]int64
					err := once(r, kind, 1<<15, 0, 0, func(v []int64) []int64 {
						used = append(used, v)
						return v
					})
					spoil(used)
					if err != nil && !errors.Is(err, fault) {
						t.Errorf("kind %d, %d members: %v, want %v", kind, p, err, fault)
					}
					if err != nil {
						h.Break(err)
						spoilt[r.Me()] = used
					}
					return nil
				})
				for me, used := range spoilt {
					if slices.ContainsFunc(used, func(v []int64) bool {
						return slices.ContainsFunc(v, func(x int64) bool { return x != -1 })
					}) {
						t.Errorf("kind %d, member %d of %d: a vector of a collective that has failed was written to",
							kind, me, p)
					}
				}
			}
		}
	}
}

// Whatever the timing, and whichever vectors are in a heap, no member reads what is not
// there yet, and no member returns before its vectors are read and written.
// Of many calls of one kind some go through the kernel, not the first ones, and all are right.
func TestTrialsGoBothWays(t *testing.T) {
	for _, kind := range []int{1, 2, 3, 5, 7} {
		members, h := comms(t, 3, func(int) {})
		var crossed atomic.Int64
		for _, r := range members {
			crossing(t, r, "shm.trial=1")
			r.cross = &ownMemory{after: func() error {
				crossed.Add(1)
				return nil
			}}
		}
		const calls, n = 300, 5000
		err := shmsynctest.Together(members, func(r *Collectives) error {
			for nth := range calls {
				if err := once(r, kind, n, nth%3, nth, unmoved); err != nil {
					return h.Break(err)
				}
			}
			return nil
		})
		if err != nil || crossed.Load() == 0 {
			t.Errorf("kind %d: %d transfers through the kernel, %v", kind, crossed.Load(), err)
		}
	}
}

func TestStressVectorsInHeaps(t *testing.T) {
	shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
		members, h := comms(t, p, pause)
		return shmsynctest.Together(members, func(r *Collectives) error {
			rng := rand.New(rand.NewPCG(round, 99)) // the same on all
			r.paths.AddAllocations(1)
			for nth := range 100 {
				kind, n, root := rng.IntN(kinds), rng.IntN(1<<rng.IntN(13)), rng.IntN(p)
				move := inHeap(h, r.Me())
				if apart := rng.IntN(2 * p); apart == r.Me() {
					move = unmoved
				}
				pause(r.Me())
				if err := once(r, kind, n, root, nth, move); err != nil {
					return h.Break(err)
				}
				// The memory is used again at once: no member reads or writes there any more.
				pause(r.Me())
				clear(h.Heaps[r.Me()])
			}
			return nil
		})
	})
}

// A collective on vectors in heaps is two steps, whatever its length, and copies
// nothing; one whose vectors are not all there goes the ordinary way.
func TestVectorsInHeapsAreReachedInPlace(t *testing.T) {
	const n, direct = 1 << 14, 2 // elements, steps
	for _, p := range []int{2, 4} {
		for kind := 1; kind < kinds; kind++ {
			for private := range 2 {
				members, h := comms(t, p, func(int) {})
				steps := make([]uint64, p)
				err := shmsynctest.Together(members, func(r *Collectives) error {
					r.paths.AddAllocations(1)
					move := inHeap(h, r.Me())
					if private == 1 && r.Me() == 0 {
						move = unmoved
					}
					err := once(r, kind, n, 0, 0, move)
					steps[r.Me()] = r.Last()
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				for rank, s := range steps {
					if (s == direct) != (private == 0) {
						t.Errorf("kind %d, %d ranks, %d of them with private vectors: rank %d took %d steps", kind, p,
							private, rank, s)
					}
				}
			}
		}
	}
}

// Where no member has memory from Alloc, or no more, no member asks where vectors are.
func TestOnlyCommsWithAllocationsAskWhereVectorsAre(t *testing.T) {
	members, h := comms(t, 2, func(int) {})
	for _, r := range members {
		crossing(t, r, "shm.singlecopy=1k;shm.read=never;shm.trial=never")
	}
	for i, lent := range []int{0, 1, 2, -2, -1} {
		before, want := members[0].Last(), uint64(1) // a bcast of so much is one step
		if i == 1 || i == 2 || i == 3 {
			want = 2
		}
		err := shmsynctest.Together(members, func(r *Collectives) error {
			r.paths.AddAllocations(lent)
			return once(r, 1, 200, 0, i, inHeap(h, r.Me()))
		})
		if took := members[0].Last() - before; err != nil || took != want {
			t.Errorf("%d more allocations: %d steps and %v, want %d", lent, took, err, want)
		}
	}
}

// The two ends of a block copy all of it, and none of it twice.
func TestBothEndsOfABlockShareIt(t *testing.T) {
	for _, p := range []int{2, 3, 7, 64} {
		for _, n := range []int{0, 1, 63, 64, 1000, 4096, 100_003} {
			for _, inPlace := range []bool{false, true} {
				a, b := shareOf(0, p-1, 0, p, n, inPlace)
				c, d := shareOf(p-1, p-1, 0, p, n, inPlace)
				if a != 0 || b != c || d != n {
					t.Errorf("block of %d bytes, %d members, in place %v: %d to %d and %d to %d", n, p,
						inPlace, a, b, c, d)
				}
			}
		}
	}
}
