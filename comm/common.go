package comm

import (
	"log/slog"
	"sync"

	"gompi/comm/internal/node"
	"gompi/internal/mem"
)

// Collectives of device memory among ranks of one host, whose devices do not reach each
// other or of which some have host memory, go in pieces, as by messages (see flow), of
// which each lies in its rank's heap: the others combine it where the device has put it,
// and put there what the device takes (np=2, pieces of 1 MiB that their rank has just
// written, through rings and in the heap: allreduce 131 and 37 us, bcast 67 and 18,
// reducescatter 129 and 49, allgather 127 and 92).
//
// Processors combine, not devices: those would load the operands of others over the bus
// that they are copied over, nearly twice as much as comes back now, and functions of the
// user's and the order of Config.Deterministic are not for them. That this wins is a guess
// until several GPUs have been measured, and so is that pieces have the length that suits
// messages.

// commonMemory is what a rank pins of its heap.
type commonMemory struct {
	heap *node.Heap
	log  *slog.Logger

	mu         sync.Mutex
	refused    bool // once, and so for good
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused {
		return Buffer{}, false
	}
	b, err := m.pin(at)
	if err != nil {
		m.refused = true
		m.log.Warn("pinned memory is not shared: collectives of device memory copy once more", "err", err)
	}
	return b, err == nil
}

func (m *commonMemory) pin(at shelf) (Buffer, error) {
	off, err := m.heap.Reserve(1 << at.class)
	if err != nil {
		return Buffer{}, err
	}
	bytes, err := m.heap.Claim(off)
	b := mem.Bytes(bytes)
	if r, ok := at.space.(mem.Registrar); ok && err == nil {
		if err = r.Register(b); err == nil {
			m.registered = append(m.registered, registration{r, b})
		}
	}
	if err != nil {
		m.heap.Free(off)
	}
	return b, err
}

// release makes devices forget what they know. The heap ends with the process.
func (m *commonMemory) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.registered {
		r.with.Unregister(r.b)
	}
	m.registered = nil
}

// pipeInRoom does o in pieces.
func (c *Comm) pipeInRoom(o *operation) error {
	t := tenant{c: c}
	c.room.Lend(1)
	defer c.room.Lend(-1)
	err := c.pipe(c.room, o, &t)
	t.leave(err)
	return err
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

// leave gives back what was lent. After an error others may still be writing there: then
// it is free when they have left the room.
func (t *tenant) leave(err error) {
	giveBack := func() {
		for _, l := range t.lent {
			t.c.staging.put(l.at, l.b)
		}
	}
	if err == nil {
		giveBack()
	} else {
		t.c.memory.pool.WhenVacant(t.c.block, giveBack)
	}
}
