package shmcoll

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/core/shmsync/shmsynctest"
	"gompi/internal/mem"
	"gompi/internal/ways"
)

// comms returns the Collectives of all ranks of a new Host, by rank.
func comms(t testing.TB, n int, pause func(rank int)) ([]*Collectives, *shmsynctest.Host) {
	t.Helper()
	h := shmsynctest.NewHost(n, path.LargeBuffer(n))
	var cs []*Collectives
	for _, team := range h.Teams(t, gateOf(n), pause) {
		cs = append(cs, New(team, h.Heaps, new(ownMemory), pathsOf(n)))
	}
	return cs, h
}

func gateOf(n int) shmsync.Gate {
	barriers, steps := pathsOf(n).Gates()
	return shmsync.Gate{Barriers: barriers, Steps: steps}
}

// An ownMemory reaches memory of this process, in which all members are. after is called after each
// transfer, if not nil; then the race detector does not see what is read, since who fails does not
// wait for those who read.
type ownMemory struct{ after func() error }

func (m *ownMemory) Expose()          {}
func (m *ownMemory) Reaches(int) bool { return true }

func (m *ownMemory) Has([]byte, bool) bool { return true }

func (m *ownMemory) Read(_ int, dst []byte, from uintptr) error {
	src := unsafe.Slice(pointer(from), len(dst))
	if m.after == nil {
		copy(dst, src)
		return nil
	}
	copyUnseen(dst, src)
	return m.after()
}

func (m *ownMemory) Write(_ int, src []byte, to uintptr) error {
	dst := unsafe.Slice(pointer(to), len(src))
	if m.after == nil {
		copy(dst, src)
		return nil
	}
	for i := range dst {
		if dst[i] = src[i]; i%4096 == 0 {
			runtime.Gosched()
		}
	}
	return m.after()
}

//go:norace
func copyUnseen(dst, src []byte) {
	for i := range dst {
		dst[i] = src[i]
	}
}

func pointer(at uintptr) *byte { return *(**byte)(unsafe.Pointer(&at)) }

// pathsOf returns the Selector of this many ranks, an odd number of which has too few processors.
func pathsOf(ranks int) *path.Selector {
	rules := &path.Rules{Oversubscribed: ranks%2 == 1}
	return path.New(path.Topology{Ranks: ranks, Shared: true, LargeBuffer: path.LargeBuffer(ranks)}, rules)
}

// do does a collective as its Path says.
func (r *Collectives) do(o *call.Call) error { return r.Run(r.paths.For(o), o) }

