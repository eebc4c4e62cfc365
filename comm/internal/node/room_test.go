package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// house is the memory of some goroutine ranks, and how they find each other.
type house struct {
	broken atomic.Pointer[error]
	arenas [][]byte
	heaps  [][]byte
	pools  []*Pool
	asleep []atomic.Uint32
	rung   []atomic.Uint32
}

func newHouse(n int) *house {
	h := &house{asleep: make([]atomic.Uint32, n), rung: make([]atomic.Uint32, n)}
	for range n {
		arena := aligned(32 << 20)
		h.arenas, h.heaps = append(h.arenas, arena), append(h.heaps, aligned(heapSize))
		claim := func(off, k int) error {
			if off >= 3*BlockSize && off < len(arena)/8 {
				return errors.New("no memory")
			}
			return nil
		}
		h.pools = append(h.pools, NewPool(arena, n, claim, func(int) bool { return false }))
	}
	return h
}

// heapSize is the memory of each rank that others reach: two of the longest vectors.
const heapSize = 2 * 17 << 17

// aligned returns n bytes that elements of any type can lie in.
func aligned(n int) []byte {
	words := make([]complex128, n/16)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// rooms returns a room of all, by rank, and gives it back.
func (h *house) rooms(t testing.TB, ordered bool, pause func(rank int)) (rooms []*Room, leave func()) {
	t.Helper()
	tokens := make([]Token, len(h.pools))
	for r, p := range h.pools {
		var err error
		if tokens[r], err = p.Take(); err != nil {
			t.Fatal(err)
		}
	}
	for me := range h.pools {
		rooms = append(rooms, h.room(me, tokens, ordered, pause))
	}
	return rooms, func() {
		for r, p := range h.pools {
			p.Give(tokens[r])
		}
	}
}

// room returns the room of the blocks that tokens name, for one rank.
func (h *house) room(me int, tokens []Token, ordered bool, pause func(rank int)) *Room {
	p := h.pools[me]
	blocks := make([]Part, len(tokens))
	own, claim := p.Own(tokens[me])
	for r, tok := range tokens {
		if r == me {
			blocks[r] = own
		} else {
			blocks[r] = p.Enter(tokens[me], r, h.arenas[r], tok)
		}
	}
	r := New(me, blocks, claim, pathsOf(len(tokens), ordered), &door{h, me, pause})
	r.SeeHeaps(h.heaps)
	return r
}

// pathsOf returns the Selector of so many ranks, an odd number of which has too few processors.
func pathsOf(ranks int, ordered bool) *path.Selector {
	rules := &path.Rules{Deterministic: ordered, Crowded: ranks%2 == 1}
	return path.New(path.Topology{Ranks: ranks, Shared: true, LargeBuffer: path.LargeBuffer(ranks)}, rules)
}

// do does a collective as its Path says.
func (r *Room) do(o *call.Call) error { return r.Run(r.paths.For(o), o) }

// Whatever thresholds a user sets, collectives of any lengths end, and give what they should.
func TestCollectivesAtTheExtremesOfThresholds(t *testing.T) {
	for _, tuning := range []string{
		"shm.piece=2k;shm.onestep=0;shm.allreduce=0;shm.large=1024g",
		"shm.piece=16k;shm.onestep=16k;shm.allreduce=16k;shm.large=1024g",
		"shm.piece=2k;shm.onestep=0;shm.allreduce=0;shm.large=0;shm.singlecopy=1;shm.singlecopy.crowded=1",
	} {
		for _, p := range []int{2, 3, 5} {
			h := newHouse(p)
			rooms, leave := h.rooms(t, false, func(int) {})
			for _, r := range rooms {
				rules := &path.Rules{Crowded: p%2 == 1}
				if err := rules.Tune(tuning); err != nil {
					t.Fatal(err)
				}
				r.paths = path.New(r.paths.Topology, rules)
				r.paths.Lend(1)
			}
			lengths := []int{0, 1, 2048, 2047, 2500, 2500, 4000, 2048, 250, 8000, 3, 0, 6000} // of 8 bytes
			err := together(rooms, func(r *Room) error {
				for i := range lengths {
					for kind := range kinds {
						if err := once(r, kind, lengths[(i+kind)%len(lengths)], i%p, i*kinds+kind, unmoved); err != nil {
							h.broken.CompareAndSwap(nil, &err)
							return err
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s, %d ranks: %v", tuning, p, err)
			}
			leave()
		}
	}
}

// A door is the Port of a goroutine rank. It sleeps as ranks do: it says so, looks
// once more, and then waits to be rung.
type door struct {
	*house
	me    int
	pause func(rank int)
}

func (h *house) fault() error {
	if err := h.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *door) Begun() {}

func (d *door) Glance(int) error {
	d.pause(d.me)
	return d.fault()
}

func (d *door) Await(word *atomic.Uint64, want uint64, member int) error {
	for {
		d.pause(d.me)
		d.asleep[d.me].Store(1)
		d.pause(d.me)
		if word.Load() >= want {
			d.asleep[d.me].Store(0)
			return nil
		}
		for d.rung[d.me].Load() == 0 && d.fault() == nil {
			runtime.Gosched()
		}
		d.rung[d.me].Store(0)
		d.asleep[d.me].Store(0)
		if err := d.fault(); err != nil {
			return err
		}
	}
}

func (d *door) Looks() int { return 10 }

func (d *door) Wake(member int) {
	d.pause(d.me)
	if d.asleep[member].CompareAndSwap(1, 0) {
		d.rung[member].Store(1)
	}
}

func (d *door) Disagree(member, _ int, mine, theirs Call) error {
	return d.breakUp(fmt.Errorf("%w: %v, member %d %v", errDisagree, mine, member, theirs))
}

func (d *door) DisagreeOn(member, mine, theirs int) error {
	return d.breakUp(fmt.Errorf("%w: %d bytes, member %d %d", errDisagree, mine, member, theirs))
}

var errDisagree = errors.New("disagree")

func (h *house) breakUp(err error) error {
	h.broken.CompareAndSwap(nil, &err)
	return h.fault()
}

// together runs fn on all ranks and returns what they returned.
func together(rooms []*Room, fn func(r *Room) error) error {
	errs := make([]error, len(rooms))
	var all sync.WaitGroup
	for i, r := range rooms {
		all.Go(func() { errs[i] = fn(r) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func begin(r *Room, nth uint64) { r.Begin(Call{nth, 0}, false) }

// value is element i of what a rank sends in a collective.
func value(nth, rank, i int) int64 { return int64(nth*7 + rank*1000 + i) }

func vector(nth, rank, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = value(nth, rank, i)
	}
	return v
}

// kinds of collectives are done by once.
const kinds = 9

// A mover moves a vector to the memory that a test wants it in.
type mover func(v []int64) []int64

// unmoved leaves it in Go's.
func unmoved(v []int64) []int64 { return v }

// once does one collective of n elements in a block, and checks what comes of it.
func once(r *Room, kind, n, root, nth int, move mover) error {
	p := r.size()
	begin(r, uint64(nth+1))
	send, recv := move(vector(nth, r.me, n)), move(make([]int64, n))
	sum := call.Op{Kind: mem.Sum}
	total := func(i int) (s int64) {
		for q := range p {
			s += value(nth, q, i)
		}
		return s
	}
	check := func(err error, got []int64, want func(i int) int64) error {
		for i := range got {
			if err == nil && got[i] != want(i) {
				err = fmt.Errorf("call %d of kind %d with %d elements: element %d is %d, want %d", nth, kind, n, i, got[i], want(i))
			}
		}
		return err
	}
	switch kind {
	case 0:
		return r.do(new(call.Call).Barrier())
	case 1:
		return check(r.do(new(call.Call).Bcast(root, mem.Of(send))), send, func(i int) int64 { return value(nth, root, i) })
	case 2:
		err := r.do(new(call.Call).Reduce(root, mem.Of(send), mem.Of(recv), sum))
		if r.me != root {
			recv = nil
		}
		return check(err, recv, total)
	case 3:
		return check(r.do(new(call.Call).Allreduce(mem.Of(send), mem.Of(recv), sum)), recv, total)
	case 4:
		all := move(make([]int64, n*p))
		return check(r.do(new(call.Call).Allgather(mem.Of(send), mem.Of(all))), all, func(i int) int64 { return value(nth, i/n, i%n) })
	case 5:
		all, in := move(vector(nth, r.me, n*p)), move(make([]int64, n*p))
		return check(r.do(new(call.Call).Alltoall(mem.Of(all), mem.Of(in))), in, func(i int) int64 { return value(nth, i/n, r.me*n+i%n) })
	case 6:
		all := move(vector(nth, r.me, n*p))
		return check(r.do(new(call.Call).ReduceScatterBlock(mem.Of(all), mem.Of(recv), sum)), recv, func(i int) int64 { return total(r.me*n + i) })
	case 7:
		var all []int64
		if r.me == root {
			all = move(make([]int64, n*p))
		}
		return check(r.do(new(call.Call).Gather(root, mem.Of(send), mem.Of(all))), all, func(i int) int64 { return value(nth, i/n, i%n) })
	}
	var all []int64
	if r.me == root {
		all = move(vector(nth, root, n*p))
	}
	return check(r.do(new(call.Call).Scatter(root, mem.Of(all), mem.Of(recv))), recv, func(i int) int64 { return value(nth, root, r.me*n+i) })
}

// Whatever the timing, no member reads what is not there yet, or not there any more,
// and none sleeps for ever.
func TestStressRooms(t *testing.T) {
	stressed(t, func(round uint64, p int, pause func(rank int)) error {
		rooms, _ := newHouse(p).rooms(t, false, pause)
		return together(rooms, func(r *Room) error {
			rng := rand.New(rand.NewPCG(round, 99)) // the same on all
			for nth := range 100 {
				pause(r.me)
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
		rooms, _ := newHouse(p).rooms(t, false, func(int) {})
		for kind := range kinds {
			err := together(rooms, func(r *Room) error { return once(r, kind, pastFrom/16+5, kind%p, kind, unmoved) })
			if err != nil {
				t.Fatalf("%d members: %v", p, err)
			}
		}
	}
}

func TestADifferentCallIsFoundAlsoByThoseWhoDidNotWait(t *testing.T) {
	for quiet := range 5 { // calls after the one in question in which the rank waits for nobody
		rooms, _ := newHouse(2).rooms(t, false, func(int) {})
		err := together(rooms, func(r *Room) error {
			b := []int64{1}
			begin(r, uint64(10+r.me))
			if err := r.do(new(call.Call).Bcast(r.me, mem.Of(b))); err != nil { // each is the root of its own
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
		if !errors.Is(err, errDisagree) || !strings.Contains(err.Error(), "{10 0}") || !strings.Contains(err.Error(), "{11 0}") {
			t.Errorf("after %d calls: got %v, want both calls", quiet, err)
		}
	}
}

func TestBlocksServeAgainWhenAllHaveLeft(t *testing.T) {
	h := newHouse(2)
	a, b := h.pools[0], h.pools[1]
	ta, _ := a.Take()
	tb, _ := b.Take()
	a.Enter(ta, 1, h.arenas[1], tb)
	a.Give(ta)
	if other, _ := a.Take(); other.place() == ta.place() {
		t.Error("a block served again while another member was in its room")
	}
	b.Give(tb)
	again, err := a.Take()
	if err != nil || again.place() != ta.place() || again == ta {
		t.Errorf("place %d after %v, want %d anew", again.place(), err, ta.place())
	}
	for range 1 {
		if _, err = a.Take(); err != nil {
			t.Fatal(err)
		}
	}
	if tok, err := a.Take(); err == nil {
		t.Errorf("took %v where there is no memory", tok)
	}
}

// stressed runs f with 2 to 17 members, who pause at random, again and again under
// make stress.
func stressed(t *testing.T, f func(round uint64, p int, pause func(rank int)) error) {
	end := stress.Until(t)
	for round := uint64(0); round < 4 || time.Now().Before(end); round++ {
		p := []int{2, 3, 5, 17}[round%4]
		rngs := make([]*rand.Rand, p) // each its rank's
		for i := range rngs {
			rngs[i] = rand.New(rand.NewPCG(round, uint64(i)))
		}
		if err := f(round, p, func(rank int) { stress.Pause(rngs[rank]) }); err != nil {
			t.Fatalf("round %d, %d ranks: %v", round, p, err)
		}
	}
}
