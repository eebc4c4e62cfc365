package message

import (
	"context"

	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// Any matches every source or tag.
const Any = -1

// This file has the calls and the sends; pairing.go goes on after a receive and a message match.

// Send sends b and waits until b may be reused. If ctx has ended already, Send sends nothing.
func (ch *Channel) Send(ctx context.Context, dst, tag int, b mem.Buffer, sync bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := ch.Engine
	e.Progress.Lock()
	if !sync && ch.sendNow(dst, tag, b) {
		e.Progress.Unlock() // the driver is the same as before
		return nil
	}
	defer e.ExitPolling()
	r := e.newRequest()
	defer e.FreeRequest(r)
	ch.start(r, dst, tag, b, sync)
	return ch.waitBlocking(ctx, r)
}

// sendNow sends an eager message without a Request, and reports whether the message has left.
func (ch *Channel) sendNow(dst, tag int, b mem.Buffer) bool {
	if dst == ch.Rank() || ch.Broken() != nil || !b.IsHost() && !fitsRoom(b) {
		return false
	}
	e, size := ch.Engine, b.Size()
	p := e.Peers.Peer(ch.World(dst))
	if p.Lost != nil || ch.Left(dst) || !ch.eager(p, b) {
		return false
	}
	e.h = transport.Header{Kind: transport.Eager, Tag: int32(tag), Comm: ch.ID, Flags: uint8(b.Type())}
	if b.IsScattered() {
		packed := e.roomFor(b)
		if !p.Inline() || mem.Copy(packed, b) != nil {
			return false
		}
		b = packed
	}
	if !p.SendNow(&e.h, b.Raw()) {
		return false
	}
	p.Credit.Spend(peers.Cost(size))
	return true
}

// fitsRoom reports whether b is scattered and fits the memory of roomFor, and so needs no Request.
func fitsRoom(b mem.Buffer) bool { return b.IsScattered() && b.Size() <= roomBytes }

const roomBytes = 2 << 10

// roomFor returns memory for b's packed bytes, until the next call.
func (e *Engine) roomFor(b mem.Buffer) mem.Buffer { return mem.Bytes(e.packed[:b.Size()]) }

// eager reports whether a message to p may be sent eagerly: short, with credit, not read sooner.
func (ch *Channel) eager(p *peers.Peer, b mem.Buffer) bool {
	e, size := ch.Engine, b.Size()
	return size <= e.cfg.Eager && p.Credit.Covers(peers.Cost(size), e.room.Credit) &&
		!(e.cfg.ReadsSooner && e.Mover.IsRead(p, b))
}

// Recv receives a message from src with tag, either of which may be Any, into b. If ctx has ended
// already, Recv matches nothing.
func (ch *Channel) Recv(ctx context.Context, src, tag int, b mem.Buffer) (Status, error) {
	ch.Engine.Progress.Lock()
	defer ch.Engine.ExitPolling()
	return ch.recv(ctx, src, tag, b)
}

func (ch *Channel) recv(ctx context.Context, src, tag int, b mem.Buffer) (Status, error) {
	e := ch.Engine
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	st, look := ch.recvNow(src, tag, b, min(e.Progress.Spin(), briefly))
	if look == transport.Whole {
		return st, nil
	}
	r := e.newRequest()
	defer e.FreeRequest(r)
	ch.await(r, look, st, src, tag, b)
	err := ch.waitBlocking(ctx, r)
	return r.status, err
}

// briefly is the number of looks for its message of a receive before it is queued: a reply inside a
// host arrives during these (latency of 8 bytes: 0.13 us, 0.17 if queued at once).
const briefly = 200

// recvNow receives an eager message if it is the next frame from src. recvNow looks up to looks
// times, at least once, while there is no frame. This is the fast path, which neither queues nor
// polls: no earlier receive may match the message, and no other goroutine may drive.
func (ch *Channel) recvNow(src, tag int, b mem.Buffer, looks int) (Status, transport.Look) {
	e := ch.Engine
	if src < 0 || ch.Broken() != nil || e.Progress.Driven() || !b.IsHost() && !fitsRoom(b) || !ch.q.Idle(src) {
		return nothing, transport.Nothing
	}
	p := e.Peers.Peer(ch.World(src))
	if !p.Inline() {
		return nothing, transport.Nothing
	}
	e.h = transport.Header{Kind: transport.Eager, Tag: int32(tag), Comm: ch.ID, Flags: uint8(b.Type())}
	into := b
	if b.IsScattered() {
		into = e.roomFor(b)
	}
	look := p.RecvNow(&e.h, into)
	for look < transport.Begun {
		if looks--; looks <= 0 || look == transport.Other || e.Progress.Wanted() {
			return nothing, look
		}
		look = p.RecvNow(&e.h, into)
	}
	st := Status{Source: src, Tag: int(e.h.Tag), Bytes: int(e.h.Len), Type: b.Type()}
	if b.IsScattered() {
		if err := mem.Copy(b.Raw().Slice(0, st.Bytes), into.Slice(0, st.Bytes)); err != nil {
			panic(err) // of lengths that differ, which do not
		}
	}
	e.room.ReturnCredit(p, st.Bytes)
	return st, look
}

// await makes r the receive of a message, which recvNow may have begun.
func (ch *Channel) await(r *Request, look transport.Look, st Status, src, tag int, b mem.Buffer) {
	if look != transport.Begun {
		ch.expect(r, src, tag, b)
		return
	}
	r.Settle()
	r.begin(ch, payload.Filling, b, ch.World(src), st.Tag)
	r.Peer, r.Size, r.status = ch.Engine.Peers.Peer(r.peer), st.Bytes, st
	r.Arrives(st.Bytes)
	r.Peer.Continue(ch.Engine.Stamp(r))
}

// Sendrecv sends out and receives in at the same time, as Send and Recv do.
func (ch *Channel) Sendrecv(
	ctx context.Context, dst, sendTag int, out mem.Buffer, src, recvTag int, in mem.Buffer,
) (Status, error) {
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	e := ch.Engine
	e.Progress.Lock()
	defer e.ExitPolling()
	if ch.sendNow(dst, sendTag, out) {
		return ch.recv(ctx, src, recvTag, in)
	}
	s := e.newRequest()
	defer e.FreeRequest(s)
	ch.start(s, dst, sendTag, out, false)
	st, err := ch.recv(ctx, src, recvTag, in)
	if sent := ch.waitBlocking(ctx, s); err == nil {
		err = sent
	}
	return st, err
}

// Isend starts a send; the Handle is done when b may be reused.
func (ch *Channel) Isend(dst, tag int, b mem.Buffer, sync bool) Handle {
	e := ch.Engine
	e.Progress.Lock()
	if !sync && !payload.Raced && ch.sendNow(dst, tag, b) {
		e.Progress.Unlock() // the driver is the same as before
		return Handle{}
	}
	defer e.Progress.Exit()
	r := e.open()
	ch.start(r, dst, tag, b, sync)
	e.outstanding(r)
	return r.handle()
}

// Irecv starts a receive, on the fast path if possible (bw of 8 bytes inside a host: 0.10 us a
// message without, 0.08 with the fast path).
func (ch *Channel) Irecv(src, tag int, b mem.Buffer) Handle {
	e := ch.Engine
	e.Progress.Lock()
	r := e.open()
	st, look := ch.look(src, tag, b)
	if look == transport.Whole {
		h := r.end(st)
		r.Pend(b, true)
		if e.Peers.Pending() {
			e.Progress.PassDrive()
		}
		e.Progress.Unlock() // else the driver is the same as before
		return h
	}
	h := r.handle()
	r.Pend(b, true)
	ch.await(r, look, st, src, tag, b)
	e.outstanding(r)
	if e.Progress.Driven() && r.Stage == payload.Posted {
		e.Progress.Unlock() // nothing was sent or polled, so a driver that sleeps need not be armed anew
	} else {
		e.Progress.Exit()
	}
	return h
}

// pauses is the number of Irecvs that skip the fast path after one that has found no message. A
// reader that looks again at once takes cache lines from the writer; a later reader finds several
// messages (bw inside a host: 256 B 0.11 us without pauses, 0.09 with; 4 KiB 0.23 and 0.17).
const pauses = 16

// look is recvNow for Irecv. It first polls if earlier receives wait for messages of src, since
// these match first, but only InlineSenders: a look at a socket costs a system call.
func (ch *Channel) look(src, tag int, b mem.Buffer) (Status, transport.Look) {
	e := ch.Engine
	if e.pause > 0 {
		e.pause--
		return nothing, transport.Nothing
	}
	if src >= 0 && !e.Progress.Driven() && ch.q.Awaits(src) {
		if p := e.Peers.Peer(ch.World(src)); p.Inline() {
			p.Poll()
		}
	}
	st, look := ch.recvNow(src, tag, b, 1)
	if look < transport.Begun {
		e.pause = pauses
	}
	return st, look
}

// waitBlocking waits for a request of a blocking call, and gives the request up when ctx ends.
func (ch *Channel) waitBlocking(ctx context.Context, r *Request) error {
	if ctx.Err() == nil && ch.Engine.spin(ctx, r) {
		return r.err
	}
	if err := ch.Engine.wait(ctx, r); err != nil {
		ch.giveUp(ctx, r, err)
	}
	return r.err
}

// Cancel withdraws a receive that has not matched, and reports whether it did.
func (ch *Channel) Cancel(h Handle, cause error) bool {
	ch.Engine.Progress.Lock()
	defer ch.Engine.Progress.Exit()
	r := h.live()
	if r != nil && r.via != (Handle{}) {
		r = r.via.live()
	}
	if r == nil || r.Stage != payload.Posted {
		return false
	}
	ch.withdraw(r, cause)
	r.Settle()
	return true
}

// start begins a send.
func (ch *Channel) start(r *Request, dst, tag int, b mem.Buffer, sync bool) {
	e, w := ch.Engine, ch.World(dst)
	if b.Size() == 0 && !b.IsHost() { // there is nothing to wait for a device for
		b = mem.HostLike(b, 0, nil)
	}
	r.begin(ch, payload.Leaving, b, w, tag)
	r.Size, r.sync = b.Size(), sync
	if dst == ch.Rank() {
		ch.startLocal(r)
		return
	}
	p := e.Peers.Peer(w)
	r.Peer = p
	if err := ch.Usable(p); err != nil {
		e.Finish(r, err)
		return
	}
	e.h = transport.Header{Tag: int32(tag), Comm: ch.ID, Flags: uint8(b.Type())}
	short := !sync && !b.OnDevice() && r.Size <= e.cfg.Eager
	if !short || !ch.eager(p, b) {
		r.Stage = payload.Announced
		if r.starved = short; r.starved {
			e.h.Flags |= transport.Short
		}
		e.h.Kind, e.h.A, e.h.B, e.h.Seq = transport.RTS, uint64(r.Size), e.Stamp(r), r.Source()
		p.Post(&e.h, mem.Buffer{}, 0)
		return
	}
	if b.IsScattered() {
		b = r.Pack()
	}
	p.Credit.Spend(peers.Cost(r.Size))
	e.h.Kind = transport.Eager
	if p.SendNow(&e.h, b.Raw()) || e.Give(r, &e.h) {
		e.Finish(r, nil)
	}
}

// startLocal begins a send to this rank itself: as an eager message that is copied twice, or,
// when large or synchronous, left in place until received.
func (ch *Channel) startLocal(r *Request) {
	e := ch.Engine
	if ch.Broken() != nil {
		e.Finish(r, ch.Broken())
		return
	}
	m := e.newMessage()
	m.Src, m.Tag, m.Type, m.Size, m.ready = ch.Rank(), r.tag, r.Buf.Type(), r.Size, true
	if r.sync || r.Size > e.cfg.Eager || r.Buf.OnDevice() {
		r.Stage = payload.Announced
		m.Kind, m.local, m.Offer = transport.RTS, true, e.Stamp(r)
		ch.arrived(m)
		return
	}
	m.Kind = transport.Eager
	if m.Size > 0 {
		m.data = e.Mover.Scratch.Get(m.Size)
		if err := mem.Copy(mem.Bytes(m.data), r.Buf.Raw()); err != nil {
			e.freeMessage(m)
			e.Finish(r, err)
			return
		}
	}
	ch.arrived(m)
	e.Finish(r, nil)
}

// Give sends r's payload in a frame with h, and reports whether the buffer may be reused; if not,
// Sent follows.
func (e *Engine) Give(r *Request, h *transport.Header) bool {
	e.Stamp(r)
	return r.Give(h, r.Buf.Raw())
}
