package engine

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"gompi/comm/internal/coll"
	"gompi/comm/internal/match"
	"gompi/internal/mem"
	"gompi/transport"
)

// A Status says what a receive got: ranks of the communicator, bytes of the
// whole message.
type Status struct {
	Source, Tag int
	Bytes       int
	Type        mem.Type
}

// What a Request is in the middle of.
type stage uint8

const (
	complete  stage = iota
	posted          // a receive without a message
	filling         // a receive whose payload is on its way
	announced       // a send whose receiver has not asked for it yet
	queued          // a collective send that waits for credit or for its receiver
	leaving         // a send whose buffer the transport holds
)

// A Handle is what the caller of Isend, Irecv or Expect holds: the outcome, and
// until there is one the Request. The zero Handle is ready for use, and one that is
// done may be used again. It is small, because callers make one for each message;
// Requests are not, and the Engine uses them again.
type Handle struct {
	done    atomic.Bool
	started atomic.Bool
	r       *Request // nil when nothing is under way; guarded by the Engine's lock
	status  Status   // final when done
	err     error
}

// Done reports whether the operation is complete; Status and error are then final.
func (h *Handle) Done() bool { return h.done.Load() }

// Started reports whether an operation was ever started.
func (h *Handle) Started() bool { return h.started.Load() }

// Result returns the outcome of an operation that is done.
func (h *Handle) Result() (Status, error) { return h.status, h.err }

// end gives h its outcome.
func (h *Handle) end(st Status, err error) {
	h.r, h.status, h.err = nil, st, err
	h.started.Store(true)
	h.done.Store(true)
}

// open returns a Request for h.
func (e *Engine) open(h *Handle) *Request {
	r := e.newRequest()
	r.handle, h.r = h, r
	h.done.Store(false)
	h.started.Store(true)
	return r
}

// A Request is one send or receive under way. Its fields are guarded by the
// Engine's lock. When complete it goes back to the Engine: at once if it has a
// Handle, else when the call that waits for it returns.
type Request struct {
	node   match.Recv[Request]
	handle *Handle // nil: of a call that waits for it
	ch     *Channel
	stage  stage

	buf    mem.Buffer // what to send, or where to receive
	peer   int        // world rank of the other side, -1 if any
	tag    int
	sync   bool
	token  uint64
	size   int // bytes of the message
	got    int // bytes of it stored so far
	status Status
	err    error

	round   *Round   // of a collective's message
	combine *combine // of a receive that reduces
	waiters []*Waiter
	counted bool // in drivers.pending
}

// A combine is what a reducing receive needs: dst = own op in, or in op own.
type combine struct {
	own   mem.Buffer
	op    coll.Op
	left  bool
	piece []byte
}

// finish completes r. If r has a Handle, that keeps the outcome, and r is free.
func (e *Engine) finish(r *Request, err error) {
	if r.stage == complete {
		return
	}
	r.stage = complete
	if r.err == nil {
		r.err = err
	}
	if r.token != 0 {
		e.slots.release(r.token)
		r.token = 0
	}
	if r.counted {
		r.counted = false
		e.pending--
	}
	for _, w := range r.waiters {
		if w.request == r {
			w.request = nil
		}
		if w.left--; w.left <= 0 {
			e.rouse(w)
		}
	}
	r.waiters = r.waiters[:0]
	if rd := r.round; rd != nil {
		if r.err != nil && rd.err == nil {
			rd.err = r.err
		}
		if rd.left--; rd.left == 0 {
			e.rouse(rd.waiter)
		}
	}
	if h := r.handle; h != nil {
		h.end(r.status, r.err)
		e.freeRequest(r)
	}
}

// begin readies r for a new operation.
func (r *Request) begin(ch *Channel, s stage, b mem.Buffer, peer, tag int) {
	r.ch, r.stage, r.buf, r.peer, r.tag = ch, s, b, peer, tag
	r.size, r.got, r.err, r.status = 0, 0, nil, Status{}
	r.sync, r.round, r.combine = false, nil, nil
}

