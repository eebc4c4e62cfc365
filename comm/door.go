package comm

import (
	"context"
	"slices"
	"sync/atomic"
	"unsafe"

	"gompi/comm/internal/call"
	"gompi/comm/internal/door"
	"gompi/comm/internal/layout"
	"gompi/comm/internal/lease"
	"gompi/comm/internal/message"
	"gompi/comm/internal/shmsync"
	"gompi/comm/internal/symheap"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport/shm"
)

// inside is a Comm as packages of comm/internal see it.
type inside Comm

var _ door.Comm[Request] = (*inside)(nil)

func init() {
	lent := func() []uintptr {
		return slices.Concat(shm.LentLayout(), shmsync.Layout(), seg.RecordLayout(), lentNumbers)
	}
	door.Install(func(c any) any { return (*inside)(c.(*Comm)) }, lent,
		func(l any) (layout.Layout, bool) { return l.(Layout).in, l.(Layout).overlaps },
		func(ctx context.Context, names door.Names) (any, error) { return Config{names: names}.Init(ctx) })
}

// lentNumbers are those of kinds, types and operators that C knows, in the order of GOMPI_LAYOUT in
// lease.h.
var lentNumbers = []uintptr{
	uintptr(call.Barrier), uintptr(call.Bcast), uintptr(call.Reduce), uintptr(call.Allreduce),
	uintptr(call.ReduceScatterBlock),
	uintptr(call.Allgather), uintptr(call.Gather), uintptr(call.Scatter), uintptr(call.Alltoall), uintptr(len(lease.Most{})),
	uintptr(mem.I32), uintptr(mem.I64), uintptr(mem.U8), uintptr(mem.U32), uintptr(mem.U64), uintptr(mem.F32), uintptr(mem.F64),
	uintptr(mem.Sum), uintptr(mem.Prod), uintptr(mem.Min), uintptr(mem.Max),
}

// Do implements door.Comm.
func (c *inside) Do(ctx context.Context, o *call.Call) error { return (*Comm)(c).do(ctx, o) }

// Start implements door.Comm.
func (c *inside) Start(o *call.Call) Request { return (*Comm)(c).collective(o) }

// StartDup implements door.Comm.
func (c *inside) StartDup() (Request, func(err error) (any, error)) {
	d := (*Comm)(c)
	mine, all := d.offer(), make([]int64, wordsOfMember*d.Size())
	o := new(call.Call).Allgather(Of([]int64{0, int64(d.Rank()), mine.counter, mine.block}), Of(all))
	o.Fingerprint = call.Fingerprint{Kind: call.Dup}
	return d.collective(o), func(err error) (any, error) {
		made, err := d.divided(call.Dup, 0, mine, all, err)
		return made, err
	}
}

// Promise implements door.Comm.
func (c *inside) Promise() Request {
	return Request{c: (*Comm)(c), h: c.e.Expect(message.Handle{}), kind: promisedRequest, peer: -1}
}

// Complete implements door.Comm.
func (c *inside) Complete(r Request, err error) { c.e.Complete(r.h, message.Status{}, err) }

// AwaitAll implements door.Comm.
func (c *inside) AwaitAll(ctx context.Context, rs []Request) error {
	helpAll(ctx, rs)
	return c.e.AwaitAll(ctx, len(rs), func(i int) message.Handle { return rs[i].h })
}

// Attach implements door.Comm.
func (c *inside) Attach(l *lease.Lease, mix bool) bool {
	if c.memory == nil {
		return false
	}
	c.e.Attach(l, mem.U8, mix)
	return true
}

// Lend implements door.Comm.
func (c *inside) Lend(slot, rank int) { c.ch.Lend(slot, rank) }

// TakeOver implements door.Comm.
func (c *inside) TakeOver(f func(lease.Receive)) { c.e.TakeOver(f) }

// Claim implements door.Comm.
func (c *inside) Claim() bool { return c.e.Claim() }

// EndClaim implements door.Comm.
func (c *inside) EndClaim(holds bool) { c.e.EndClaim(holds) }

// Withdraw implements door.Comm.
func (c *inside) Withdraw(rs []Request) bool {
	return c.e.Withdraw(len(rs), func(i int) message.Handle { return rs[i].h })
}

// Unlend implements door.Comm.
func (c *inside) Unlend(slot int) {
	c.ch.Unlend(slot)
	c.round.Unlend()
}

// LendTeam implements door.Comm.
func (c *inside) LendTeam(l *lease.Lease, slot int) {
	if d := (*Comm)(c); d.exec.Shared != nil && d.round.MayLend(l) {
		d.ops.whenIdle(func() { d.round.Lend(l, slot, d.allLocals, d.mostLent()) })
	}
}

// allLocals returns the local ranks of all members, which are on this host.
func (c *Comm) allLocals() []world.LocalRank { return c.locals(c.hosts()[0]) }

// mostLent returns which collectives C may do.
func (c *Comm) mostLent() (most lease.Most) {
	for k := range most {
		most[k] = -1
	}
	for _, k := range []call.Kind{call.Barrier, call.Bcast, call.Allgather, call.Gather, call.Scatter, call.Alltoall} {
		most[k] = int32(c.exec.Paths.InOneStep(k, lease.MostBytes))
	}
	for _, k := range []call.Kind{call.Reduce, call.Allreduce, call.ReduceScatterBlock} {
		if !c.exec.Paths.KeepsOrder(mem.Sum) {
			most[k] = int32(c.exec.Paths.InOneStep(k, lease.MostBytes))
		}
	}
	return most
}

