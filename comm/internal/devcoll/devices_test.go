package devcoll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/comm/internal/call"
	"gompi/comm/internal/shmsync"
	"gompi/comm/internal/shmsync/shmsynctest"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
	"gompi/internal/stress"
)

// A gpu is a device as one rank sees it. Those of all ranks reach each other, and using
// what was freed is an error. Its streams stop for a moment wherever chance has it.
type gpu struct {
	*memtest.Device // the memory of all
	identity        string
	rng             *rand.Rand
	imported        map[uintptr]bool
}

func newGPU(memory *memtest.Device, number int, seed uint64) *gpu {
	return &gpu{memory, fmt.Sprintf("gpu %d", number), rand.New(rand.NewPCG(seed, uint64(number))), map[uintptr]bool{}}
}

func (g *gpu) Identity() string { return g.identity }

// inside returns b as the Device knows it.
func (g *gpu) inside(b mem.Buffer) mem.Buffer {
	if b.IsHost() {
		return b
	}
	return mem.Device(g.Device, b.Addr(), b.Type(), b.Len())
}

func (g *gpu) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	b, err := g.Device.Alloc(t, n)
	return mem.Device(g, b.Addr(), t, b.Len()), err
}

func (g *gpu) Free(b mem.Buffer) {
	if g.imported[b.Addr()] {
		delete(g.imported, b.Addr())
		return
	}
	g.Device.Free(g.inside(b))
}

func (g *gpu) Copy(dst, src mem.Buffer) error { return g.Device.Copy(g.inside(dst), g.inside(src)) }

func (g *gpu) Reduce(op mem.Op, dst mem.Buffer, srcs ...mem.Buffer) error {
	return g.Device.Reduce(op, g.inside(dst), g.allInside(srcs)...)
}

func (g *gpu) allInside(bs []mem.Buffer) []mem.Buffer {
	inside := make([]mem.Buffer, len(bs))
	for i, b := range bs {
		inside[i] = g.inside(b)
	}
	return inside
}

func (g *gpu) Divide(b mem.Buffer, n int) error { return g.Device.Divide(g.inside(b), n) }

func (g *gpu) Export(b mem.Buffer) ([]byte, error) {
	return binary.NativeEndian.AppendUint64(nil, uint64(b.Addr())), nil
}

func (g *gpu) Import(handle []byte, t mem.Type, n int) (mem.Buffer, error) {
	addr := uintptr(binary.NativeEndian.Uint64(handle))
	g.imported[addr] = true
	return mem.Device(g, addr, t, n), nil
}

func (g *gpu) OpenStream() (mem.Stream, error) {
	return &hesitant{g.Device.OpenStream(), g, rand.New(rand.NewPCG(g.rng.Uint64(), 0))}, nil
}

// A hesitant stream pauses before what a collective puts on it.
type hesitant struct {
	*memtest.Stream
	g   *gpu
	rng *rand.Rand // its goroutine's
}

func (q *hesitant) pause() { q.Do(func() error { stress.Pause(q.rng); return nil }) }

func (q *hesitant) Copy(dst, src mem.Buffer) error {
	q.pause()
	return q.Stream.Copy(q.g.inside(dst), q.g.inside(src))
}

func (q *hesitant) Reduce(op mem.Op, dst mem.Buffer, srcs ...mem.Buffer) error {
	q.pause()
	return q.Stream.Reduce(op, q.g.inside(dst), q.g.allInside(srcs)...)
}

// deviceKinds are the kinds of deviceCall.
const deviceKinds = 6

// A deviceCall is a collective. Without send it is in place.
type deviceCall struct {
	send, recv []int64
	do         func(send, recv mem.Buffer) *call.Call
	want       func(i int) int64 // in recv
}

func newDeviceCall(c *Comm, kind, n, root, nth int) deviceCall {
	p, sum := c.team.Size(), call.Op{Kind: mem.Sum}
	mine := func(n int) []int64 { return shmsynctest.Vector(nth, c.team.Me(), n) }
	total := func(i int) (s int64) {
		for q := range p {
			s += shmsynctest.Value(nth, q, i)
		}
		return s
	}
	switch kind {
	case 0:
		return deviceCall{mine(n), make([]int64, n), func(s, d mem.Buffer) *call.Call { return new(call.Call).Allreduce(s, d, sum) }, total}
	case 1:
		return deviceCall{nil, mine(n), func(_, b mem.Buffer) *call.Call { return new(call.Call).Allreduce(b, b, sum) }, total}
	case 2:
		return deviceCall{nil, mine(n), func(_, b mem.Buffer) *call.Call { return new(call.Call).Bcast(root, b) },
			func(i int) int64 { return shmsynctest.Value(nth, root, i) }}
	case 3:
		return deviceCall{mine(n * p), make([]int64, n), func(s, d mem.Buffer) *call.Call { return new(call.Call).ReduceScatterBlock(s, d, sum) },
			func(i int) int64 { return total(c.team.Me()*n + i) }}
	case 4:
		return deviceCall{mine(n * p), make([]int64, n*p), new(call.Call).Alltoall, func(i int) int64 { return shmsynctest.Value(nth, i/n, c.team.Me()*n+i%n) }}
	}
	var all []int64
	if c.team.Me() == root {
		all = make([]int64, n*p)
	}
	return deviceCall{mine(n), all, func(s, d mem.Buffer) *call.Call { return new(call.Call).Gather(root, s, d) },
		func(i int) int64 { return shmsynctest.Value(nth, i/n, i%n) }}
}

