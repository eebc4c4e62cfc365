package tcp

import (
	"golang.org/x/sys/unix"

	"gompi/internal/sockets"
	"gompi/internal/world"
	"gompi/transport"
)

// Close implements transport.Transport. A socket is closed only when all its data has arrived.
// Otherwise further data of the peer would make this kernel answer with a reset, and the last
// frames, with the goodbye at their end, would be lost.
func (t *Transport) Close(force bool) bool {
	if t.closed {
		return true
	}
	if !t.closing {
		t.closing = true
		for _, p := range t.peers {
			if p != nil {
				p.in.Abandon()
			}
		}
	}
	t.Poll(world.None)
	done := true
	t.lingering = false
	for _, p := range t.peers {
		if p != nil && !t.finish(p) {
			done = false
		}
	}
	if !done && !force {
		return false
	}
	t.release()
	return true
}

// finish reports whether all frames for p have arrived there.
func (t *Transport) finish(p *peer) bool {
	switch {
	case p.lost:
		return true
	case p.conn == nil:
		if p.out.Empty() {
			return true
		}
		t.want(p)
		return false
	case !p.bye:
		p.bye = true
		t.enqueue(p, &transport.Header{Kind: transport.Goodbye}, nil, 0, 0)
		t.flush(p)
	}
	if !p.out.Empty() {
		return false
	}
	if sockets.Undelivered(p.conn.fd, p.near) > 0 {
		t.lingering = true
		return false
	}
	return true
}

// release ends everything.
func (t *Transport) release() {
	t.closed = true
	for _, s := range t.socks {
		if s != nil {
			t.drop(s)
		}
	}
	for _, p := range t.peers {
		if p != nil {
			p.conn, p.call, p.incoming = nil, nil, nil
			t.discard(p, transport.ErrClosed)
		}
	}
	_ = t.set.Del(t.listener)
	unix.Close(t.listener)
}
