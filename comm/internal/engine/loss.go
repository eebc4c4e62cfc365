package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gompi/comm/internal/match"
	"gompi/internal/boot"
	"gompi/internal/world"
	"gompi/transport"
)

// This file ends operations that wait for ranks that have died, left, or revoked a
// communicator, and decides which reason for it counts.

// Lost implements transport.Sink.
func (e *Engine) Lost(rank world.Rank, err error) {
	if p := e.peer(rank); !e.suspected(p, err) {
		e.lose(rank, e.reason(p, err), false)
	}
}

// newsTime is how long the loss of a peer waits for the launcher's news of how the peer
// ended. A killed process is reaped within milliseconds of its
// connections' end; a cut network has no such news to wait for.
const newsTime = 500 * time.Millisecond

// A suspect is a peer that a transport has lost, while the launcher may yet tell why. The
// launcher's reason counts more. So every rank reports the true reason, and no rank ends
// because of a death of which the launcher has not heard, and is taken for the first to fail. A
// peer that has left in good order may have left because a communicator was revoked, of which this
// rank has not heard yet: what the launcher knows of that comes before its answer. Meanwhile
// operations that wait for the suspect go on waiting.
type suspect struct {
	p   *peer
	err error
	due time.Time
}

// suspected reports whether err, the error of a transport with p, counts only after the
// launcher had time to tell why.
func (e *Engine) suspected(p *peer, err error) bool {
	b := e.cfg.Boot
	if b == nil || p.lost != nil {
		return false
	}
	if b.Pending() {
		e.news()
	}
	if p.lost != nil || e.jobEnding || !e.explains(p, err) {
		return false
	}
	if !e.isSuspect(p) {
		e.suspects.Push(suspect{p, err, time.Now().Add(newsTime)})
		e.progress.Shorten()
		b.Inquire(p.rank) // if the launcher is gone, that is news, too
	}
	return true
}

// explains reports whether the launcher may have a better reason than err, and one is wanted.
func (e *Engine) explains(p *peer, err error) bool {
	return errors.Is(err, transport.ErrCut) || errors.Is(err, transport.ErrUnreachable) || errors.Is(err, transport.ErrGone) && e.awaits(p)
}

// awaits reports whether something waits for a message or an answer of p, or of any rank.
func (e *Engine) awaits(p *peer) bool {
	for _, ch := range e.channels {
		for src := range ch.awaited() {
			if ch.World(src) == p.rank {
				return true
			}
		}
	}
	return false
}

func (e *Engine) isSuspect(p *peer) bool {
	return slices.ContainsFunc(e.suspects.Items(), func(s suspect) bool { return s.p == p })
}

// judgeSuspects loses the suspects of which the launcher has told nothing for newsTime. It
// returns their number.
func (e *Engine) judgeSuspects() (n int) {
	for now := time.Now(); !e.suspects.Empty(); n++ {
		s := e.suspects.Front() // the first to be due
		if s.p.lost == nil && !e.jobEnding && now.Before(s.due) {
			return n
		}
		e.suspects.Pop()
		e.lose(s.p.rank, e.reason(s.p, s.err), false)
	}
	return n
}

// reason returns why a transport failed with p, which is no suspect. If no process listens at
// p's address, and the launcher has no news of p, p has left.
func (e *Engine) reason(p *peer, err error) error {
	switch {
	case p.lost != nil:
		return p.lost
	case errors.Is(err, transport.ErrGone):
		return ErrLeft
	case errors.Is(err, transport.ErrRefused):
		return fmt.Errorf("%w: it %w", ErrLeft, err)
	}
	return err
}

// fateTime is how long a collective waits for the launcher's news if a peer it needs has left,
// or if calls differ. The peer's process may have failed, and may have left because of an
// error; another rank may know which calls differ.
const fateTime = 200 * time.Millisecond

// awaitFate returns how the process of a peer that has left ended, nil if that
// is not known soon.
func (e *Engine) awaitFate(p *peer) error {
	e.awaitNews(func() bool { return p.fate != nil })
	return p.fate
}