// Whatever thresholds a user sets, collectives of any lengths end, and give what they should.
func TestCollectivesAtTheExtremesOfThresholds(t *testing.T) {
	for _, test := range []struct {
		tuning  string
		ordered bool
	}{
		{"shm.chunk=2k;shm.large=1024g", false},
		{"shm.chunk=16k;shm.large=1024g", false},
		{"shm.chunk=2k;shm.large=0;shm.singlecopy=1", false},
		{"shm.chunk=2k;shm.large=0", true},
		{"shm.read=1;shm.trial=never;shm.large=0;shm.singlecopy=1", false},
		{"shm.trial=1", false},
	} {
		for _, p := range []int{2, 3, 5} {
			members, h := comms(t, p, func(int) {})
			for _, r := range members {
				rules := &path.Rules{Oversubscribed: p%2 == 1, Deterministic: test.ordered}
				if err := rules.Tune(test.tuning); err != nil {
					t.Fatal(err)
				}
				r.paths = path.New(r.paths.Topology, rules)
				r.paths.AddAllocations(1)
			}
			lengths := []int{0, 1, 2048, 2047, 2500, 2500, 4000, 2048, 250, 8000, 3, 0, 6000} // of 8 bytes
			err := shmsynctest.Together(members, func(r *Collectives) error {
				for i := range lengths {
					for kind := range kinds {
						if err := once(r, kind, lengths[(i+kind)%len(lengths)], i%p, i*kinds+kind,
							unmoved); err != nil {
							return h.Break(err)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%+v, %d ranks: %v", test, p, err)
			}
		}
	}
}

// digests are those of what the members have called, by weak pointers: each keeps the memory of a
// Host.
var digests sync.Map

func begin(r *Collectives, nth uint64) {
	c := &shmsync.EncodedCall{A: nth}
	before, _ := digests.LoadOrStore(weak.Make(r), uint64(1))
	digest := c.Digest(before.(uint64))
	digests.Store(weak.Make(r), digest)
	r.Begin(c, digest, false)
}

// kinds of collectives are done by once.
const kinds = 9

// A mover moves a vector to the memory that a test wants it in.
type mover func(v []int64) []int64

// unmoved leaves it in Go's.
func unmoved(v []int64) []int64 { return v }

// once does one collective of n elements in a block, and checks what comes of it.
func once(r *Collectives, kind, n, root, nth int, move mover) error {
	p := r.Size()
	begin(r, uint64(nth+1))
	send, recv := move(shmsynctest.Vector(nth, r.Me(), n)), move(make([]int64, n))
	sum := call.Op{Kind: mem.Sum}
	total := func(i int) (s int64) {
		for q := range p {
			s += shmsynctest.Value(nth, q, i)
		}
		return s
	}
	check := func(err error, got []int64, want func(i int) int64) error {
		for i := range got {
			if err == nil && got[i] != want(i) {
				err = fmt.Errorf("call %d of kind %d with %d elements: element %d is %d, want %d", nth, kind, n, i,
					got[i], want(i))
			}
		}
		return err
	}
	switch kind {
	case 0:
		return r.do(new(call.Call).Barrier())
	case 1:
		return check(r.do(new(call.Call).Bcast(root, mem.Of(send))), send,
			func(i int) int64 { return shmsynctest.Value(nth, root, i) })
	case 2:
		err := r.do(new(call.Call).Reduce(root, mem.Of(send), mem.Of(recv), sum))
		if r.Me() != root {
			recv = nil
		}
		return check(err, recv, total)
	case 3:
		return check(r.do(new(call.Call).Allreduce(mem.Of(send), mem.Of(recv), sum)), recv, total)
	case 4:
		all := move(make([]int64, n*p))
		return check(r.do(new(call.Call).Allgather(mem.Of(send), mem.Of(all))), all,
			func(i int) int64 { return shmsynctest.Value(nth, i/n, i%n) })
	case 5:
		all, in := move(shmsynctest.Vector(nth, r.Me(), n*p)), move(make([]int64, n*p))
		return check(r.do(new(call.Call).Alltoall(mem.Of(all), mem.Of(in))), in,
			func(i int) int64 { return shmsynctest.Value(nth, i/n, r.Me()*n+i%n) })
	case 6:
		all := move(shmsynctest.Vector(nth, r.Me(), n*p))
		return check(r.do(new(call.Call).ReduceScatterBlock(mem.Of(all), mem.Of(recv), sum)), recv,
			func(i int) int64 { return total(r.Me()*n + i) })
	case 7:
		var all []int64
		if r.Me() == root {
			all = move(make([]int64, n*p))
		}
		return check(r.do(new(call.Call).Gather(root, mem.Of(send), mem.Of(all))), all,
			func(i int) int64 { return shmsynctest.Value(nth, i/n, i%n) })
	}
	var all []int64
	if r.Me() == root {
		all = move(shmsynctest.Vector(nth, root, n*p))
	}
	return check(r.do(new(call.Call).Scatter(root, mem.Of(all), mem.Of(recv))), recv,
		func(i int) int64 { return shmsynctest.Value(nth, root, r.Me()*n+i) })
}

// Whatever the timing, no member reads what is not there yet, or not there any more,
// and none sleeps forever, whatever ways members draw by lot.
func TestStressCollectives(t *testing.T) {
	defer ways.AtRandom.Store(false)
	shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
		members, _ := comms(t, p, pause)
		ways.AtRandom.Store(round%2 == 0)
		return shmsynctest.Together(members, func(r *Collectives) error {
			rng := rand.New(rand.NewPCG(round, 99)) // the same on all
			for nth := range 100 {
				pause(r.Me())
				kind, n := rng.IntN(kinds), rng.IntN(1<<rng.IntN(15))
				if err := once(r, kind, n, rng.IntN(p), nth, unmoved); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func TestWhatTheCachesDoNotHoldArrives(t *testing.T) {
	for _, p := range []int{2, 3} {
		members, _ := comms(t, p, func(int) {})
		for kind := range kinds {
			err := shmsynctest.Together(members, func(r *Collectives) error {
				return once(r, kind, 20<<20/16+5, kind%p, kind, unmoved)
			})
			if err != nil {
				t.Fatalf("%d members: %v", p, err)
			}
		}
	}
}

func TestADifferentCallIsFoundAlsoByThoseWhoDidNotWait(t *testing.T) {
	for quiet := range 5 { // calls after the one in question in which the rank waits for no member
		members, _ := comms(t, 2, func(int) {})
		err := shmsynctest.Together(members, func(r *Collectives) error {
			b := []int64{1}
			begin(r, uint64(10+r.Me()))
			if err := r.do(new(call.Call).Bcast(r.Me(), mem.Of(b))); err != nil { // each is the root of its own
				return err
			}
			for range quiet {
				begin(r, 20)
				if err := r.do(new(call.Call).Bcast(0, mem.Of(b))); err != nil {
					return err
				}
			}
			begin(r, 30)
			return r.do(new(call.Call).Barrier())
		})
		if !errors.Is(err, shmsynctest.ErrDisagree) || !strings.Contains(err.Error(), "{10 0}") ||
			!strings.Contains(err.Error(), "{11 0}") {
			t.Errorf("after %d calls: got %v, want both calls", quiet, err)
		}
	}
}