// stamp gives r a token.
func (e *Engine) stamp(r *Request) uint64 {
	if r.token == 0 {
		r.token = e.slots.take(r, nil)
	}
	return r.token
}

func (e *Engine) newRequest() *Request {
	if n := len(e.requests); n > 0 {
		r := e.requests[n-1]
		e.requests = e.requests[:n-1]
		return r
	}
	return new(Request)
}

// freeRequest takes back a Request that nobody refers to any more.
func (e *Engine) freeRequest(r *Request) {
	r.handle, r.ch, r.buf = nil, nil, mem.Buffer{}
	e.requests = append(e.requests, r)
}

// window returns where the next bytes of r's message go, and moves no mark: an
// empty one means that the rest does not fit and is dropped.
func (r *Request) window() mem.Buffer {
	if c := r.combine; c != nil {
		n := min(len(c.piece), r.size-r.got)
		return mem.Bytes(c.piece[:n])
	}
	return r.buf.Raw().Slice(r.got, min(r.size, r.buf.Size()))
}

// filled takes note that the window has been filled, and reports whether the
// message is complete, as far as it fits.
func (r *Request) filled() (bool, error) {
	c := r.combine
	if c == nil {
		r.got = min(r.size, r.buf.Size())
		return true, nil
	}
	n := min(len(c.piece), r.size-r.got)
	err := c.reduce(r.buf, r.got, mem.Bytes(c.piece[:n]))
	r.got += n
	return r.got == r.size || err != nil, err
}

// reduce combines the bytes in, which stand at offset off of the message.
func (c *combine) reduce(dst mem.Buffer, off int, in mem.Buffer) error {
	width := dst.Type().Size()
	i, j := off/width, (off+in.Size())/width
	in = mem.HostBytes(dst.Type(), j-i, in.HostSlice())
	dst, own := dst.Slice(i, j), c.own.Slice(i, j)
	if c.op.Kind == mem.Custom {
		return c.apply(dst, own, in)
	}
	if c.left {
		return mem.Reduce(c.op.Kind.Base(), dst, in, own)
	}
	return mem.Reduce(c.op.Kind.Base(), dst, own, in)
}

// apply is reduce for a function of the user's, which works in place. It may
// use in as scratch, which is the engine's.
func (c *combine) apply(dst, own, in mem.Buffer) error {
	if c.left {
		c.op.Func(in, own)
		return mem.Copy(dst, in)
	}
	if !mem.Same(dst, own) {
		if err := mem.Copy(dst, own); err != nil {
			return err
		}
	}
	c.op.Func(dst, in)
	return nil
}

// store puts the whole payload of a message that arrived early into r.
func (r *Request) store(data []byte) error {
	if r.combine != nil {
		return r.combine.reduce(r.buf, 0, mem.Bytes(data))
	}
	n := min(len(data), r.buf.Size())
	if r.buf.IsHost() {
		copy(r.buf.HostSlice(), data)
		return nil
	}
	return mem.Copy(r.buf.Raw().Slice(0, n), mem.Bytes(data[:n]))
}

// Wait waits until h is done, at most until ctx ends: then it returns the cause and
// the operation goes on.
func (e *Engine) Wait(ctx context.Context, h *Handle) error {
	if h.done.Load() {
		return nil
	}
	e.lock()
	defer e.unlock()
	if h.r == nil {
		return nil
	}
	return e.wait(ctx, h.r)
}

func (e *Engine) wait(ctx context.Context, r *Request) error {
	if r.stage == complete {
		return nil
	}
	w := e.newWaiter()
	w.left = 1
	w.watch(r)
	err := e.await(ctx, w)
	if err != nil { // else r has forgotten w, and may be another's by now
		r.unwatch(w)
	}
	e.freeWaiter(w)
	return err
}