// Stats implements door.Comm.
func (c *inside) Stats(tool bool) (counters, worlds unsafe.Pointer, on bool, err error) {
	if c.stats == nil {
		return nil, nil, false, nil
	}
	if err = c.stats.Turn(tool); err == nil {
		counters, worlds = c.stats.ForC()
	}
	return counters, worlds, c.stats.On(), err
}

// Wake implements door.Comm.
func (c *inside) Wake(local int) { c.memory.shm.Wake(world.LocalRank(local)) }

// AgreeOn implements door.Comm.
func (c *inside) AgreeOn(ctx context.Context, mine []byte) ([][]byte, int, error) {
	return (*Comm)(c).agreeOn(ctx, mine)
}

// Signal implements door.Comm.
func (c *inside) Signal(r Request, ch chan<- struct{}, soon bool) { c.e.Signal(r.h, ch, soon) }

// Broken implements door.Comm.
func (c *inside) Broken() *atomic.Bool { return c.ch.BrokenWord() }

// Progress implements door.Comm.
func (c *inside) Progress() { c.e.Advance() }

// Shares implements door.Comm.
func (c *inside) Shares(rank int) bool {
	if c.memory == nil {
		return false
	}
	_, ok := c.memory.info.Segment.LocalRank(c.ch.World(rank))
	return ok
}

// Locate implements door.Comm.
func (c *inside) Locate(at uintptr, n int) uint64 {
	if c.memory == nil {
		return 0
	}
	return uint64(symheap.Locate(c.memory.heapOf(c.memory.info.LocalRank), layout.BytesAt(at, n)))
}

// Mapped implements door.Comm.
func (c *inside) Mapped(rank int, place uint64) unsafe.Pointer {
	local, _ := c.memory.info.Segment.LocalRank(c.ch.World(rank))
	heap := c.memory.heapOf(local)
	return unsafe.Pointer(&symheap.Place(place).At(heap, 0, 1)[0])
}

// Expose implements door.Comm.
func (c *inside) Expose() {
	if c.memory != nil {
		c.memory.shm.CrossMemory().Expose()
	}
}

// Kernel implements door.Comm.
func (c *inside) Kernel(rank int) door.Kernel {
	m := crossMemory{c.memory.shm.CrossMemory(), (*Comm)(c).locals([]int{rank})}
	if !m.Reaches(0) {
		return nil
	}
	return kernel{m}
}

// A kernel is the cross memory of one rank.
type kernel struct{ crossMemory }

func (k kernel) Read(dst []byte, from []door.Span) error { return k.ReadSpans(k.locals[0], dst, from) }
func (k kernel) Write(src []byte, to []door.Span) error  { return k.WriteSpans(k.locals[0], src, to) }

// Key implements door.Comm.
func (c *inside) Key(at uintptr, n int) []byte {
	return c.e.Mover.Key(mem.Bytes(layout.BytesAt(at, n)))
}

// Remote implements door.Comm.
func (c *inside) Remote(rank int, key []byte) door.Remote[Request] {
	return remote{c.ch.Remote(rank, key), (*Comm)(c)}
}

// A remote has the requests of a message.Remote be this communicator's.
type remote struct {
	*message.Remote
	c *Comm
}

func (r remote) Read(at uintptr, dst []byte) (int, Request, error) {
	n, h, err := r.Remote.Read(at, dst)
	return n, r.request(h), err
}

func (r remote) Flush() (Request, bool, error) {
	h, begun, err := r.Remote.Flush()
	return r.request(h), begun, err
}

func (r remote) request(h message.Handle) Request {
	return Request{c: r.c, h: h, kind: promisedRequest, peer: -1}
}

// ID implements door.Comm.
func (c *inside) ID() uint64 { return c.ch.ID }

// Dead implements door.Comm.
func (c *inside) Dead() []int { return c.ch.Dead() }

// CloseWhenIdle implements door.Comm.
func (c *inside) CloseWhenIdle() <-chan error { return (*Comm)(c).closeWhenIdle() }

// closeWhenIdle closes c when nothing that was started on it is under way any more. It waits for
// that, and for other ranks where Close may, on a goroutine of its own.
func (c *Comm) closeWhenIdle() <-chan error {
	closed := make(chan error, 1)
	if c.closesAtOnce() {
		closed <- c.Close(context.Background())
		return closed
	}
	go func() { // ends as operations do: when their peers have done their part, or when c breaks
		over := make(chan struct{})
		c.ops.whenOver(func() { close(over) })
		<-over
		c.ch.Drain()
		closed <- c.Close(context.Background())
	}()
	return closed
}

// closesAtOnce reports whether nothing is under way and Close waits for no rank. Nothing is started
// any more.
func (c *Comm) closesAtOnce() bool {
	return c.ops.state.Load() == idle && !c.ch.Busy() && c.exec.NCCL == nil && !c.round.PartWaits()
}
