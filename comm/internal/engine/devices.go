package engine

import (
	"errors"
	"fmt"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/payload"
	"gompi/comm/internal/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file connects Requests whose buffers are in the memory of devices with the Copies that load
// or store them (package payload). It makes no difference to the peer.

var _ payload.Message = (*Request)(nil)

// toDevice reports whether some of n bytes of a message go to memory that the processor does not
// reach.
func (r *Request) toDevice(n int) bool {
	return !r.buf.IsHost() && n > 0 && r.buf.Size() > 0 && !errors.Is(r.err, ErrType)
}

// requestData tells p, which waits to send the payload of r, to do so.
func (e *Engine) requestData(p *peers.Peer, r *Request) {
	r.stage = filling
	if !r.toDevice(r.size) {
		e.clear(p, r, 0)
		return
	}
	e.copies(r, e.devices.Store(r, r.buf.Raw(), r.size))
}

// load begins to copy r's payload from the device.
func (e *Engine) load(r *Request) { e.copies(r, e.devices.Load(r, r.buf.Raw(), r.asked)) }

// storeEager copies an eager message into r: arrived bytes of it are in data, the rest will be.
func (e *Engine) storeEager(r *Request, data []byte, arrived int) {
	r.stage = filling
	e.copies(r, e.devices.StoreEager(r, r.buf.Raw(), r.size, data, arrived))
}

func (e *Engine) copies(r *Request, c *payload.Copy) {
	r.copy = c
	r.ch.copies.Add(1)
	e.stamp(r) // so that it is found when the Channel breaks
}

// localCopy copies a message of n bytes from this rank to itself, s to r. At least one of the two
// is in a device's memory.
func (e *Engine) localCopy(r, s *Request, n int) {
	r.ch.copies.Add(1)
	r.stage, s.stage = landing, leaving
	r.copy = e.devices.Between(r.buf.Raw(), s.buf.Raw(), n, func(err error) {
		r.copy, s.copy = nil, nil
		r.ch.copies.Done()
		e.finish(s, err)
		e.finish(r, err)
	})
	s.copy = r.copy
}

// Send implements payload.Message.
func (r *Request) Send(chunk mem.Buffer, last bool) bool {
	if last {
		r.stage = leaving
	}
	e := r.ch.e
	return e.give(e.peers.Peer(r.peer), r, transport.Header{Kind: transport.Data, A: r.other}, chunk)
}

// Ask implements payload.Message.
func (r *Request) Ask(chunks int) {
	e := r.ch.e
	e.peers.Peer(r.peer).Tell(transport.Header{Kind: transport.CTS, A: r.other, B: e.stamp(r), Tag: int32(chunks)})
}

// Arrived implements payload.Message.
func (r *Request) Arrived() { r.stage = landing }

// MayStore implements payload.Message: a receive stores over a send of the same round only what
// that has loaded.
func (r *Request) MayStore(n int) bool {
	s := r.before
	return s == nil || s.stage == complete || s.copy != nil && s.copy.HasLoaded(n)
}

// Loaded implements payload.Message.
func (r *Request) Loaded() {
	if r.after != nil && r.after.copy != nil {
		r.after.copy.Again()
	}
}

// Copied implements payload.Message. If the device has failed, the peer waits in vain, so the
// communicator breaks.
func (r *Request) Copied(err error) {
	ch, waits := r.ch, !r.copy.Eager()
	if err != nil {
		ch.e.stopCopy(r, err)
	}
	r.copy = nil
	ch.copies.Done()
	ch.e.finish(r, nil)
	if err != nil && waits {
		ch.BreakUp(liveness.Reason{Rank: ch.e.cfg.Rank, Cause: fmt.Sprintf("failed on a message under way: %v", err)})
	}
}

// stopCopy makes r fail with err as soon as its Copy has ended.
func (e *Engine) stopCopy(r *Request, err error) {
	if r.err == nil {
		r.err = err
	}
	e.forget(r)
	r.copy.Stop()
}

// forget makes the transport forget r's memory.
func (e *Engine) forget(r *Request) {
	if r.token == 0 {
		return
	}
	if r.peer >= 0 {
		e.peers.Peer(r.peer).Forget(r.token)
	}
	e.slots.release(r.token)
	r.token = 0
}