// awaitNews handles news of the launcher for fateTime, or until the awaited news has come.
func (e *Engine) awaitNews(said func() bool) {
	deadline := time.Now().Add(fateTime)
	for !said() && !e.jobEnding && e.cfg.Boot != nil && e.cfg.Boot.Await(time.Until(deadline)) {
		e.news()
	}
}

// hearWhy waits for the launcher's news of why ch is broken, since it may be broken where a
// member has left early.
func (ch *Channel) hearWhy() { ch.e.awaitNews(func() bool { return ch.err != nil }) }

// lose handles the loss of a peer, of which the first reason counts. known says
// that the launcher tells it to all ranks.
func (e *Engine) lose(rank world.Rank, err error, known bool) {
	p := e.peer(rank)
	// A rank that shares memory with this one is cut off only by the end of its process.
	if known || errors.Is(err, ErrLeft) || errors.Is(err, transport.ErrCut) {
		p.ended = true
		e.Direct.Flushed(p.rank, math.MaxUint64)
	}
	if p.lost != nil {
		if known {
			p.fate = err
		}
		return
	}
	e.lost++
	p.lost = err
	for _, ch := range e.channels {
		ch.dismiss(p, known)
	}
}

// dismissLost is dismiss for every peer that was lost before ch was made.
func (ch *Channel) dismissLost() {
	for _, page := range ch.e.peers {
		for _, p := range page {
			if p != nil && p.lost != nil {
				ch.dismiss(p, false)
			}
		}
	}
}

// dismiss ends operations that wait for a lost peer. If the peer left in good order, only
// receives and collectives that need it fail. If it crashed or was cut off, the communicator
// breaks for all members.
func (ch *Channel) dismiss(p *peer, known bool) {
	src := ch.member(p.rank)
	if src < 0 || ch.err != nil || p.rank == ch.e.cfg.Rank {
		return
	}
	if !errors.Is(p.lost, ErrLeft) {
		v := revokeReason{rank: p.rank, cause: "is lost: " + p.lost.Error()}
		if known {
			ch.failBecause(v)
		} else {
			ch.breakUp(v)
		}
		return
	}
	ch.depart(p)
}

// depart ends operations on ch that wait for a member that has left in good order.
func (ch *Channel) depart(p *peer) {
	e, src := ch.e, ch.member(p.rank)
	for n := range ch.q.Arrived() {
		if m := n.Val; m.p == p && m.kind == transport.RTS { // its payload will not come
			ch.q.Remove(n)
			e.drop(m)
		}
	}
	ch.q.DropSource(src, func(n *match.Recv[Request]) { e.finish(n.Val, ErrLeft) })
	for i := range e.slots.list {
		r := e.slots.list[i].r
		if r != nil && r.ch == ch && r.peer == p.rank && r.round == nil && (r.halfway() || r.stage == queued) {
			e.abandon(r, ErrLeft)
		}
	}
	for _, w := range ch.probes {
		e.rouse(w)
	}
	ch.round.dismiss(p)
	ch.flagWait.dismiss(p)
	if ch.alone() {
		ch.dismissWildcards()
	}
	ch.askAwaited()
}

// dismissWildcards ends receives from anybody when all other members have left. Those from this
// rank itself go on: it may still send.
func (ch *Channel) dismissWildcards() {
	for n := range ch.q.Posted() {
		if n.Source == Any {
			ch.q.Cancel(n)
			ch.e.finish(n.Val, ErrLeft)
		}
	}
}

// alone reports whether there were other members and all have left.
func (ch *Channel) alone() bool {
	if ch.e.lost == 0 && len(ch.leavers.left) == 0 || ch.size == 1 {
		return false
	}
	for r := range ch.size {
		if r != ch.rank && ch.gone(r) == nil {
			return false
		}
	}
	return true
}

// drainPolls is how many polls are enough to read all frames of ranks that have left: a full
// ring takes half as many. Later frames come from ranks that go on sending.
const drainPolls = 1024

