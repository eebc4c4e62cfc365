package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"gompi/comm/internal/call"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// A Vigil is how a collective that sends no messages waits: for words in memory,
// which other members store. Members whose rooms it serves do one collective at a
// time; so there is one Vigil to a Channel.
//
// What a word waits for is looked at whenever anybody polls, and once more when
// the transports have been told that this rank sleeps: who stores a word then, and
// sees that, rings this rank's doorbell.
type Vigil struct {
	ch     *Channel
	ctx    context.Context
	a, b   uint64 // the call, as its Words
	ticket seg.Ticket
	quiet  bool
	parts  bool // the Channel is about to close: nobody's absence breaks it

	// While it is among the Engine's vigils:
	word   *atomic.Uint64
	want   uint64
	src    int
	waiter *waiter
}

// Vigil returns the Channel's.
func (ch *Channel) Vigil() *Vigil { return &ch.vigil }

// Begin begins the next collective, if the Channel is not broken. a and b are the Words of its
// call, ticket the call's place in the flight recorder, 0 if it has none yet.
func (v *Vigil) Begin(ctx context.Context, a, b uint64, ticket seg.Ticket, quiet bool) {
	v.ctx, v.a, v.b, v.ticket, v.quiet, v.parts = ctx, a, b, ticket, quiet, false
}

// Part makes what follows, until Begin, a look at what other members have
// called: Await then returns also when a member has left, or ctx has ended, and neither
// breaks the Channel.
func (v *Vigil) Part(ctx context.Context) { v.ctx, v.ticket, v.quiet, v.parts = ctx, 0, false, true }

// Noted tells the call's place in the flight recorder, if it got one after Begin.
func (v *Vigil) Noted(t seg.Ticket) { v.ticket = t }

// Glance polls in the midst of waiting for member src, unless somebody else does or
// holds the lock.
func (v *Vigil) Glance(src int) error { return v.ch.glance(v.ch.World(src)) }

// glance is Glance for a rank of the job, or None for any.
func (ch *Channel) glance(rank world.Rank) error {
	e := ch.e
	if e.progress.TryLock() {
		e.pollOnce(rank)
		e.progress.Exit()
	}
	return ch.Err()
}

// Await returns when word, which member src stores, is at least want. If the
// collective's context ends, the communicator breaks: the others count on this rank.
func (v *Vigil) Await(word *atomic.Uint64, want uint64, src int) error {
	e := v.ch.e
	e.progress.Lock()
	defer e.exitPolling()
	if v.ch.err != nil {
		return v.ch.err
	}
	w := e.newWaiter()
	w.vigil, w.Background, w.Hint = v, v.quiet, v.ch.World(src)
	v.word, v.want, v.src, v.waiter = word, want, src, w
	e.vigils = append(e.vigils, v)
	if v.ch.gone(src) != nil || v.parts && v.ch.hasLeft(src) {
		v.dismiss(e.peer(w.Hint))
	}
	err := e.progress.Await(v.ctx, &w.Waiter)
	if v.parts && !v.came() && v.ch.err == nil && v.ch.hasLeft(src) {
		e.drain() // as in awaitParting: it may have said why
		v.ch.hearWhy()
	}
	e.endVigil(v)
	e.freeWaiter(w)
	if err != nil && !v.came() && !v.parts {
		v.ch.breakUp(verdict{rank: e.cfg.Rank, cause: fmt.Sprintf("gave up in %v: %v", v.call(), err)})
		return err
	}
	return v.ch.err
}

// Patient reports whether those who wait for words may look at them for long.
func (v *Vigil) Patient() bool { return v.ch.e.Patient() }

func (v *Vigil) call() call.Fingerprint { return call.OfWords(v.a, v.b) }

func (v *Vigil) came() bool { return v.word.Load() >= v.want }

func (e *Engine) endVigil(v *Vigil) {
	for i := range e.vigils {
		if e.vigils[i] == v {
			e.vigils = append(e.vigils[:i], e.vigils[i+1:]...)
			break
		}
	}
	v.waiter = nil
}

// look makes those ready whose words have come, and returns how many.
func (e *Engine) look() (n int) {
	for _, v := range e.vigils {
		if !v.waiter.Ready() && v.came() {
			e.rouse(v.waiter)
			n++
		}
	}
	return n
}

// dismiss ends the wait for a member that has left, unless it stored its word
// before.
func (v *Vigil) dismiss(p *peer) {
	switch {
	case v.waiter == nil || v.waiter.Hint != p.rank || v.came():
	case v.parts:
		v.ch.e.rouse(v.waiter)
	default:
		v.ch.miss(p, ErrLeft, v.call())
	}
}

// stalled tells the member waited for what this rank waits in, if the collective is a
// round's, too: others of it may be waited for by messages.
func (v *Vigil) stalled() {
	rd := &v.ch.round
	if !rd.running {
		return
	}
	if l := rd.lane(v.src); l.p.lost == nil && l.p.tr != nil {
		rd.say(l, transport.Call, 0)
	}
}

// Dispute tells src what this rank has called, in the last rounds: one of them was
// another call there. It returns when src has found which, and broken the Channel.
func (v *Vigil) Dispute(src int) error {
	v.ch.e.progress.Lock()
	v.ch.round.recall(src)
	v.ch.e.progress.Unlock()
	var never atomic.Uint64
	return v.Await(&never, 1, src)
}

// Disagree breaks the Channel: src made another call than this rank, as its seq-th.
func (v *Vigil) Disagree(seq uint64, src int, mine, theirs call.Fingerprint) error {
	return v.mismatch(&MismatchError{Seq: seq, Rank: v.ch.rank, Peer: src, Call: mine, PeerCall: theirs})
}

// DisagreeOn breaks the Channel: src sends another number of bytes than this rank
// expects.
func (v *Vigil) DisagreeOn(seq uint64, src, mine, theirs int) error {
	return v.mismatch(&MismatchError{Seq: seq, Rank: v.ch.rank, Peer: src, Call: v.call(), PeerCall: v.call(),
		Bytes: int64(mine), PeerBytes: int64(theirs)})
}

func (v *Vigil) mismatch(m *MismatchError) error {
	e := v.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	v.ch.breakUp(verdict{rank: e.cfg.Rank, mismatch: m})
	return v.ch.err
}
