package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"gompi/comm/internal/match"
	"gompi/comm/internal/payload"
	"gompi/comm/internal/progress"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// What is wrong with a message, for errors.Is. comm exports them.
var (
	// ErrTruncated: a message was longer than the buffer posted for it.
	ErrTruncated = errors.New("message longer than the buffer")
	// ErrType: a message was sent with another element type.
	ErrType = errors.New("message of another element type")
)

// A Status describes the message of a receive. Source is a rank of the communicator, Bytes the
// length of the whole message.
type Status struct {
	Source, Tag int
	Bytes       int
	Type        mem.Type
}

// A stage is the state of a Request.
type stage uint8

const (
	complete  stage = iota
	posted          // a receive without a message
	filling         // a receive whose payload is on its way
	fetching        // a receive that copies its payload from where the sender has it
	landing         // a receive whose payload is there, to be stored by a device
	announced       // a send by rendezvous whose receiver has not asked for all of it yet
	queued          // a collective send without credit or whose receiver is not ready, or a message whose peer is a suspect
	leaving         // a send whose buffer the transport holds
	storing         // a send that copies its payload to where the receiver wants it
)

// A Handle names an operation to the caller of Isend, Irecv or Expect: a Request, and its
// generation, since the Request is reused when the outcome was taken. The zero Handle names an
// operation that was complete at once. It is two words, so that callers can hold one for each
// message at no cost.
type Handle struct {
	r   *Request
	gen uint64
}

// Done reports whether the operation is complete.
func (h Handle) Done() bool {
	return h.r == nil || h.gen&atOnce != 0 || h.r.done.Load() >= h.gen
}

// atOnce is set in the generation of a Handle whose operation was complete before the
// call returned, so that no atomic store has to publish it.
const atOnce = 1 << 63

// live returns the Request that h names, nil if the operation is complete and its
// outcome was taken. The Engine's lock is held.
func (h Handle) live() *Request {
	if h.r == nil || h.r.gen != h.gen&^atOnce {
		return nil
	}
	return h.r
}

// nothing is the Status of an operation that received no message, or whose Status was taken.
var nothing = Status{Source: Any, Tag: Any}

// open returns a Request for which there is a Handle.
func (e *Engine) open() *Request {
	r := e.newRequest()
	r.held = true
	return r
}

func (r *Request) handle() Handle { return Handle{r, r.gen} }

// take returns the outcome of a complete operation. If it succeeded, its Request is free from
// then on and h names nothing. If it failed, h keeps the Request, so that a later call gets the
// same error.
func (e *Engine) take(h Handle) (Status, error) {
	r := h.live()
	if r == nil {
		return nothing, nil
	}
	st, err := r.status, r.err
	if err == nil {
		e.freeRequest(r)
	}
	return st, err
}

// A Request is one send or receive under way. The Engine's lock guards its fields, except done.
// It goes back to the Engine when the call that waits for it returns or, if it has a Handle,
// when take has returned its outcome.
type Request struct {
	node  match.Recv[Request]
	gen   uint64        // counts the operations that it stands for
	done  atomic.Uint64 // the last of them that is complete
	held  bool          // there is a Handle
	stage stage
	ch    *Channel

	buf     mem.Buffer // what to send, or where to receive
	peer    world.Rank // the other side, None if any
	tag     int
	sync    bool
	starved bool // a send that is announced for want of credit alone
	token   uint64
	other   uint64         // by rendezvous: the other side's token
	told    bool           // the other side may know where buf lies
	choice  payload.Choice // of a receive
	place   uint64         // place of the other side's buffer, or 0
	size    int            // bytes of the message
	asked   int            // bytes of it that the receiver has asked for
	got     int            // bytes of it stored so far, or given to the transport
	until   int            // got at the end of the frame that arrives
	due     int            // frames of it that the transport holds
	copy    *payload.Copy  // of a device's memory, while its goroutine runs
	before  *Request       // the send whose place in a device's memory a receive takes
	after   *Request       // the inverse
	status  Status
	err     error

	via        Handle   // what Cancel withdraws in its place
	keeps      *Kept    // of a receive that fetches a message to be kept
	collective bool     // of the Channel's Collectives
	combine    *Combine // of a receive that reduces
	waiters    []*waiter
	class      progress.Class
}

// A Combine is what a receive needs that an operator reduces: dst = own op in, or in op
// own if Left is true. A function of the user's does not.
type Combine struct {
	Own   mem.Buffer
	Op    mem.Op // which messages carry
	Left  bool
	chunk []byte
}

