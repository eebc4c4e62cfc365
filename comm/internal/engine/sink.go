package engine

import (
	"errors"
	"fmt"
	"time"

	"gompi/comm/internal/match"
	"gompi/internal/boot"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file is what transports deliver to. All of it runs inside poll, or
// inside a Send, with the lock held.

var (
	_ transport.Sink  = (*Engine)(nil)
	_ transport.Taker = (*Engine)(nil)
)

// Arrive implements transport.Sink.
func (e *Engine) Arrive(from int, h *transport.Header) (mem.Buffer, uint64) {
	p := e.peer(from)
	switch h.Kind {
	case transport.Credit:
		e.credited(p, h)
		return mem.Buffer{}, 0
	case transport.Clear:
		e.cleared(p, h)
		return mem.Buffer{}, 0
	case transport.Data:
		return e.data(p, h)
	case transport.Done:
		e.done(p, h.A)
		return mem.Buffer{}, 0
	case transport.Revoke:
		if h.Len > maxVerdict {
			return mem.Buffer{}, 0
		}
		m := e.newMessage()
		m.kind, m.p, m.comm, m.size = h.Kind, p, h.Comm, int(h.Len)
		return e.hold(m)
	}
	ch := e.channel(h.Comm)
	if ch == nil && !e.closed.in[h.Comm] || ch != nil && ch.err == nil && ch.member(from) >= 0 {
		return e.deliver(ch, p, h)
	}
	if h.Kind == transport.Eager && h.Len <= budget { // for a broken or closed communicator
		e.letGo(p, int(h.Len))
	}
	return mem.Buffer{}, 0
}

// Take implements transport.Taker: an eager message goes straight into a receive
// that waits for it.
func (e *Engine) Take(from int, h *transport.Header, payload []byte) bool {
	if h.Kind != transport.Eager {
		return false
	}
	ch := e.channel(h.Comm)
	if ch == nil || ch.err != nil {
		return false
	}
	src := ch.member(from)
	if src < 0 {
		return false
	}
	n := ch.q.Meet(src, int(h.Tag))
	if n == nil {
		return false
	}
	r := n.Val
	r.peer = from
	r.matched(src, int(h.Tag), len(payload), mem.Type(h.Flags))
	e.letGo(e.peer(from), len(payload))
	var err error
	switch {
	case len(payload) == 0 || errors.Is(r.err, ErrType):
	case r.lands(len(payload)):
		data := e.scratch.get(len(payload))
		e.land(r, data, copy(data, payload))
		return true
	default:
		err = r.store(payload)
	}
	e.finish(r, err)
	return true
}

// Wants implements transport.Taker.
func (e *Engine) Wants(from int) bool {
	ch := e.latest
	if ch == nil {
		return false
	}
	src := ch.member(from)
	return src >= 0 && ch.q.Awaits(src)
}

// unasked bounds the payload that a frame may bring without a receive being
// posted for it: what the sender's side of the budget lets through.
func unasked(k transport.Kind) int64 {
	switch k {
	case transport.Eager:
		return budget
	case transport.Coll:
		return roundEager
	}
	return 0
}

// deliver hands a frame to its Channel, nil if that does not exist yet.
func (e *Engine) deliver(ch *Channel, p *peer, h *transport.Header) (mem.Buffer, uint64) {
	if h.Len > unasked(h.Kind) && (ch == nil || h.Kind != transport.Coll) {
		e.lose(p.rank, fmt.Errorf("%w: %v frame of %d bytes", transport.ErrProtocol, h.Kind, h.Len), false)
		return mem.Buffer{}, 0
	}
	m := e.newMessage()
	m.kind, m.p, m.tag, m.typ = h.Kind, p, int(h.Tag), mem.Type(h.Flags)
	m.seq, m.call, m.size = h.Seq, CallOf(h.A, h.B), int(h.Len)
	if h.Kind == transport.Announce {
		m.size, m.offer, m.place, m.ready = int(min(h.A, transport.MaxPayload)), h.B, h.Seq, true
	}
	if ch == nil {
		e.orphans[h.Comm] = append(e.orphans[h.Comm], m) // payload is within the sender's budget
		if h.Len == 0 {                                  // and that of an announced message is not here
			m.ready = true
			return mem.Buffer{}, 0
		}
		return e.hold(m)
	}
	m.src = ch.member(p.rank)
	var r *Request
	kept := true
	switch h.Kind {
	case transport.Eager:
		r = ch.receiver(m)
	case transport.Coll:
		r, kept = ch.round.receiver(m)
	case transport.Announce:
		ch.arrived(m)
		return mem.Buffer{}, 0
	default:
		ch.round.told(m)
		return mem.Buffer{}, 0
	}
	switch {
	case r != nil:
		e.freeMessage(m)
		return e.fill(r, int(h.Len))
	case kept:
		return e.hold(m)
	}
	m.ready = true // nothing was begun that the transport would have to forget
	e.drop(m)
	return mem.Buffer{}, 0
}

// receiver returns the posted receive that the eager message m matches, or
// queues m and returns nil.
func (ch *Channel) receiver(m *message) *Request {
	n := ch.q.Arrive(m.envelope())
	if n == nil {
		for _, w := range ch.probes {
			ch.e.rouse(w)
		}
		return nil
	}
	r := n.Val
	r.matched(m.src, m.tag, m.size, m.typ)
	r.peer = m.p.rank
	ch.e.letGo(m.p, m.size)
	return r
}

// fill begins to receive n bytes of payload into r.
func (e *Engine) fill(r *Request, n int) (mem.Buffer, uint64) {
	r.stage, r.until = filling, r.got+n
	if r.lands(n) && r.ferry == nil {
		e.land(r, e.scratch.get(n), 0)
	}
	if f := r.ferry; f != nil {
		return f.arrives(n), e.stamp(r)
	}
	if r.combine != nil && n > 0 {
		r.combine.piece = e.scratch.get(min(n, pieceSize))
	}
	w := r.window()
	if w.Len() == 0 || errors.Is(r.err, ErrType) {
		e.finish(r, nil)
		return mem.Buffer{}, 0
	}
	return w, e.stamp(r)
}

// Filled implements transport.Sink.
func (e *Engine) Filled(token uint64) mem.Buffer {
	r, m := e.slots.get(token)
	switch {
	case r != nil && r.stage == filling && r.ferry != nil:
		return r.ferry.filled()
	case r != nil && r.stage == filling:
		done, err := r.filled()
		if !done {
			return r.window()
		}
		e.putPiece(r)
		e.finish(r, err)
	case m != nil:
		e.slots.release(m.token)
		m.token, m.ready = 0, true
		switch {
		case m.kind == transport.Revoke:
			e.revoke(m.p.rank, m.comm, m.data)
			e.freeMessage(m)
		case m.taken != nil:
			m.taken.ch.consume(m.taken, m)
		}
	}
	return mem.Buffer{}
}

func (e *Engine) putPiece(r *Request) {
	if r.combine != nil && r.combine.piece != nil {
		e.scratch.put(r.combine.piece)
		r.combine.piece = nil
	}
}

// cleared handles the request for the payload of an announced message, or for more of
// it.
func (e *Engine) cleared(p *peer, h *transport.Header) {
	r, _ := e.slots.get(h.A)
	if r == nil || r.stage != announced || r.peer != p.rank {
		return // withdrawn in the meantime
	}
	r.other, r.place, r.wanted = h.B, h.Seq, true
	if h.Tag > 0 {
		r.asked = min(r.asked+int(h.Tag)*PieceSize, r.size)
	} else {
		r.asked = r.size
	}
	if !r.later {
		e.answer(p, r)
	}
}

// answer sends what was asked for of an announced message, or stores it at the place
// that the receiver has told.
func (e *Engine) answer(p *peer, r *Request) {
	switch {
	case r.ferry != nil:
		r.ferry.push()
		r.ferry.prod()
	case !r.buf.IsHost():
		e.embark(r, true)
	case r.place != 0 && p.direct != nil:
		r.stage = storing
		p.direct.Put(p.rank, r.place, r.buf.Raw(), r.token)
	default:
		e.supply(p, r)
	}
}

// supply sends what was asked for of an announced message.
func (e *Engine) supply(p *peer, r *Request) {
	part := r.buf.Raw().Slice(r.got, r.asked)
	if r.got = r.asked; r.got == r.size {
		r.stage = leaving
	}
	e.h = transport.Header{Kind: transport.Data, A: r.other}
	if e.give(p, r, part); r.left() {
		e.finish(r, nil)
	}
}

// left reports whether all of a send has left.
func (r *Request) left() bool { return r.stage == leaving && r.due == 0 }

// data handles payload of an announced message.
func (e *Engine) data(p *peer, h *transport.Header) (mem.Buffer, uint64) {
	r, _ := e.slots.get(h.A)
	if r == nil || r.stage != filling || r.peer != p.rank || h.Len > int64(r.expected()) || h.Len == 0 && r.size > 0 {
		return mem.Buffer{}, 0 // nobody waits for it any more
	}
	return e.fill(r, int(h.Len))
}

// expected returns how many bytes of a receive were asked for and have not come.
func (r *Request) expected() int {
	if f := r.ferry; f != nil {
		return r.asked - f.moved
	}
	return r.asked - r.got
}

// Sent implements transport.Sink.
func (e *Engine) Sent(token uint64, err error) {
	r, _ := e.slots.get(token)
	if r != nil && (r.stage == fetching || r.stage == storing) && e.copied(r, err) {
		return
	}
	if err != nil && r != nil {
		err = e.reason(e.peer(r.peer), err)
	}
	switch {
	case r == nil || r.due == 0 && r.stage != fetching && r.stage != storing:
	case err != nil && r.round != nil:
		r.stage = queued // the transport has let go of it
		r.ch.miss(e.peer(r.peer), err, r.round.call)
	default:
		if r.due--; r.ferry != nil {
			r.ferry.returned()
		}
		if err != nil || r.left() && r.ferry == nil {
			e.finish(r, err)
		}
	}
}

// Lost implements transport.Sink.
func (e *Engine) Lost(rank int, err error) { e.lose(rank, e.reason(e.peer(rank), err), false) }

// verdictTime is how long the loss of a peer waits for the launcher to say how
// the peer ended. A killed process is reaped within milliseconds of its
// connections' end; a cut network has no such news to wait for.
const verdictTime = 500 * time.Millisecond

// reason returns why a transport failed with p. What the launcher knows of p
// counts more, and is waited for, with all else at rest: then every rank gives
// the true reason, and none can end because of a death that the launcher has not
// heard of yet, and be taken for the first to fail.
func (e *Engine) reason(p *peer, err error) error {
	if b := e.cfg.Boot; b != nil && p.lost == nil {
		if b.Pending() {
			e.news()
		}
		if errors.Is(err, transport.ErrCut) || errors.Is(err, transport.ErrUnreachable) {
			e.awaitNews(p, time.Now().Add(verdictTime))
		}
	}
	switch {
	case p.lost != nil:
		return p.lost
	case errors.Is(err, transport.ErrGone):
		return ErrLeft
	}
	return err
}

// fateTime is how long a collective that misses a peer which has left waits for
// the launcher to say that the peer's process has failed, as it has if it left
// because of an error.
const fateTime = 200 * time.Millisecond

// awaitFate returns how the process of a peer that has left ended, nil if that
// is not known soon.
func (e *Engine) awaitFate(p *peer) error {
	deadline := time.Now().Add(fateTime)
	for p.fate == nil && !e.doomed && e.cfg.Boot != nil && e.cfg.Boot.Await(time.Until(deadline)) {
		e.news()
	}
	return p.fate
}

// awaitNews waits until the launcher has told that p is lost, that the job ends,
// or nothing.
func (e *Engine) awaitNews(p *peer, deadline time.Time) {
	for p.lost == nil && !e.doomed && e.cfg.Boot.Await(time.Until(deadline)) {
		e.news()
	}
}

// lose handles the loss of a peer, of which the first reason counts. known says
// that the launcher tells it to all ranks.
func (e *Engine) lose(rank int, err error, known bool) {
	p := e.peer(rank)
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

// dismiss ends what waits for a lost peer. One that left in good order can
// still be missed by a receive or a collective; one that crashed or was cut off
// breaks the communicator, for all its members.
func (ch *Channel) dismiss(p *peer, known bool) {
	src := ch.member(p.rank)
	if src < 0 || ch.err != nil || p.rank == ch.e.cfg.Rank {
		return
	}
	if !errors.Is(p.lost, ErrLeft) {
		v := verdict{rank: p.rank, cause: "is lost: " + p.lost.Error()}
		if known {
			ch.fail(ch.verdict(v))
		} else {
			ch.breakUp(v)
		}
		return
	}
	e := ch.e
	for n := range ch.q.Arrived() {
		if m := n.Val; m.p == p && m.kind == transport.Announce { // its payload will not come
			ch.q.Remove(n)
			e.drop(m)
		}
	}
	ch.q.DropSource(src, func(n *match.Recv[Request]) { e.finish(n.Val, p.lost) })
	for i := range e.slots.list {
		r := e.slots.list[i].r
		if r != nil && r.ch == ch && r.peer == p.rank && r.round == nil && (r.stage == announced || r.stage == filling || r.stage == fetching) {
			e.abandon(r, p.lost)
		}
	}
	for _, w := range ch.probes {
		e.rouse(w)
	}
	ch.round.dismiss(p)
	ch.vigil.dismiss(p)
	if ch.alone() {
		ch.cancelPosted(p.lost)
	}
}

// alone reports whether there were other members and all have left.
func (ch *Channel) alone() bool {
	if ch.e.lost == 0 || ch.size == 1 {
		return false
	}
	for r := range ch.size {
		if w := ch.World(r); r != ch.rank && ch.e.gone(w) == nil {
			return false
		}
	}
	return true
}

// dismissLeft asks the host segment which ranks have left without a word to
// us, as they do if no connection was ever made. What they have sent is read
// first.
func (e *Engine) dismissLeft() {
	var left []int
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
	for e.poll(-1) > 0 {
	}
	for _, w := range left {
		e.Lost(w, transport.ErrGone)
	}
}

// news handles what came down from the launcher.
func (e *Engine) news() int {
	events := e.cfg.Boot.Events()
	for _, ev := range events {
		switch ev.Kind {
		case boot.Died:
			e.lose(ev.Rank, fmt.Errorf("%s", ev.Text), true)
		case boot.Revoked:
			e.revoke(ev.Rank, ev.Comm, ev.Text)
		case boot.Terminate, boot.Gone:
			e.doomed = true
			e.failAll(fmt.Sprintf("the job ends: %s", ev.Text))
		}
	}
	return len(events)
}

// News makes the engine look for news from the launcher.
func (e *Engine) News() { e.news() }

// revoke breaks a communicator as another rank said, directly or by way of the
// launcher: whichever comes first.
func (e *Engine) revoke(from int, comm uint64, text []byte) {
	v, err := decodeVerdict(text)
	if err == nil && (v.rank < 0 || v.rank >= e.cfg.Size) {
		err = fmt.Errorf("it blames rank %d of %d", v.rank, e.cfg.Size)
	}
	if err != nil {
		e.cfg.Log.Warn("revocation cannot be read", "from", from, "err", err)
		v = verdict{rank: from, cause: "revoked it"}
	}
	ch := e.channels[comm]
	switch {
	case ch != nil:
		ch.fail(ch.verdict(v))
	case !e.closed.in[comm]:
		e.revoked[comm] = v
	}
}

func (e *Engine) failAll(cause string) {
	for _, ch := range e.channels {
		ch.fail(&RevokedError{Rank: -1, Cause: cause})
	}
}
