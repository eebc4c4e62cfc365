package tcp

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/internal/sockets"
	"gompi/transport"
)

const (
	// aheadSize is the size of a read at the beginning of a frame: one system call reads many small
	// frames. The price is a second copy of a large frame's beginning.
	aheadSize = 32 << 10

	// tailAhead is the size of a read behind a window's payload: enough for a few small frames.
	tailAhead = 4 << 10

	// directSize bounds a read into a window, so that its owner finds the bytes in the cache.
	directSize = 1 << 20

	// receiveRounds bounds the work for one peer in one Poll.
	receiveRounds = 4
)

// An inbox is the part of the present frame that has been read.
type inbox struct {
	transport.Arrival
	have int // bytes of an incomplete header
	head [transport.HeaderSize]byte
}

// errNoGoodbye is the reason if only the connection's end is known.
var errNoGoodbye = errors.New("closed without a goodbye")

// receive reads p's socket, up to a bound, and returns the number of completed frames and windows.
func (t *Transport) receive(p *peer) int {
	if p.conn.seal != nil {
		return t.receiveSealed(p)
	}
	n := 0
	for range receiveRounds {
		window := t.openWindow(p)
		asked, got, errno := t.read(p, window)
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
		direct := min(got, len(window))
		if direct > 0 && p.in.Advance(t.sink, direct) {
			n++
		}
		n += t.parse(p, t.ahead[:got-direct])
		if p.lost || got < asked {
			return n
		}
	}
	return n
}

// openWindow returns the part of p's window for a direct read.
func (t *Transport) openWindow(p *peer) []byte {
	w := p.in.Window()
	return w[:min(len(w), directSize)]
}

// read reads into window, and reads bytes behind the payload into the read-ahead buffer.
func (t *Transport) read(p *peer, window []byte) (asked, got int, errno syscall.Errno) {
	if len(window) == 0 {
		got, errno = sockets.Receive(p.conn.fd, t.ahead)
		return len(t.ahead), got, errno
	}
	t.vec.Add(window)
	if int64(len(window)) == p.in.Left() {
		t.vec.Add(t.ahead[:tailAhead])
	}
	got, errno = t.vec.Receive(p.conn.fd)
	asked = t.vec.Len()
	t.vec.Reset()
	return asked, got, errno
}

// parse handles the bytes that were read ahead.
func (t *Transport) parse(p *peer, b []byte) int {
	n := 0
	for len(b) > 0 && !p.lost {
		if p.in.Left() > 0 {
			var filled int
			b, filled = p.in.Store(t.sink, b)
			n += filled
		} else if b = t.parseHeader(p, b); p.in.have == 0 {
			n++
		}
	}
	return n
}

// parseHeader takes a header, or the arrived part of it, from the front of b. parseHeader announces
// a frame with a complete header to the sink.
func (t *Transport) parseHeader(p *peer, b []byte) []byte {
	in := &p.in
	head := b
	if in.have > 0 || len(b) < transport.HeaderSize {
		k := copy(in.head[in.have:], b)
		in.have += k
		if in.have < transport.HeaderSize {
			return b[k:]
		}
		head, b, in.have = in.head[:], b[k:], 0
	} else {
		b = b[transport.HeaderSize:]
	}
	h := &t.head
	if err := h.Decode(head); err != nil {
		t.lose(p, err)
		return nil
	}
	if h.Kind == transport.Goodbye {
		t.lose(p, transport.ErrGone)
		return nil
	}
	if t.closing {
		in.Skip(h.Len)
	} else {
		in.Begin(t.sink, p.rank, h)
	}
	return b
}

// cut ends p, whose connection ended without a goodbye. If this rank has sent its own goodbye, that
// is a peer's regular answer.
func (t *Transport) cut(p *peer, why error) {
	if p.cause != nil {
		why = p.cause
	}
	if p.bye {
		t.lose(p, transport.ErrGone)
		return
	}
	t.lose(p, fmt.Errorf("%w: %w", transport.ErrCut, why))
}