// finish completes r.
func (e *Engine) finish(r *Request, err error) {
	if r.stage == complete {
		return
	}
	if r.copy != nil {
		e.stopCopy(r, err)
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
	if r.choice != payload.NoChoice {
		e.Direct.End(r.peer, r.choice, r.size, r.err)
		r.choice = payload.NoChoice
	}
	e.over(r)
	for _, w := range r.waiters {
		if w.request == r {
			w.request = nil
		}
		if w.left--; w.left <= 0 {
			e.rouse(w)
		}
	}
	r.waiters = r.waiters[:0]
	if r.collective {
		r.ch.collectives.Over(r.err)
	}
	switch {
	case r.held:
		r.done.Store(r.gen)
	case r.keeps != nil:
		e.fetched(r)
	}
}

// end marks r as an operation that was complete at once.
func (r *Request) end(st Status) Handle {
	r.stage, r.status, r.err = complete, st, nil
	return Handle{r, r.gen | atOnce}
}

// begin prepares r for a new operation.
func (r *Request) begin(ch *Channel, s stage, b mem.Buffer, peer world.Rank, tag int) {
	r.ch, r.stage, r.buf, r.peer, r.tag = ch, s, b, peer, tag
	r.size, r.asked, r.got, r.due, r.place, r.err, r.status = 0, 0, 0, 0, 0, nil, nothing
	r.sync, r.starved, r.told, r.collective, r.combine = false, false, false, false, nil
	r.before, r.after = nil, nil
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
	return &Request{gen: 1}
}

// freeRequest takes back a Request that nothing refers to any more.
func (e *Engine) freeRequest(r *Request) {
	r.gen++
	r.held, r.ch, r.buf, r.via = false, nil, mem.Buffer{}, Handle{}
	e.requests = append(e.requests, r)
}

// window returns where the next bytes of r's message go, and moves no mark: an
// empty one means that the rest does not fit and is dropped.
func (r *Request) window() mem.Buffer {
	if c := r.combine; c != nil {
		n := min(len(c.chunk), r.until-r.got)
		return mem.Bytes(c.chunk[:n])
	}
	return r.buf.Raw().Slice(r.got, min(r.until, r.buf.Size()))
}

// filled takes note that the window has been filled, and reports whether the
// message is complete, as far as it fits.
func (r *Request) filled() (bool, error) {
	c := r.combine
	if c == nil {
		r.got = min(r.until, r.buf.Size())
		return r.got == min(r.size, r.buf.Size()), nil
	}
	n := min(len(c.chunk), r.until-r.got)
	err := c.reduce(r.buf, r.got, mem.Bytes(c.chunk[:n]))
	r.got += n
	return r.got == r.size || err != nil, err
}

// reduce combines the bytes in, which are at offset off of the message.
func (c *Combine) reduce(dst mem.Buffer, off int, in mem.Buffer) error {
	width := dst.Type().Size()
	i, j := off/width, (off+in.Size())/width
	in = mem.HostBytes(dst.Type(), j-i, in.HostSlice())
	dst, own := dst.Slice(i, j), c.Own.Slice(i, j)
	if c.Left {
		return mem.Reduce(c.Op, dst, in, own)
	}
	return mem.Reduce(c.Op, dst, own, in)
}

// store puts the whole payload of a message that arrived early into r.
func (r *Request) store(data []byte) error {
	if r.combine != nil {
		return r.combine.reduce(r.buf, 0, mem.Bytes(data))
	}
	if r.buf.IsHost() { // else nothing is to be stored: see lands
		copy(r.buf.HostSlice(), data)
	}
	return nil
}

// Wait waits until h is done and returns the outcome; only the first to ask gets
// the Status of what went well. over is false if ctx has ended before; then the error
// is its cause, and the operation goes on.
func (e *Engine) Wait(ctx context.Context, h Handle) (st Status, over bool, err error) {
	e.progress.Lock()
	defer e.exitPolling()
	if r := h.live(); r != nil && !e.spin(ctx, r) {
		if err := e.wait(ctx, r); err != nil {
			return nothing, false, err
		}
	}
	st, err = e.take(h)
	return st, true, err
}

func (e *Engine) wait(ctx context.Context, r *Request) error {
	if r.stage == complete {
		return nil
	}
	w := e.newWaiter()
	w.left = 1
	w.watch(r)
	err := e.progress.Await(ctx, &w.Waiter)
	if err != nil { // else r has forgotten w, and may be another's by now
		r.unwatch(w)
	}
	e.freeWaiter(w)
	return err
}

// WaitAll waits until all n Handles are done. It is one wait, so the drive changes
// hands once however many they are. It returns the error of the first that failed,
// and which it is; -1 if ctx has ended before. at is called with the lock held.
func (e *Engine) WaitAll(ctx context.Context, n int, at func(i int) Handle) (failed int, err error) {
	e.progress.Lock()
	defer e.exitPolling()
	begun := 0 // those before are done
	for begun < n {
		if r := at(begun).live(); r != nil && !e.spin(ctx, r) {
			break
		}
		begun++
	}
	if begun < n {
		if err := e.awaitAll(ctx, begun, n, at); err != nil {
			return -1, err
		}
	}
	for i := range n {
		if _, e := e.take(at(i)); e != nil && err == nil {
			failed, err = i, e
		}
	}
	return failed, err
}

// awaitAll waits until the Handles from at(first) on are done.
func (e *Engine) awaitAll(ctx context.Context, first, n int, at func(i int) Handle) error {
	w := e.newWaiter()
	defer e.freeWaiter(w)
	for i := first; i < n; i++ {
		if r := at(i).live(); r != nil && r.stage != complete {
			w.left++
			w.watch(r)
		}
	}
	err := e.progress.Await(ctx, &w.Waiter)
	if err != nil {
		w.forget(n, at)
	}
	return err
}

// WaitAny waits until one of n Handles is done, and returns which. One that names
// nothing counts as done.
func (e *Engine) WaitAny(ctx context.Context, n int, at func(i int) Handle) (int, error) {
	e.progress.Lock()
	defer e.progress.Unlock()
	for i := range n {
		if at(i).Done() {
			return i, nil
		}
	}
	w := e.newWaiter()
	defer e.freeWaiter(w)
	w.left = 1
	for i := range n {
		w.watch(at(i).r)
	}
	err := e.progress.Await(ctx, &w.Waiter)
	w.forget(n, at)
	if err != nil {
		return -1, err
	}
	i := 0
	for !at(i).Done() {
		i++
	}
	return i, nil
}

// watch adds w to the waiters of r.
func (w *waiter) watch(r *Request) {
	r.waiters = append(r.waiters, w)
	w.Hint, w.request = r.peer, r
}

// unwatch removes w from the waiters for r, if it is among them.
func (r *Request) unwatch(w *waiter) {
	if i := slices.Index(r.waiters, w); i >= 0 {
		r.waiters = slices.Delete(r.waiters, i, i+1)
	}
}

// forget removes w from the waiters for the Requests of n Handles, as far as they
// are under way.
func (w *waiter) forget(n int, at func(i int) Handle) {
	for i := range n {
		if r := at(i).live(); r != nil {
			r.unwatch(w)
		}
	}
}

// Expect returns a Handle that Complete ends: it stands for work done by a goroutine
// rather than for a message. If that has to do with a message, via names it, and
// Cancel withdraws that.
func (e *Engine) Expect(via Handle) Handle {
	e.progress.Lock()
	defer e.progress.Unlock()
	r := e.open()
	r.begin(nil, queued, mem.Buffer{}, Any, 0)
	r.via = via
	return r.handle()
}

// Complete ends what Expect began.
func (e *Engine) Complete(h Handle, st Status, err error) {
	e.progress.Lock()
	defer e.progress.Unlock()
	if r := h.live(); r != nil {
		r.status = st
		e.finish(r, err)
	}
}

// Test polls once and reports whether h, which was not, is done.
func (e *Engine) Test(h Handle) bool {
	e.progress.Lock()
	defer e.exitPolling()
	hint := world.None
	if r := h.live(); r != nil {
		hint = r.peer
	}
	e.test(hint)
	return h.Done()
}

// test polls once, first at rank hint, for Test and Iprobe.
func (e *Engine) test(hint world.Rank) {
	e.progress.Tested(e.pollOnce(hint))
	if e.looks++; e.looks%looksPerCheck == 0 {
		e.Stalled()
	}
}

// Yield gives the processor to other goroutines, and to their threads, for Test of what they do.
func (e *Engine) Yield() {
	runtime.Gosched()
	e.cfg.Yield()
}

// looksPerCheck is how often a program that tests instead of waiting polls before
// it is found out whether those it waits for have left.
const looksPerCheck = 4096
