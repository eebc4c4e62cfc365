package comm

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"gompi/comm/internal/engine"
	"gompi/comm/internal/node"
	"gompi/internal/mem"
)

// Collectives of device memory among ranks of one host, whose devices do not reach each
// other or of which some have host memory, go in pieces, as by messages (see flow), of
// which each lies in its rank's heap: the others combine it where the device has put it,
// and put there what the device takes (np=2, pieces of 1 MiB that their rank has just
// written, through rings and in the heap: allreduce 131 and 37 us, bcast 67 and 18,
// reducescatter 129 and 49, allgather 127 and 92). Scans, gatherv, scatterv, alltoallv and
// what keeps the order of operands go around the rings even so, as they do from Alloc.
// Among several hosts the ranks of each do the same (see openFrom).
//
// A device's copy is done when its host has seen its end, and only then does that rank take
// the step of the room after which others look at the piece; and they leave the room's last
// step of the piece behind them before it is given to the device. So what the steps order
// for processors is in order for devices, too.
//
// Processors combine, not devices: those would load the operands of others over the bus
// that they are copied over, nearly twice as much as comes back now, and functions of the
// user's and the order of Config.Deterministic are not for them. That this wins is a guess
// until several GPUs have been measured, and so is that pieces have the length that suits
// messages.

// commonMemory is what a rank pins of its heap.
type commonMemory struct {
	heap    *node.Heap
	log     *slog.Logger
	refused atomic.Bool // once, and so for good

	mu         sync.Mutex
	registered []registration
}

// A registration is memory that a device knows.
type registration struct {
	with mem.Registrar
	b    Buffer
}

// of makes m the memory of p's heap, if p shares any.
func (m *commonMemory) of(p *process) {
	if m.log = p.log; p.memory != nil {
		m.heap = p.memory.heap
	}
}

// alloc returns memory for a shelf.
func (m *commonMemory) alloc(at shelf) (Buffer, bool) {
	if m.refused.Load() {
		return Buffer{}, false
	}
	b, err := m.pin(at)
	if err != nil && !m.refused.Swap(true) {
		m.log.Warn("pinned memory is not shared: collectives of device memory copy once more", "err", err)
	}
	return b, err == nil
}

// pin takes memory of the heap, and has the device know it, if there is one.
func (m *commonMemory) pin(at shelf) (Buffer, error) {
	off, err := m.heap.Reserve(1 << at.class)
	if err != nil {
		return Buffer{}, err
	}
	bytes, err := m.heap.Claim(off)
	b := mem.Bytes(bytes)
	if r, ok := at.space.(mem.Registrar); ok && err == nil {
		err = m.register(r, b)
	}
	if err != nil {
		m.heap.Free(off)
	}
	return b, err
}

func (m *commonMemory) register(with mem.Registrar, b Buffer) error {
	if err := with.Register(b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered = append(m.registered, registration{with, b})
	return nil
}

// release makes devices forget what they know. The heap ends with the process.
func (m *commonMemory) release() {
	m.mu.Lock()
	registered := m.registered
	m.registered = nil
	m.mu.Unlock()
	for _, r := range registered {
		r.with.Unregister(r.b)
	}
}

// pipeInRoom does o in pieces in c's room.
func (c *Comm) pipeInRoom(o *operation) error {
	switch o.call.Kind {
	case engine.Gatherv, engine.Scatterv, engine.Alltoallv:
		measured := *o
		if err := c.measure(&measured); err != nil {
			return err
		}
		if measured.piecewise(c.Size())*o.call.Type.Size() < deviceLeast {
			return c.carryOut(c.room, o)
		}
		o = &measured
	}
	return c.pipeInCommon(c.room, o)
}

// pipeInCommon does o by x in pieces that the other ranks of the host see.
func (c *Comm) pipeInCommon(x collectives, o *operation) error {
	t := tenant{c: c}
	c.lent(1)
	defer c.lent(-1)
	err := errUnwound
	defer func() { t.leave(err) }()
	err = c.pipe(x, o, &t)
	return err
}

// errUnwound stands for the outcome of what does not return: a function of the user's has
// panicked.
var errUnwound = errors.New("unwound")

// measure finds the longest block of a v form, which becomes its count. Lengths that
// senders and receivers see differently end it: pieces could not tell them.
func (c *Comm) measure(o *operation) error {
	sent, want := o.lengths(c.Rank())
	got := make([]int64, len(want))
	if err := c.tellLengths(o, Of(sent), Of(got)); err != nil {
		return err
	}
	for i, n := range got {
		from := i
		if o.call.Kind == engine.Scatterv {
			from = int(o.call.Root)
		}
		if size := o.call.Type.Size(); n != want[i] {
			return c.waits().DisagreeOn(from, int(want[i])*size, int(n)*size)
		}
	}
	longest := []int64{slices.Max(append(sent, 0))}
	err := c.room.Allreduce(Of(longest), Of(longest), builtin(Max))
	o.call.Count = longest[0]
	return err
}

// tellLengths brings those of blocks to those who get the blocks.
func (c *Comm) tellLengths(o *operation, sent, got Buffer) error {
	switch root := int(o.call.Root); o.call.Kind {
	case engine.Gatherv:
		return c.room.Gather(root, sent, got)
	case engine.Scatterv:
		return c.room.Scatter(root, sent, got)
	}
	return c.room.Alltoall(sent, got)
}

// lengths returns those of the blocks that a rank sends in a v form, and of those that it
// expects.
func (o *operation) lengths(rank int) (sent, want []int64) {
	atRoot := rank == int(o.call.Root)
	switch k := o.call.Kind; {
	case k == engine.Alltoallv:
		return words(o.sendCounts), words(o.counts)
	case k == engine.Gatherv && atRoot:
		return []int64{int64(o.send.Len())}, words(o.counts)
	case k == engine.Gatherv:
		return []int64{int64(o.send.Len())}, nil
	case atRoot:
		return words(o.counts), []int64{int64(o.recv.Len())}
	}
	return nil, []int64{int64(o.recv.Len())}
}

func words(counts []int) []int64 {
	w := make([]int64, len(counts))
	for i, n := range counts {
		w[i] = int64(n)
	}
	return w
}

// A tenant lends the memory of one collective's pieces, common if possible.
type tenant struct {
	c    *Comm
	lent []tenancy
}

type tenancy struct {
	at shelf
	b  Buffer
}

// Lend implements engine.Lender.
func (t *tenant) Lend(s mem.Space, bytes int) (b Buffer, err error) {
	st := &t.c.staging
	at := st.shelf(s, bytes)
	at.common = true
	b, ok := st.take(at)
	if !ok {
		b, ok = st.common.alloc(at)
	}
	if !ok {
		at.common = false
		b, err = st.Lend(s, bytes)
	}
	if err == nil {
		t.lent = append(t.lent, tenancy{at, b})
	}
	return b, err
}

// Return implements engine.Lender. The memory is not free before the tenant leaves.
func (t *tenant) Return(mem.Space, Buffer) {}

// leave gives back what was lent. After an error others may still be writing to what is
// common: that is free when they have left the room, and no peer may still write there.
func (t *tenant) leave(err error) {
	for _, l := range t.lent {
		put := func() { t.c.staging.put(l.at, l.b) }
		if err == nil || !l.at.common {
			put()
			continue
		}
		m, e := t.c.memory, t.c.e
		m.pool.WhenVacant(t.c.block, func() { m.late.whenOver(e, l.b, put) })
	}
}
