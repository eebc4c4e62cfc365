package comm

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"gompi/comm/internal/call"
	"gompi/comm/internal/engine"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Transports carry host memory. Memory of another Space is staged: host memory
// takes its place in messages, and its content goes there before, or back after. A
// message longer than engine.PieceSize the engine itself takes through pieces of host
// memory, which staging lends it.

// A staging lends host memory, pinned where the Space has such. Pinning
// takes a millisecond, so what comes back is kept until the last communicator is
// closed: in powers of two, as much as was ever in use at a time.
type staging struct {
	mu   sync.Mutex
	free map[sizeClass][]Buffer
}

type sizeClass struct {
	space mem.Space
	log2  int // of bytes
}

// leastStaged is log2 of the least that is lent, so that small messages share it.
const leastStaged = 16

// A stage is host memory that stands for a Buffer.
type stage struct {
	of, host Buffer
	lent     Buffer // empty if host is the Buffer itself
}

// room returns a stage for b, of arbitrary content.
func (st *staging) room(b Buffer) (stage, error) {
	if b.IsHost() {
		return stage{of: b, host: b}, nil
	}
	return st.stage(b)
}

// stage is room also for host memory whose content must not be touched yet.
func (st *staging) stage(b Buffer) (stage, error) {
	lent, err := st.Lend(b.Space(), b.Size())
	if err != nil {
		return stage{}, err
	}
	return stage{of: b, host: mem.HostBytes(b.Type(), b.Len(), lent.HostSlice()), lent: lent}, nil
}

// Lend implements engine.Lender.
func (st *staging) Lend(s mem.Space, bytes int) (Buffer, error) {
	class := classOf(s, bytes)
	if lent, ok := st.take(class); ok {
		return lent, nil
	}
	alloc := mem.Host.Alloc
	if p, ok := s.(mem.Pinner); ok {
		alloc = p.AllocHost
	}
	return alloc(mem.U8, 1<<class.log2)
}

// Return implements engine.Lender.
func (st *staging) Return(s mem.Space, lent Buffer) {
	class := classOf(s, lent.Size())
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.free == nil {
		st.free = map[sizeClass][]Buffer{}
	}
	st.free[class] = append(st.free[class], lent)
}

func classOf(s mem.Space, bytes int) sizeClass {
	return sizeClass{s, max(leastStaged, bits.Len(uint(max(bytes, 1)-1)))}
}

// take takes what is kept of a class, if there is something.
func (st *staging) take(class sizeClass) (Buffer, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	kept := st.free[class]
	if len(kept) == 0 {
		return Buffer{}, false
	}
	last := len(kept) - 1
	st.free[class] = kept[:last]
	return kept[last], true
}

// staged reports whether a message in b is staged: a short one is copied once.
func staged(b Buffer) bool { return !b.IsHost() && b.Size() <= engine.PieceSize }

// load returns a stage for b with its content.
func (st *staging) load(b Buffer) (stage, error) {
	s, err := st.room(b)
	if err != nil || s.lent.Len() == 0 {
		return s, err
	}
	if err := mem.Copy(s.host, b); err != nil {
		st.end(s)
		return stage{}, err
	}
	return s, nil
}

// store copies the first n bytes of a stage to what it stands for.
func (s stage) store(n int) error {
	if s.lent.Len() == 0 || n == 0 {
		return nil
	}
	return mem.Copy(s.of.Raw().Slice(0, n), s.host.Raw().Slice(0, n))
}

// end takes back what a stage was lent.
func (st *staging) end(s stage) {
	if s.lent.Len() > 0 {
		st.Return(s.of.Space(), s.lent)
	}
}

// received ends the stage of a receive with the outcome given: the message is
// stored as far as it came.
func (st *staging) received(s stage, got engine.Status, err error) error {
	defer st.end(s)
	if stored := s.store(min(got.Bytes, s.of.Size())); err == nil {
		err = stored
	}
	return err
}

// release gives all memory back. Devices are called with no lock held: they may block.
func (st *staging) release() {
	st.mu.Lock()
	free := st.free
	st.free = nil
	st.mu.Unlock()
	for class, kept := range free {
		if p, ok := class.space.(mem.Pinner); ok {
			for _, b := range kept {
				p.FreeHost(b) // an error is the device's, which has told it before
			}
		}
	}
}

func (c *Comm) sendStaged(ctx context.Context, to, tag int, b Buffer, sync bool) error {
	s, err := c.staging.load(b)
	if err == nil {
		defer c.staging.end(s)
		err = c.ch.Send(ctx, to, tag, s.host, sync)
	}
	return err
}

// recvStaged receives by recv, which is given b or a stage of it.
func (c *Comm) recvStaged(b Buffer, recv func(Buffer) (engine.Status, error)) (engine.Status, error) {
	if !staged(b) {
		return recv(b)
	}
	s, err := c.staging.room(b)
	if err != nil {
		return engine.Status{}, err
	}
	st, err := recv(s.host)
	return st, c.staging.received(s, st, err)
}