// dismissLeft looks in the host segment for ranks that have left without telling this one, as
// ranks do that never connected to it. It reads their frames first.
func (e *Engine) dismissLeft() {
	var left []world.Rank
	for _, ch := range e.channels {
		for src := range ch.awaited() {
			if w := ch.World(src); w != e.cfg.Rank && e.gone(w) == nil && e.cfg.Left(w) {
				left = append(left, w)
			}
		}
	}
	if left == nil {
		return
	}
	e.drain()
	for _, w := range left {
		e.Lost(w, transport.ErrGone)
	}
}

// drain reads the frames that have arrived from all ranks.
func (e *Engine) drain() {
	for polls := 0; e.Poll(world.None) > 0 && polls < drainPolls; polls++ {
	}
}

// news handles news of the launcher.
func (e *Engine) news() int {
	events := e.cfg.Boot.Events()
	for _, ev := range events {
		switch ev.Kind {
		case boot.Died:
			e.ended(ev.Rank, transport.ErrCut)
			e.lose(ev.Rank, fmt.Errorf("%s", ev.Text), true)
			if e.cfg.Died != nil {
				e.cfg.Died(ev.Rank)
			}
		case boot.Left:
			e.ended(ev.Rank, transport.ErrGone)
			if e.isSuspect(e.peer(ev.Rank)) {
				e.lose(ev.Rank, ErrLeft, false)
			}
		case boot.Revoked:
			e.revoke(ev.Rank, ev.Comm, ev.Text)
		case boot.Agreed:
			e.agreed(ev.Outcome)
		case boot.Terminate, boot.Gone:
			e.jobEnding, e.ending = true, string(ev.Text)
			e.endBallots()
			e.failAll(fmt.Sprintf("the job ends: %s", ev.Text))
		}
	}
	return len(events)
}

// ended tells the transport to a rank that its process has ended, and how.
func (e *Engine) ended(rank world.Rank, err error) {
	if t, ok := e.peer(rank).tr.(transport.DeathObserver); ok {
		t.Ended(rank, err)
	}
}

// HearsLate reports whether a transport may not notice that a rank leaves.
func (e *Engine) HearsLate() bool { return e.hearsLate }

// Silent implements transport.SilenceSink: the rank may have left before anything was sent to it.
func (e *Engine) Silent(rank world.Rank) {
	if e.cfg.Boot != nil {
		e.cfg.Boot.Inquire(rank) // if the launcher is gone, that is news, too
	}
}

// News makes the engine look for news from the launcher.
func (e *Engine) News() { e.news() }

// revoke breaks a communicator because another rank broke it. The reason comes from that rank
// and from the launcher; the first one counts.
func (e *Engine) revoke(from world.Rank, comm uint64, text []byte) {
	v, err := decodeRevokeReason(text)
	if err == nil && (v.rank < 0 || int(v.rank) >= e.cfg.Size) {
		err = fmt.Errorf("it blames rank %d of %d", v.rank, e.cfg.Size)
	}
	if err != nil {
		e.cfg.Log.Warn("revocation cannot be read", "from", from, "err", err)
		v = revokeReason{rank: from, cause: "revoked it"}
	}
	switch ch := e.named(comm); {
	case ch == nil && e.closed.has(comm):
	case ch == nil:
		e.revoked.add(comm, v)
		e.dropEarly(comm)
	case ch.ID == comm:
		ch.failBecause(v)
	default: // a member has withdrawn, which does not know the id
		ch.breakUp(v)
	}
}

// dropEarly drops the frames for a communicator that does not exist here, and is broken.
func (e *Engine) dropEarly(comm uint64) {
	for _, m := range e.early[comm] {
		e.drop(m)
	}
	delete(e.early, comm)
}

// revokedBy is revoke for a peer's frame, which may come before the launcher's news. This rank
// may end because of it, and the other ranks must not hear of this rank's end first.
func (e *Engine) revokedBy(m *message) {
	if ch := e.channels[m.comm]; ch != nil && ch.err == nil {
		e.report(m.comm, m.data)
	}
	e.revoke(m.p.rank, m.comm, m.data)
}

func (e *Engine) failAll(cause string) {
	for _, ch := range e.channels {
		ch.fail(&RevokedError{Rank: -1, Cause: cause})
	}
}