// once does a call on the gpu and checks what comes of it.
func (g *gpu) once(c *Comm, nth int, k deviceCall) error {
	send, err := g.holding(k.send)
	if err != nil {
		return err
	}
	defer g.Free(send)
	recv, err := g.holding(k.recv)
	if err != nil {
		return err
	}
	defer g.Free(recv)
	from := send
	if len(k.send) == 0 {
		from = recv
	}
	begin(c.team, nth)
	if err := agree(c, from, recv); err != nil {
		return fmt.Errorf("call %d is not done on devices: %w", nth, err)
	}
	if err := errors.Join(c.Run(k.do(send, recv)), g.Copy(mem.Of(k.recv), recv)); err != nil {
		return err
	}
	for i, got := range k.recv {
		if want := k.want(i); got != want {
			return fmt.Errorf("call %d, %d elements: element %d is %d, want %d", nth, len(k.recv), i, got, want)
		}
	}
	return nil
}

// agree has all members tell where their buffers are, and sets devices up for the first time.
func agree(c *Comm, send, recv mem.Buffer) error {
	s, err := c.team.Exchange(binary.NativeEndian.AppendUint64(nil, c.Place(send, recv)), true)
	if err != nil {
		return err
	}
	words := make([]uint64, c.team.Size())
	for j := range words {
		if words[j] = word64(c.team.Payload(j, s, 0, 8)); words[j] < Alone {
			return fmt.Errorf("member %d tells %d", j, words[j])
		}
	}
	if c.state == untried {
		_, err = c.SetUp(send, recv, words)
	}
	return err
}

func (g *gpu) holding(v []int64) (mem.Buffer, error) {
	b, err := g.Alloc(mem.I64, len(v))
	if err == nil {
		err = g.Copy(b, mem.Of(v))
	}
	return b, err
}

func begin(t *shmsync.Team, nth int) { t.Begin(shmsync.Call{A: uint64(nth + 1)}, false) }

// enter makes a Team of all members of t as communicators do:
// each takes a block when it comes, whoever is still in the Team before.
func enter(h *shmsynctest.Host, t *shmsync.Team, nth int, pause func(rank int)) (*shmsync.Team, shmsync.Token, error) {
	mine, err := h.Pools[t.Me()].Take()
	if err != nil {
		return nil, 0, err
	}
	begin(t, nth)
	s, err := t.Exchange(binary.NativeEndian.AppendUint64(nil, uint64(mine)), true)
	if err != nil {
		return nil, 0, err
	}
	tokens := make([]shmsync.Token, t.Size())
	for j := range tokens {
		tokens[j] = shmsync.Token(binary.NativeEndian.Uint64(t.Payload(j, s, 0, 8)))
	}
	team := h.Team(t.Me(), tokens, false, pause)
	return &team, mine, nil
}

// Whatever the timing, of the ranks and of their devices, nobody reads of an arena what
// is not there yet or not there any more, and none is freed that somebody sees: in Teams
// that are made one after the other, and left by each when it has done its part.
func TestStressDevices(t *testing.T) {
	shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
		memory, h := memtest.NewDevice("gpus"), shmsynctest.NewHost(p, 512<<10)
		teams := h.Teams(t, false, pause)
		ranks := make([]*shmsync.Team, p)
		for i := range teams {
			ranks[i] = &teams[i]
		}
		err := shmsynctest.Together(ranks, func(all *shmsync.Team) error {
			g := newGPU(memory, all.Me()%(1+int(round)%3), round)
			dice := rand.New(rand.NewPCG(round, 99)) // the same on all
			for life := range 6 {
				if err := live(h, all, g, 1000*life, dice, pause); err != nil {
					return h.Break(err)
				}
			}
			begin(all, 1<<20)
			return all.Barrier()
		})
		for _, p := range h.Pools {
			p.Sweep()
		}
		if n := memory.InUse(); err == nil && n > 0 {
			err = fmt.Errorf("%d allocations are not freed", n)
		}
		return err
	})
}

// live is a Comm of all members, from call on.
func live(h *shmsynctest.Host, all *shmsync.Team, g *gpu, nth int, dice *rand.Rand, pause func(rank int)) error {
	team, token, err := enter(h, all, nth, pause)
	if err != nil {
		return err
	}
	var why error
	c := New(team, slots*slotLeast, func(err error) { why = err })
	for i := range 8 {
		kind, n, root := dice.IntN(deviceKinds), 600+dice.IntN(1<<(4+dice.IntN(13))), dice.IntN(team.Size())
		pause(team.Me())
		if err := g.once(c, nth+i, newDeviceCall(c, kind, n, root, nth+i)); err != nil {
			return fmt.Errorf("kind %d: %w (%v)", kind, err, why)
		}
	}
	h.Pools[team.Me()].WhenVacant(token, c.Close())
	h.Pools[team.Me()].Give(token)
	return nil
}
