// Package shmsynctest has Teams of goroutine ranks, for tests of what is built on package shmsync.
package shmsynctest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gompi/internal/core/shmsync"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// A Host is the shared memory of some goroutine ranks.
type Host struct {
	Heaps  [][]byte // of the ranks
	Pools  []*shmsync.Pool
	Poor   atomic.Int64        // 1 + the rank that gets no memory for a large buffer, 0 for none
	Gone   func(rank int) bool // reports whether the rank's process is lost; nil for none
	arenas [][]byte
	large  int
	broken atomic.Pointer[error]
	asleep []atomic.Uint32
	rung   []atomic.Uint32
}

// heapSize is the memory of each rank that others reach.
const heapSize = 2 * 17 << 17

// NewHost returns a Host of n ranks, which have memory for three blocks each, and for large buffers
// of this many bytes.
func NewHost(n, large int) *Host {
	h := &Host{large: large, asleep: make([]atomic.Uint32, n), rung: make([]atomic.Uint32, n)}
	for r := range n {
		arena := aligned(32 << 20)
		h.arenas, h.Heaps = append(h.arenas, arena), append(h.Heaps, aligned(heapSize))
		claim := func(off, k int) error {
			large := off >= len(arena)/8
			if !large && off >= 3*shmsync.BlockSize || large && h.Poor.Load() == int64(r)+1 {
				return errors.New("no memory")
			}
			return nil
		}
		h.Pools = append(h.Pools, shmsync.NewPool(arena, large, claim, func(world.Rank) bool { return false }))
	}
	return h
}

// aligned returns n bytes that elements of any type can lie in.
func aligned(n int) []byte {
	words := make([]complex128, n/16)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// Teams returns a Team of all ranks, by rank. pause is called wherever timing may matter.
func (h *Host) Teams(t testing.TB, gate shmsync.Gate, pause func(rank int)) (teams []shmsync.Team) {
	t.Helper()
	return h.TeamsOver(t, gate, func(me int) shmsync.Port { return &port{h, me, pause} })
}

// TeamsOver is Teams whose Ports are the caller's.
func (h *Host) TeamsOver(t testing.TB, gate shmsync.Gate, port func(rank int) shmsync.Port) (teams []shmsync.Team) {
	t.Helper()
	tokens := make([]shmsync.Token, len(h.Pools))
	for r, p := range h.Pools {
		var err error
		if tokens[r], err = p.Take(); err != nil {
			t.Fatal(err)
		}
	}
	for me := range h.Pools {
		teams = append(teams, h.over(me, tokens, gate, port(me)))
	}
	return teams
}

// Team returns the Team of the blocks that tokens name, for one rank.
func (h *Host) Team(me int, tokens []shmsync.Token, gate shmsync.Gate, pause func(rank int)) shmsync.Team {
	return h.over(me, tokens, gate, &port{h, me, pause})
}

func (h *Host) over(me int, tokens []shmsync.Token, gate shmsync.Gate, port shmsync.Port) shmsync.Team {
	parts := make([]shmsync.Part, len(tokens))
	own, claim := h.Pools[me].Own(tokens[me])
	for r, tok := range tokens {
		if parts[r] = own; r != me {
			parts[r] = h.Pools[me].Enter(tokens[me], world.Rank(r), h.arenas[r], tok)
		}
	}
	return shmsync.New(me, parts, claim, h.large, gate, port)
}

// A port is the Port of a goroutine rank. It sleeps as ranks do: it stores that it sleeps, looks
// once more, and then waits for its doorbell.
type port struct {
	*Host
	me    int
	pause func(rank int)
}

func (p *port) Begun() {}

func (p *port) TryProgress(int) error {
	p.pause(p.me)
	return p.fault()
}

func (p *port) Await(word *atomic.Uint64, want uint64, member int) error {
	for {
		p.pause(p.me)
		p.asleep[p.me].Store(1)
		p.pause(p.me)
		if word.Load() >= want {
			p.asleep[p.me].Store(0)
			return nil
		}
		for p.rung[p.me].Load() == 0 && p.fault() == nil {
			runtime.Gosched()
		}
		p.rung[p.me].Store(0)
		p.asleep[p.me].Store(0)
		if err := p.fault(); err != nil {
			return err
		}
	}
}

func (p *port) Gone(member int) bool { return p.Host.Gone != nil && p.Host.Gone(member) }

func (p *port) Looks() int { return 10 }

func (p *port) Wake(member int) {
	p.pause(p.me)
	if p.asleep[member].CompareAndSwap(1, 0) {
		p.rung[member].Store(1)
	}
}

// ErrDisagree is the error of members that have made a different call.
var ErrDisagree = errors.New("disagree")

func (p *port) Disagree(member, _ int, mine, theirs shmsync.EncodedCall) error {
	return p.Break(fmt.Errorf("%w: %v, member %d %v", ErrDisagree, mine, member, theirs))
}

func (p *port) DisagreeOn(member, mine, theirs int) error {
	return p.Break(fmt.Errorf("%w: word %d, member %d %d", ErrDisagree, mine, member, theirs))
}

func (p *port) Unreachable(member int, err error) error {
	return p.Break(fmt.Errorf("member %d: %w", member, err))
}

// Break breaks the Teams of all ranks, since the other ranks would wait forever. It returns the
// first err.
func (h *Host) Break(err error) error {
	h.broken.CompareAndSwap(nil, &err)
	return h.fault()
}

func (h *Host) fault() error {
	if err := h.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Together runs fn on all ranks and returns what they returned.
func Together[T any](ranks []T, fn func(rank T) error) error {
	errs := make([]error, len(ranks))
	var all sync.WaitGroup
	for i, r := range ranks {
		all.Go(func() { errs[i] = fn(r) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Stress runs f with 2 to 17 ranks, who pause at random, again and again under make nightly.
func Stress(t *testing.T, f func(round uint64, ranks int, pause func(rank int)) error) {
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

// Value is element i of what a rank sends in a collective.
func Value(nth, rank, i int) int64 { return int64(nth*7 + rank*1000 + i) }

// Vector is the data that a rank sends in a collective.
func Vector(nth, rank, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = Value(nth, rank, i)
	}
	return v
}
