package engine

import (
	"errors"
	"fmt"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/transport"
)

// Payload in the memory of devices.
//
// Transports carry host memory, and the goroutine that polls must not wait for a device. So the
// payload goes in chunks through pinned host memory: a message has a few such chunks, and a
// goroutine copies between them and the device while others are sent or received. It makes no
// difference to the peer.
//
// A receiver asks for as many bytes as its chunks hold, and for more when it has stored one. So
// every byte that arrives has its place, a slow device delays only the sender of that message, and
// pinned memory is bounded.

const (
	// StagingChunk is the bytes of a chunk, and of the longest message that is copied at once. It
	// and copyDepth are guesses until a GPU has been measured.
	StagingChunk = 512 << 10
	// copyDepth is the most chunks of a message.
	copyDepth = 8
	// maxStagingChunks is the most chunks of all messages of a rank. A message that begins when
	// so many are lent gets one nevertheless: others may wait for it.
	maxStagingChunks = 64
)

// A Lender lends host memory that the copies of a Space reach directly.
type Lender interface {
	// Lend returns so many bytes for s. It may wait for a device.
	Lend(s mem.Space, bytes int) (mem.Buffer, error)
	// Return takes them back, at once.
	Return(s mem.Space, b mem.Buffer)
}

// A pipelinedCopy takes one message from a device to the transport, or back. Chunk i of the payload
// is in slot i modulo the number of slots. The Engine's lock guards the fields, but not the content
// of the slots: that of a send belongs to the goroutine until the chunk is loaded, that of a
// receive from when it has arrived.
type pipelinedCopy struct {
	e       *Engine
	r       *Request
	sends   bool
	changed chan struct{} // wakes the goroutine: something has changed
	chunk   int           // bytes
	total   int           // bytes to be copied
	slots   []mem.Buffer
	want    int             // slots to be lent
	early   []byte          // the only slot, from the scratch pool, of an eager message
	copied  int             // chunks
	moved   int             // bytes that have arrived, or that the transport has been given
	until   int             // moved at the end of the frame that arrives
	lent    fifo.Queue[int] // chunks that the transport holds
	over    bool            // r has ended
}

// toDevice reports whether some of n bytes of a message go to memory that the processor does not
// reach.
func (r *Request) toDevice(n int) bool {
	return !r.buf.IsHost() && n > 0 && r.buf.Size() > 0 && !errors.Is(r.err, ErrType)
}

// requestData tells p, which waits to send the payload of r, to do so.
func (e *Engine) requestData(p *peer, r *Request) {
	r.stage = filling
	if r.toDevice(r.size) {
		e.startCopy(r, false)
	} else {
		e.clear(p, r, 0)
	}
}

// startCopy begins the pipelined copy of r's payload.
func (e *Engine) startCopy(r *Request, sends bool) {
	f := e.newCopy(r, StagingChunk)
	f.sends = sends
	f.want = max(min(maxStagingChunks-e.lent, copyDepth, f.chunks()), 1)
	e.lent += f.want
	e.stamp(r) // so that it is found when the Channel breaks
	go f.run()
}

// storeEager copies an eager message into r: arrived bytes of it are in data, the rest will be.
func (e *Engine) storeEager(r *Request, data []byte, arrived int) {
	f := e.newCopy(r, max(len(data), 1))
	f.slots, f.early, f.moved = []mem.Buffer{mem.Bytes(data)}, data, min(arrived, f.total)
	r.asked, r.stage = r.size, filling
	f.arrived()
	go f.run()
}

func (e *Engine) newCopy(r *Request, unit int) *pipelinedCopy {
	f := &pipelinedCopy{e: e, r: r, changed: make(chan struct{}, 1), chunk: unit, total: min(r.size, r.buf.Size())}
	r.copy = f
	r.ch.copies.Add(1)
	return f
}

func (f *pipelinedCopy) chunks() int { return (f.total + f.chunk - 1) / f.chunk }

// chunkAt returns the part of the payload that chunkAt i is, and the memory for it.
func (f *pipelinedCopy) chunkAt(i int) (part, slot mem.Buffer) {
	lo, hi := i*f.chunk, min((i+1)*f.chunk, f.total)
	return f.r.buf.Raw().Slice(lo, hi), f.slots[i%len(f.slots)].Slice(0, hi-lo)
}

