package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/seal"
	"gompi/internal/sockets"
	"gompi/transport"
)

// With Config.FrameMAC a connection carries only sealed records after the handshake, each of as
// many frames, or as large a part of one, as it can hold, for a copy and a hash on each side.

// sealedRounds bounds the work for one peer in one Poll, in records.
const sealedRounds = 16

// sealed is the state of a connection with FrameMAC.
type sealed struct {
	in     *seal.Reader
	out    *seal.Writer
	record []byte // the record being sent
	sent   int    // bytes of record that have left
	covers int    // bytes of the queue's front in record
}

// newSealed returns the state of a new connection.
func (t *Transport) newSealed(tr *transcript) *sealed {
	send, receive := seal.Keys(t.cfg.Secret[:], tr.all(t.cfg.JobID))
	if tr.callee == uint32(t.cfg.Rank) {
		send, receive = receive, send
	}
	return &sealed{in: seal.NewReader(receive), out: seal.NewWriter(send)}
}

// fill makes a record of the front of the queue.
func (s *sealed) fill(o *outbox) {
	b := s.out.Open(s.record[:0])
	head := len(b)
	frames := o.Items()
	for i := 0; i < len(frames) && len(b)-head < seal.MaxPayload; i++ {
		f := &frames[i]
		for _, part := range [2][]byte{f.head[f.sent:], f.body} {
			b = append(b, part[:min(len(part), seal.MaxPayload-(len(b)-head))]...)
		}
	}
	s.covers = len(b) - head
	s.record, s.sent = s.out.Close(b, 0), 0
}

// flushSealed writes queued frames to p, as flush does.
func (t *Transport) flushSealed(p *peer) int {
	n, s := 0, p.conn.seal
	for range sealedRounds {
		if p.conn == nil || p.out.Empty() || p.cause != nil {
			break
		}
		if s.sent == len(s.record) {
			s.fill(&p.out)
		}
		k, errno := sockets.Send(p.conn.fd, s.record[s.sent:])
		if errno == unix.EAGAIN || errno == unix.EINTR {
			break
		}
		if errno != 0 {
			t.broken(p, errno)
			return n + 1
		}
		if s.sent += k; s.sent < len(s.record) {
			break
		}
		n += t.left(p, s.covers)
	}
	t.watchQueue(p)
	return n
}

// receiveSealed reads from p, as receive does, and delivers verified frames.
func (t *Transport) receiveSealed(p *peer) int {
	n, in := 0, p.conn.seal.in
	for range sealedRounds {
		buf := in.ReadBuffer()
		got, errno := sockets.Receive(p.conn.fd, buf)
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return n
		case errno != 0:
			t.cut(p, errno)
			return n + 1
		case got == 0:
			t.cut(p, errNoGoodbye)
			return n + 1
		}
		in.Filled(got)
		n += t.unseal(p, in)
		if p.lost || got < len(buf) {
			return n
		}
	}
	return n
}

// unseal delivers the frames of complete records.
func (t *Transport) unseal(p *peer, in *seal.Reader) int {
	n := 0
	for !p.lost {
		frames, ok, err := in.Next()
		if err != nil {
			t.lose(p, fmt.Errorf("%w: %w", transport.ErrProtocol, err))
			return n + 1
		}
		if !ok {
			break
		}
		n += t.parse(p, frames)
	}
	return n
}
