package message

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"gompi/internal/core/liveness"
	"gompi/internal/core/match"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/core/progress"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// Errors of messages, for errors.Is. Faces export them.
var (
	// ErrTruncated: a message was longer than the buffer posted for the message.
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

// Count returns the number of elements of the message.
func (s Status) Count() int {
	if s.Type.Size() == 0 {
		return 0
	}
	return s.Bytes / s.Type.Size()
}

// A Handle names an operation to the caller of Isend, Irecv or Expect: a Request, and its
// generation, since the Request is reused after its outcome was taken. The zero Handle names an
// operation that was complete at once. A Handle is two words: one for each message costs little.
type Handle struct {
	r   *Request
	gen uint64
}

// Done reports whether the operation is complete.
func (h Handle) Done() bool {
	done := h.r == nil || h.gen&atOnce != 0 || h.r.done.Load() >= h.gen
	if payload.Raced && done && h.r != nil {
		h.r.Settle()
	}
	return done
}

// Pend makes the race detector watch b, the buffer of the send h.
func (h Handle) Pend(b mem.Buffer) { h.r.Pend(b, false) }

// atOnce is set in the generation of a Handle whose operation was complete before the call
// returned, so that no atomic store has to publish the completion.
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

// take returns the outcome of a complete operation. After a success, its Request is free and h
// names nothing. After a failure, h keeps the Request, so that a later call gets the same error.
func (e *Engine) take(h Handle) (Status, error) {
	r := h.live()
	if r == nil {
		return nothing, nil
	}
	r.Settle()
	st, err := r.status, r.err
	if err == nil {
		e.FreeRequest(r)
	}
	return st, err
}

// A Request is a send or a receive under way. The Engine's lock guards its fields, except done.
// The Request goes back to the Engine when the waiting call returns or, if there is a Handle,
// when take has returned its outcome.
type Request struct {
	node match.Recv[Request]
	gen  uint64        // counts the operations of the Request
	done atomic.Uint64 // the last of them that is complete
	ch   *Channel

	held       bool // there is a Handle
	sync       bool
	starved    bool // a send of eager size that is announced
	collective bool // of the Channel's Collectives
	class      progress.Class

	payload.Move
	peer   world.Rank // the other side, None if any
	tag    int
	status Status
	err    error

	withdrawn error // of a send that is announced and has been given up, why

	waiters []*waiter
	signal  chan<- struct{} // of Signal, nil without
	via     Handle          // the operation that Cancel withdraws instead
	keeps   *Kept           // of a receive that fetches a message to be kept
}

// Finish completes r.
func (e *Engine) Finish(r *Request, err error) {
	if r.Stage == payload.Complete {
		return
	}
	if r.err == nil {
		r.err = err
	}
	ended := r.End(r.err)
	if r.Token != 0 {
		e.tokens.Release(r.Token)
		r.Token = 0
	}
	if !ended {
		return // CopyEnds follows
	}
	e.over(r)
	for _, w := range r.waiters {
		if w.left--; w.left <= 0 {
			e.rouse(w)
		}
		if w.request == r {
			w.lookOn()
		}
	}
	r.waiters = r.waiters[:0]
	if r.signal != nil {
		e.Progress.Send(r.signal)
		r.signal = nil
	}
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
	r.Stage, r.status, r.err = payload.Complete, st, nil
	return Handle{r, r.gen | atOnce}
}

// begin prepares r for a new operation.
func (r *Request) begin(ch *Channel, s payload.Stage, b mem.Buffer, peer world.Rank, tag int) {
	r.Move.Begin(s, b)
	r.ch, r.peer, r.tag, r.err, r.status = ch, peer, tag, nil, nothing
	r.sync, r.starved, r.collective, r.withdrawn = false, false, false, nil
}

// CopyBegins implements payload.Owner.
func (r *Request) CopyBegins() {
	r.ch.copies.Add(1)
	r.ch.Engine.Stamp(r) // so that r is found when the Channel breaks
}

// CopyEnds implements payload.Owner. If a peer waits in vain, the communicator breaks.
func (r *Request) CopyEnds(err error, stranded bool) {
	ch := r.ch
	ch.copies.Done()
	ch.Engine.Finish(r, err)
	if stranded {
		ch.BreakUp(liveness.Reason{Rank: ch.Engine.cfg.Rank, Cause: fmt.Sprintf("failed on a message under way: %v", err)})
	}
}

// Stamp gives r a token, by which frames and transports name r, and returns it.
func (e *Engine) Stamp(r *Request) uint64 {
	if r.Token == 0 {
		r.Token = e.tokens.Take(r, nil)
	}
	return r.Token
}

func (e *Engine) newRequest() *Request {
	if n := len(e.requests); n > 0 {
		r := e.requests[n-1]
		e.requests = e.requests[:n-1]
		return r
	}
	r := &Request{gen: 1}
	r.Init(&e.Mover, r)
	return r
}

// FreeRequest frees a Request without references, for reuse.
func (e *Engine) FreeRequest(r *Request) {
	r.gen++
	r.held, r.ch, r.Buf, r.via = false, nil, mem.Buffer{}, Handle{}
	e.requests = append(e.requests, r)
}

// Wait waits until h is done and returns the outcome; only the first Wait gets a success's Status.
// over is false if ctx has ended earlier; then the error is its cause, and the operation continues.
func (e *Engine) Wait(ctx context.Context, h Handle) (st Status, over bool, err error) {
	e.Progress.Lock()
	defer e.ExitPolling()
	if r := h.live(); r != nil && !e.spin(ctx, r) {
		if err := e.wait(ctx, r); err != nil {
			return nothing, false, err
		}
	}
	st, err = e.take(h)
	return st, true, err
}

func (e *Engine) wait(ctx context.Context, r *Request) error {
	if r.Stage == payload.Complete {
		return nil
	}
	w := e.newWaiter(ctx)
	w.left = 1
	w.watch(r)
	err := e.Progress.Await(ctx, &w.Waiter)
	if err != nil { // else r has forgotten w, and may be another's by now
		r.unwatch(w)
	}
	e.freeWaiter(w)
	return err
}

// WaitAll waits until all n Handles are done. The results are the first failure and its error;
// failed is -1 if ctx has ended earlier. at is called with the lock held.
func (e *Engine) WaitAll(ctx context.Context, n int, at func(i int) Handle) (failed int, err error) {
	e.Progress.Lock()
	defer e.ExitPolling()
	if err := e.awaitAll(ctx, n, at); err != nil {
		return -1, err
	}
	for i := range n {
		if _, e := e.take(at(i)); e != nil && err == nil {
			failed, err = i, e
		}
	}
	return failed, err
}

// AwaitAll waits for all n Handles, and leaves their outcomes to Wait. It fails only if ctx ends.
func (e *Engine) AwaitAll(ctx context.Context, n int, at func(i int) Handle) error {
	e.Progress.Lock()
	defer e.ExitPolling()
	return e.awaitAll(ctx, n, at)
}

// awaitAll waits for n Handles in a single wait, so that the drive changes hands only once.
func (e *Engine) awaitAll(ctx context.Context, n int, at func(i int) Handle) error {
	for i := range n {
		if r := at(i).live(); r != nil && !e.spin(ctx, r) {
			return e.awaitFrom(ctx, i, n, at)
		}
	}
	return nil
}

// awaitFrom waits until the Handles from at(first) on are done.
func (e *Engine) awaitFrom(ctx context.Context, first, n int, at func(i int) Handle) error {
	w := e.newWaiter(ctx)
	defer e.freeWaiter(w)
	for i := first; i < n; i++ {
		if r := at(i).live(); r != nil && r.Stage != payload.Complete {
			w.left++
			w.watch(r)
		}
	}
	err := e.Progress.Await(ctx, &w.Waiter)
	if err != nil {
		w.forget(n, at)
	}
	return err
}

// WaitAny waits for any of n Handles, and returns its number. One without a Request counts as done.
func (e *Engine) WaitAny(ctx context.Context, n int, at func(i int) Handle) (int, error) {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	for i := range n {
		if at(i).Done() {
			return i, nil
		}
	}
	w := e.newWaiter(ctx)
	defer e.freeWaiter(w)
	w.left = 1
	for i := range n {
		w.watch(at(i).r)
	}
	err := e.Progress.Await(ctx, &w.Waiter)
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
	w.watched = append(w.watched, r)
	w.Hint, w.request = r.peer, r
}

// lookOn gives w's Hint an awaited Request that is not over. Otherwise w would poll a peer whose
// message has arrived, and the awaited peers only now and then (examples/heat on four ranks of two
// processors: 115 us a step without lookOn, 54 with it).
func (w *waiter) lookOn() {
	for n := len(w.watched) - 1; n >= 0; n-- {
		r := w.watched[n] // which may be another's by now
		if r.Stage != payload.Complete && slices.Contains(r.waiters, w) {
			w.Hint, w.request = r.peer, r
			return
		}
		w.watched = w.watched[:n]
	}
	w.Hint, w.request = world.None, nil
}

// unwatch removes w from the waiters for r, if w is among them.
func (r *Request) unwatch(w *waiter) {
	if i := slices.Index(r.waiters, w); i >= 0 {
		r.waiters = slices.Delete(r.waiters, i, i+1)
	}
}

// forget removes w from the waiters for the Requests of n Handles, as far as they are under way.
func (w *waiter) forget(n int, at func(i int) Handle) {
	for i := range n {
		if r := at(i).live(); r != nil {
			r.unwatch(w)
		}
	}
}

// Expect returns a Handle that Complete ends: the Handle stands for work done by a goroutine rather
// than for a message. If the work serves a message, via names the message, and Cancel withdraws it.
func (e *Engine) Expect(via Handle) Handle {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	r := e.open()
	r.begin(nil, payload.Queued, mem.Buffer{}, Any, 0)
	r.via = via
	return r.handle()
}

// Complete ends the operation that Expect began.
func (e *Engine) Complete(h Handle, st Status, err error) {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	if r := h.live(); r != nil {
		r.status = st
		e.Finish(r, err)
	}
}

// StartOnDevice opens a Request for an operation of a network device between b and memory of p, if
// start, which gets the token of the Request, returns true.
func (ch *Channel) StartOnDevice(p *peers.Peer, b mem.Buffer, start func(token uint64) bool) (Handle, error) {
	e := ch.Engine
	e.Progress.Lock()
	defer e.Progress.Exit()
	if err := ch.Usable(p); err != nil {
		return Handle{}, err
	}
	r := e.open()
	r.begin(ch, payload.Leaving, b, p.Rank, 0)
	r.Await(p)
	h := r.handle()
	if !start(e.Stamp(r)) {
		e.Finish(r, nil)
		e.take(h)
		return Handle{}, nil
	}
	e.outstanding(r)
	return h, nil
}

// Test polls once and reports whether h, which was not, is done.
func (e *Engine) Test(h Handle) bool {
	e.Progress.Lock()
	defer e.ExitPolling()
	hint := world.None
	if r := h.live(); r != nil {
		hint = r.peer
	}
	e.Progress.CallBack()
	e.poll(hint)
	return h.Done()
}

// poll polls once, first at rank hint, for a program that tests.
func (e *Engine) poll(hint world.Rank) {
	e.Progress.Tested(e.pollOnce(hint))
	if e.looks++; e.looks%looksPerCheck == 0 {
		e.Stalled()
	}
}

// Signal sends to ch, which has capacity 1, when h is done: for a goroutine that waits for nothing
// else, and whose wait is no call of the program's. soon states that h will soon be done: then a
// goroutine polls meanwhile, whatever the Class of h.
func (e *Engine) Signal(h Handle, ch chan<- struct{}, soon bool) {
	e.Progress.Lock()
	defer e.Progress.Exit()
	r := h.live()
	if r == nil || r.Stage == payload.Complete {
		e.Progress.Send(ch)
		return
	}
	if r.signal = ch; soon && r.class == progress.Deferred {
		e.over(r)
		r.class = progress.Pending
		e.Progress.Begin(r.class)
	}
}

// Advance polls once, for a loop that waits for something else than a message. callBack states that
// the loop is in the foreground, and that the caller holds no lock.
func (e *Engine) Advance(callBack bool) {
	e.Progress.Lock()
	defer e.ExitPolling()
	if callBack {
		e.Progress.CallBack()
	}
	e.poll(world.None)
}

// Yield gives the processor to other goroutines, and to their threads, for a Test of their work.
func (e *Engine) Yield() {
	runtime.Gosched()
	e.cfg.Yield()
}

// looksPerCheck is the number of polls of a program that tests, instead of waiting, between two
// checks whether the awaited members have left.
const looksPerCheck = 4096