// WaitAll waits until all of hs are done. It is one wait, so the drive changes
// hands once however many they are.
func (e *Engine) WaitAll(ctx context.Context, hs iter.Seq[*Handle]) error {
	e.lock()
	defer e.unlock()
	w := e.newWaiter()
	for h := range hs {
		if h.r != nil {
			w.left++
			w.watch(h.r)
		}
	}
	var err error
	if w.left > 0 {
		err = e.await(ctx, w)
	}
	if err != nil { // those that are done have forgotten w
		for h := range hs {
			h.unwatch(w)
		}
	}
	e.freeWaiter(w)
	return err
}

// WaitAny waits until one of hs is done. One that was never started counts as
// done.
func (e *Engine) WaitAny(ctx context.Context, hs iter.Seq[*Handle]) error {
	e.lock()
	defer e.unlock()
	for h := range hs {
		if h.r == nil {
			return nil
		}
	}
	w := e.newWaiter()
	w.left = 1
	for h := range hs {
		w.watch(h.r)
	}
	err := e.await(ctx, w)
	for h := range hs {
		h.unwatch(w)
	}
	e.freeWaiter(w)
	return err
}

// watch makes r's end count for w.
func (w *Waiter) watch(r *Request) {
	r.waiters = append(r.waiters, w)
	w.hint, w.request = r.peer, r
}

// unwatch removes w from those who wait for r, if it is among them.
func (r *Request) unwatch(w *Waiter) {
	if i := slices.Index(r.waiters, w); i >= 0 {
		r.waiters = slices.Delete(r.waiters, i, i+1)
	}
}

// unwatch removes w from those who wait for h's Request, if it is still under way.
func (h *Handle) unwatch(w *Waiter) {
	if h.r != nil {
		h.r.unwatch(w)
	}
}

// Expect makes h one that Complete ends: it stands for work done by a goroutine
// rather than for a message.
func (e *Engine) Expect(h *Handle) {
	e.lock()
	e.open(h).begin(nil, queued, mem.Buffer{}, Any, 0)
	e.unlock()
}

// Complete ends what Expect began.
func (e *Engine) Complete(h *Handle, err error) {
	e.lock()
	if h.r != nil {
		e.finish(h.r, err)
	}
	e.unlock()
}

// Progress polls once, for Test and Iprobe.
func (e *Engine) Progress() {
	e.lock()
	defer e.exitPolling()
	if e.driver == nil || e.driver.parked {
		e.poll(-1)
	}
	if e.looks++; e.looks%looksPerCheck == 0 && e.cfg.Left != nil {
		e.dismissLeft()
	}
}

// looksPerCheck is how often a program that tests instead of waiting polls before
// it is found out whether those it waits for have left.
const looksPerCheck = 4096

// A message has arrived, in part at least, without a receive for it.
type message struct {
	node  match.Message[message]
	kind  transport.Kind
	p     *peer // nil: from this rank itself
	src   int   // rank in the communicator
	tag   int
	typ   mem.Type
	comm  uint64
	seq   uint64
	call  Call
	size  int
	data  []byte // eager payload, from the scratch pool
	ready bool   // all of data is there
	token uint64
	offer uint64   // announced: the sender's token
	local bool     // announced by this rank itself
	taken *Request // the receive that took it before it was ready
}

// envelope readies m's node for matching.
func (m *message) envelope() *match.Message[message] {
	m.node.Source, m.node.Tag, m.node.Val = m.src, m.tag, m
	return &m.node
}

func (e *Engine) newMessage() *message {
	if n := len(e.messages); n > 0 {
		m := e.messages[n-1]
		e.messages = e.messages[:n-1]
		return m
	}
	return new(message)
}

func (e *Engine) freeMessage(m *message) {
	if m.data != nil {
		e.scratch.put(m.data)
	}
	if m.token != 0 {
		e.slots.release(m.token)
	}
	*m = message{}
	e.messages = append(e.messages, m)
}

// hold gives m room for its payload and returns the window for it.
func (e *Engine) hold(m *message) (mem.Buffer, uint64) {
	if m.size == 0 {
		m.ready = true
		return mem.Buffer{}, 0
	}
	m.data = e.scratch.get(m.size)
	m.token = e.slots.take(nil, m)
	return mem.Bytes(m.data), m.token
}
