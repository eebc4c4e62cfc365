package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gompi/comm/internal/call"
	"gompi/comm/internal/liveness"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// A FlagWait is how a collective through shared memory waits: for a flag, which is a word that
// another member stores. A communicator does one collective at a time, so a Channel has one
// FlagWait.
//
// Every poll looks at the flags that are waited for. Before a rank sleeps it tells the transports,
// and then looks once more: a member that stores a flag later sees that the rank sleeps, and rings
// its doorbell.
type FlagWait struct {
	ch     *Channel
	ctx    context.Context
	a, b   uint64 // the call, as its Words
	ticket seg.Ticket
	quiet  bool
	parts  bool // the Channel is about to close: a member that has left does not break it

	// While it is among the Engine's flagWaits:
	word   *atomic.Uint64
	want   uint64
	src    int
	waiter *waiter
}

// FlagWait returns the FlagWait of the Channel.
func (ch *Channel) FlagWait() *FlagWait { return &ch.flagWait }

// Begin begins the next collective, if the Channel is not broken. a and b are the Words of its
// call, ticket the call's place in the flight recorder, 0 if it has none yet.
func (v *FlagWait) Begin(ctx context.Context, a, b uint64, ticket seg.Ticket, quiet bool) {
	v.ctx, v.a, v.b, v.ticket, v.quiet, v.parts = ctx, a, b, ticket, quiet, false
}

// Part prepares for the comparison of calls when the Channel closes: until Begin, Await returns
// also when the member has left, or ctx has ended, and neither breaks the Channel.
func (v *FlagWait) Part(ctx context.Context) { v.ctx, v.ticket, v.quiet, v.parts = ctx, 0, false, true }

// SetTicket sets the call's place in the flight recorder, if it got one after Begin.
func (v *FlagWait) SetTicket(t seg.Ticket) { v.ticket = t }

// TryProgress polls once while the caller waits for member src, unless another goroutine polls or
// holds the lock. It returns why the Channel is broken, if it is.
func (v *FlagWait) TryProgress(src int) error { return v.ch.tryProgress(v.ch.World(src)) }

// tryProgress is TryProgress for a rank of the job, or for any if that is None.
func (ch *Channel) tryProgress(rank world.Rank) error {
	e := ch.e
	if e.progress.TryLock() {
		e.pollOnce(rank)
		e.progress.Exit()
	}
	return ch.Err()
}

// Gone makes progress, as TryProgress does, and reports whether the process of member src is lost.
func (v *FlagWait) Gone(src int) bool {
	e, rank := v.ch.e, v.ch.World(src)
	e.progress.Lock()
	defer e.progress.Exit()
	e.pollOnce(rank)
	return e.live.Lost(rank) != nil
}

// Await returns when word, which member src stores, is at least want. If the collective's context
// ends before, the communicator breaks: the other members wait for this rank.
func (v *FlagWait) Await(word *atomic.Uint64, want uint64, src int) error {
	e := v.ch.e
	e.progress.Lock()
	defer e.exitPolling()
	if v.ch.err != nil {
		return v.ch.err
	}
	w := e.newWaiter()
	w.flagWait, w.Background, w.Hint = v, v.quiet, v.ch.World(src)
	v.word, v.want, v.src, v.waiter = word, want, src, w
	e.flagWaits = append(e.flagWaits, v)
	if v.ch.gone(src) != nil || v.parts && v.ch.hasLeft(src) {
		v.dismiss(e.peer(w.Hint))
	}
	err := e.progress.Await(v.ctx, &w.Waiter)
	if v.parts && !v.came() && v.ch.err == nil && v.ch.hasLeft(src) {
		e.drain() // as in awaitParting: it may have said why
		v.ch.awaitReason()
	}
	e.endFlagWait(v)
	e.freeWaiter(w)
	if err != nil && !v.came() && !v.parts {
		v.ch.breakUp(liveness.Reason{Rank: e.cfg.Rank, Cause: fmt.Sprintf("gave up in %v: %v", v.call(), err)})
		return err
	}
	return v.ch.err
}

// Spins reports whether a rank that waits for a flag may poll it for long.
func (v *FlagWait) Spins() bool { return v.ch.e.Spins() }

func (v *FlagWait) call() call.Fingerprint { return call.OfWords(v.a, v.b) }

func (v *FlagWait) came() bool { return v.word.Load() >= v.want }

func (e *Engine) endFlagWait(v *FlagWait) {
	for i := range e.flagWaits {
		if e.flagWaits[i] == v {
			e.flagWaits = append(e.flagWaits[:i], e.flagWaits[i+1:]...)
			break
		}
	}
	v.waiter = nil
}

// look makes the waiters ready whose flags are set, and returns how many those are.
func (e *Engine) look() (n int) {
	for _, v := range e.flagWaits {
		if !v.waiter.Ready() && v.came() {
			e.rouse(v.waiter)
			n++
		}
	}
	return n
}

// dismiss ends the wait for a member that has left, unless that has set its flag.
func (v *FlagWait) dismiss(p *peer) {
	switch {
	case v.waiter == nil || v.waiter.Hint != p.rank || v.came():
	case v.parts:
		v.ch.e.rouse(v.waiter)
	default:
		v.ch.miss(p, liveness.ErrLeft, v.call())
	}
}

// stalled tells the awaited member the call in which this rank waits, if the collective is also a
// Round: then that member may itself wait for a message.
func (v *FlagWait) stalled() {
	rd := &v.ch.round
	if !rd.running {
		return
	}
	if l := rd.queue(v.src); l.p.lost == nil && l.p.tr != nil {
		rd.say(l, transport.Call, 0)
	}
}

// Dispute sends src the calls of the last rounds, of which one was another call there. It returns
// when src has found which, and has broken the Channel.
func (v *FlagWait) Dispute(src int) error {
	v.ch.e.progress.Lock()
	v.ch.round.recall(src)
	v.ch.e.progress.Unlock()
	var never atomic.Uint64
	return v.Await(&never, 1, src)
}

// Disagree breaks the Channel: the seq-th call of src was not that of this rank.
func (v *FlagWait) Disagree(seq uint64, src int, mine, theirs call.Fingerprint) error {
	return v.mismatch(&liveness.MismatchError{Seq: seq, Rank: v.ch.rank, Peer: src, Call: mine, PeerCall: theirs})
}

// DisagreeOn breaks the Channel: src sends another block than this rank expects, as their words
// say (see call.Transfer.Lengths).
func (v *FlagWait) DisagreeOn(seq uint64, src, mine, theirs int) error {
	return v.disagreeOn(seq, src, v.call(), mine, theirs)
}

func (v *FlagWait) disagreeOn(seq uint64, src int, f call.Fingerprint, mine, theirs int) error {
	return v.mismatch(v.ch.differOn(seq, src, f, f.Block(mine), f.Block(theirs)))
}

// Unreachable breaks the Channel: this rank could not read or write memory of src that src has told
// of. If the process is not there any more, the reason is what is told of its end.
func (v *FlagWait) Unreachable(src int, err error) error {
	if errors.Is(err, transport.ErrGone) {
		var never atomic.Uint64
		return v.Await(&never, 1, src)
	}
	e := v.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	v.ch.breakUp(liveness.Reason{Rank: e.cfg.Rank, Cause: fmt.Sprintf("could not reach the memory of rank %d in %v: %v", src, v.call(), err)})
	return v.ch.err
}

func (v *FlagWait) mismatch(m *liveness.MismatchError) error {
	e := v.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	v.ch.breakUp(liveness.Reason{Rank: e.cfg.Rank, Mismatch: m})
	return v.ch.err
}