func (c *Comm) sendrecvStaged(ctx context.Context, to, sendTag int, send Buffer, from, recvTag int, recv Buffer) (engine.Status, error) {
	out := stage{host: send}
	if staged(send) {
		var err error
		if out, err = c.staging.load(send); err != nil {
			return engine.Status{}, err
		}
		defer c.staging.end(out)
	}
	return c.recvStaged(recv, func(in Buffer) (engine.Status, error) {
		return c.ch.Sendrecv(ctx, to, sendTag, out.host, from, recvTag, in)
	})
}

// startStaged starts a message between stages. The message itself begins here, so
// that it keeps its place in the order; a goroutine ends what is returned when it is
// there.
func (c *Comm) startStaged(k requestKind, peer, tag int, b Buffer) engine.Handle {
	prepare := c.staging.load
	if k == recvRequest {
		prepare = c.staging.room
	}
	s, err := prepare(b)
	if err != nil {
		return c.failed(err)
	}
	m := c.launch(k, peer, tag, s.host)
	h := c.e.Expect(m)
	go c.finishStaged(k, h, m, s)
	return h
}

func (c *Comm) finishStaged(k requestKind, h, m engine.Handle, s stage) {
	st, _, err := c.e.Wait(context.Background(), m) // ends with the message, or with the communicator
	if k == recvRequest {
		err = c.staging.received(s, st, err)
	} else {
		c.staging.end(s)
	}
	c.e.Complete(h, st, err)
}

// carryOut does o by p, on stages of what is not in host memory.
func (c *Comm) carryOut(p *path.Path, o *call.Call) error {
	switch {
	case o.Each != nil:
		return c.carryEach(p, o)
	case o.IsHost(), c.Size() == 1 && copies(o.Recv, o.Send):
		return c.run(p, o)
	}
	on := *o
	if from, to := o.Operands(c.Rank()); p.Via == path.Messages && perMessage(o, from, to) {
		on.Send, on.Recv = from, to
		return c.run(p, &on)
	}
	send, recv := o.Roles(c.Rank())
	if send == call.Unused {
		on.Send = Buffer{}
	}
	if recv == call.Unused {
		on.Recv = Buffer{}
	}
	stages, err := c.staging.operands(&on, recv)
	defer c.staging.end(stages[0])
	defer c.staging.end(stages[1])
	if err != nil {
		return err
	}
	if err := c.run(p, &on); err != nil {
		return err
	}
	if !recv.Changes() || o.Recv.IsHost() {
		return nil
	}
	return mem.Copy(o.Recv, on.Recv)
}

// carryEach is carryOut with a buffer for each rank.
func (c *Comm) carryEach(p *path.Path, o *call.Call) (err error) {
	on, each := *o, call.Each{Send: slices.Clone(o.Each.Send), Recv: slices.Clone(o.Each.Recv)}
	on.Each = &each
	var stages []stage // of what is received
	for i, b := range each.Send {
		in := each.Recv[i]
		out, err := c.staging.load(b)
		if err != nil {
			return err
		}
		defer c.staging.end(out)
		each.Send[i] = out.host
		if !mem.Same(b, in) {
			if out, err = c.staging.room(in); err != nil {
				return err
			}
			defer c.staging.end(out)
		}
		each.Recv[i] = out.host
		stages = append(stages, out)
	}
	if err := c.run(p, &on); err != nil {
		return err
	}
	for _, s := range stages {
		if err := s.store(s.of.Size()); err != nil {
			return err
		}
	}
	return nil
}

// copies reports whether a Space can copy from src to dst, which is all that a rank has
// to do with what is its own.
func copies(dst, src Buffer) bool {
	return src.IsHost() || dst.IsHost() || src.Space() == dst.Space()
}

// operands puts stages in the place of on's buffers and returns those to end. If
// one buffer is a part of the other, its stage is that part of the other's.
func (st *staging) operands(on *call.Call, recv call.Role) (stages [2]stage, err error) {
	long, short := &on.Recv, &on.Send
	if long.Len() < short.Len() {
		long, short = short, long
	}
	if mem.Overlap(*long, *short) {
		i := int(short.Addr()-long.Addr()) / long.Type().Size()
		stages[0], err = st.load(*long)
		if err == nil {
			*short = stages[0].host.Slice(i, i+short.Len())
			*long = stages[0].host
		}
		return stages, err
	}
	if stages[0], err = st.load(on.Send); err != nil {
		return stages, err
	}
	fill := st.load
	if recv == call.Written {
		fill = st.room
	}
	if stages[1], err = fill(on.Recv); err != nil {
		return stages, err
	}
	on.Send, on.Recv = stages[0].host, stages[1].host
	return stages, nil
}