func (f *pipelinedCopy) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// run copies until the message has been sent or stored, or has failed. It holds the lock except
// while it copies or waits.
func (f *pipelinedCopy) run() {
	slots, err := f.alloc()
	e := f.e
	e.progress.Lock()
	f.slots = slots
	for err == nil && !f.over {
		if f.advance(); f.done() {
			break
		}
		load, copies := f.next()
		e.progress.Exit()
		if copies {
			err = load()
		} else {
			<-f.changed
		}
		e.progress.Lock()
		if copies && err == nil {
			f.copied++
			f.wakeReplacing()
		}
	}
	f.finish(err)
	e.progress.Exit()
}

// alloc returns the slots, which it may have to wait for.
func (f *pipelinedCopy) alloc() (slots []mem.Buffer, err error) {
	slots = f.slots
	for len(slots) < f.want && err == nil {
		var b mem.Buffer
		if b, err = f.e.cfg.Lender.Lend(f.r.buf.Space(), StagingChunk); err == nil {
			slots = append(slots, b)
		}
	}
	return slots, err
}

// done reports whether all has been stored, or has left.
func (f *pipelinedCopy) done() bool {
	return f.copied == f.chunks() && (!f.sends || f.moved == f.total && f.lent.Len() == 0)
}

// next returns the copy that can be made now.
func (f *pipelinedCopy) next() (copy func() error, ok bool) {
	i := f.copied
	if i == f.chunks() {
		return nil, false
	}
	if f.sends {
		held := f.given()
		if f.lent.Len() > 0 {
			held = f.lent.Front()
		}
		ok = i-held < len(f.slots)
	} else {
		end := min((i+1)*f.chunk, f.total)
		ok = f.moved >= end && f.r.before.hasLoaded(end)
	}
	if !ok {
		return nil, false
	}
	part, slot := f.chunkAt(i)
	if f.sends {
		return func() error { return mem.Copy(slot, part) }, true
	}
	return func() error { return mem.Copy(part, slot) }, true
}

// hasLoaded reports whether the first n bytes of a send have been copied from the device. r may be
// nil: there is nothing to copy.
func (r *Request) hasLoaded(n int) bool {
	if r == nil || r.stage == complete {
		return true
	}
	return r.copy != nil && r.copy.copied*r.copy.chunk >= min(n, r.size)
}

// wakeReplacing wakes the receive that stores over what this send has copied.
func (f *pipelinedCopy) wakeReplacing() {
	if r := f.r.after; r != nil && r.copy != nil {
		r.copy.wake()
	}
}

// advance sends the chunks that are loaded and asked for, or asks for as many as there are slots
// for.
func (f *pipelinedCopy) advance() {
	if f.sends {
		f.push()
	} else {
		f.ask()
	}
}

// given returns how many chunks the transport has been given.
func (f *pipelinedCopy) given() int { return (f.moved + f.chunk - 1) / f.chunk }

// push sends the chunks that are loaded and asked for.
func (f *pipelinedCopy) push() {
	e, r := f.e, f.r
	for i := f.given(); i < f.copied && r.asked >= min((i+1)*f.chunk, f.total) && !f.over; i++ {
		_, slot := f.chunkAt(i)
		f.moved += slot.Size()
		if f.moved == f.total {
			r.stage = leaving
		}
		e.h = transport.Header{Kind: transport.Data, A: r.other}
		if !e.give(e.peer(r.peer), r, slot) {
			f.lent.Push(i)
		}
	}
}

// ask asks for as many bytes as there are slots for.
func (f *pipelinedCopy) ask() {
	e, r := f.e, f.r
	if r.asked == r.size {
		return
	}
	p, n := e.peer(r.peer), (f.copied+len(f.slots))*f.chunk
	switch {
	case n >= f.total: // what does not fit is dropped
		e.clear(p, r, 0)
	case n > r.asked:
		e.h = transport.Header{Kind: transport.CTS, A: r.other, B: r.token, Tag: int32((n - r.asked) / StagingChunk)}
		r.asked = n
		e.post(p, mem.Buffer{}, 0)
	}
}

// arrives begins a frame of n bytes.
func (f *pipelinedCopy) arrives(n int) mem.Buffer {
	f.until = f.moved + n
	return f.window()
}

// window returns where the next bytes go; an empty one means that they are dropped.
func (f *pipelinedCopy) window() mem.Buffer {
	at := f.moved % f.chunk
	n := min(f.chunk-at, min(f.until, f.total)-f.moved)
	if n == 0 {
		return mem.Buffer{}
	}
	return f.slots[f.moved/f.chunk%len(f.slots)].Slice(at, at+n)
}

// filled notes that the window has been filled, and returns the next.
func (f *pipelinedCopy) filled() mem.Buffer {
	f.moved += f.window().Size()
	f.arrived()
	return f.window()
}

// arrived wakes the goroutine when a chunk is complete.
func (f *pipelinedCopy) arrived() {
	if f.moved == f.total {
		f.r.stage = landing
	}
	if f.moved%f.chunk == 0 || f.moved == f.total {
		f.wake()
	}
}

// returned notes that the transport has done with the oldest chunk that it holds.
func (f *pipelinedCopy) returned() {
	f.lent.Pop()
	f.wake()
}

// stop makes the message fail with err, after the copy that is being made: until that ends the
// memory is in use.
func (f *pipelinedCopy) stop(r *Request, err error) {
	if r.err == nil {
		r.err = err
	}
	if rd := r.round; rd != nil && rd.err == nil {
		rd.err = r.err
	}
	f.e.forget(r)
	f.over = true
	f.wake()
}

// finish returns the slots and completes the message. If the device has failed, the peer waits in
// vain, so the communicator breaks.
func (f *pipelinedCopy) finish(err error) {
	e, r := f.e, f.r
	failed := err != nil && !f.over
	if failed {
		f.stop(r, err)
	}
	r.copy = nil
	for _, s := range f.slots {
		if f.early != nil {
			e.scratch.put(f.early)
		} else {
			e.cfg.Lender.Return(r.buf.Space(), s)
		}
	}
	e.lent -= f.want
	ch := r.ch
	ch.copies.Done()
	if failed && f.early == nil {
		ch.breakUp(revokeReason{rank: e.cfg.Rank, cause: fmt.Sprintf("failed on a message under way: %v", err)})
	}
	e.finish(r, nil)
}

// forget makes the transport forget r's memory.
func (e *Engine) forget(r *Request) {
	if r.token == 0 {
		return
	}
	if r.peer >= 0 && e.peer(r.peer).tr != nil {
		e.peer(r.peer).tr.Forget(r.peer, r.token)
	}
	e.slots.release(r.token)
	r.token = 0
}

// localCopy copies a message of n bytes from this rank to itself, s to r. At least one of the two
// is in a device's memory.
func (e *Engine) localCopy(r, s *Request, n int) {
	f := e.newCopy(r, StagingChunk)
	s.copy = f
	r.stage, s.stage = landing, leaving
	go func() {
		err := e.copyAnyMemory(r.buf.Raw().Slice(0, n), s.buf.Raw().Slice(0, n))
		e.progress.Lock()
		defer e.progress.Exit()
		r.copy, s.copy = nil, nil
		r.ch.copies.Done()
		e.finish(s, err)
		e.finish(r, err)
	}()
}

// copyAnyMemory copies src to dst, by way of host memory if they are on different devices.
func (e *Engine) copyAnyMemory(dst, src mem.Buffer) error {
	if dst.IsHost() || src.IsHost() || dst.Space() == src.Space() {
		return mem.Copy(dst, src)
	}
	chunk, err := e.cfg.Lender.Lend(src.Space(), StagingChunk)
	if err != nil {
		return err
	}
	defer e.cfg.Lender.Return(src.Space(), chunk)
	for lo := 0; lo < src.Len() && err == nil; lo += StagingChunk {
		hi := min(lo+StagingChunk, src.Len())
		here := chunk.Slice(0, hi-lo)
		if err = mem.Copy(here, src.Slice(lo, hi)); err == nil {
			err = mem.Copy(dst.Slice(lo, hi), here)
		}
	}
	return err
}
