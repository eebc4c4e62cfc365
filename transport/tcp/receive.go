package tcp

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/internal/mem"
	"gompi/transport"
)

const (
	// aheadSize is how much is read at once where frames begin: many small
	// frames for one system call, at the price of copying the beginning of a
	// large one.
	aheadSize = 32 << 10

	// tailAhead is how much is read behind the payload that fills a window:
	// enough for a few small frames.
	tailAhead = 4 << 10

	// directSize bounds one read into a window, so that what it brings is
	// still in the cache when the window's owner uses it.
	directSize = 1 << 20

	// receiveRounds bounds the work for one peer in one Poll.
	receiveRounds = 4
)

// An inbox is what has been read of the present frame.
type inbox struct {
	left   int64  // bytes of its payload that have not been read
	window []byte // where the next of them go
	drop   bool   // nowhere
	token  uint64
	have   int // bytes of its header, if that is not complete
	head   [transport.HeaderSize]byte
}

// errNoGoodbye is why a connection counts as cut when its end is all we know.
var errNoGoodbye = errors.New("closed without a goodbye")

// receive reads from p what is there, up to a bound, and returns the number of
// events: frames and windows.
func (t *Transport) receive(p *peer) int {
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
		if direct > 0 {
			n += t.advance(p, direct)
		}
		n += t.parse(p, t.ahead[:got-direct])
		if p.lost || got < asked {
			return n
		}
	}
	return n
}

// openWindow returns the part of p's window to be read into directly.
func (t *Transport) openWindow(p *peer) []byte {
	if p.in.left == 0 || p.in.drop {
		return nil
	}
	return p.in.window[:min(len(p.in.window), directSize)]
}

// read reads into window, and into the read-ahead buffer what may follow the
// payload.
func (t *Transport) read(p *peer, window []byte) (asked, got int, errno syscall.Errno) {
	if len(window) == 0 {
		got, errno = receive(p.conn.fd, t.ahead)
		return len(t.ahead), got, errno
	}
	t.vec.add(window)
	if int64(len(window)) == p.in.left {
		t.vec.add(t.ahead[:tailAhead])
	}
	got, errno = t.vec.receive(p.conn.fd)
	asked = t.vec.total
	t.vec.reset()
	return asked, got, errno
}

// advance tells that n more bytes of the window are filled.
func (t *Transport) advance(p *peer, n int) int {
	in := &p.in
	in.window = in.window[n:]
	in.left -= int64(n)
	if len(in.window) > 0 {
		return 0
	}
	t.place(in, t.sink.Filled(in.token))
	return 1
}

// place makes w the window for what is left of the payload.
func (t *Transport) place(in *inbox, w mem.Buffer) {
	n := min(int64(w.Size()), in.left)
	in.drop = n == 0
	in.window = nil
	if n > 0 {
		in.window = w.HostSlice()[:n]
	}
}

// parse takes in what was read ahead.
func (t *Transport) parse(p *peer, b []byte) int {
	in, n := &p.in, 0
	for len(b) > 0 && !p.lost {
		switch {
		case in.left == 0:
			if b = t.parseHeader(p, b); in.have == 0 {
				n++
			}
		case in.drop:
			k := min(int64(len(b)), in.left)
			in.left -= k
			b = b[k:]
		default:
			k := copy(in.window, b)
			b = b[k:]
			n += t.advance(p, k)
		}
	}
	return n
}

// parseHeader takes a header, or what is there of it, from the front of b, and
// announces the frame.
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
	in.left = h.Len
	if t.closing {
		in.drop = true
		return b
	}
	w, token := t.sink.Arrive(p.rank, h)
	if in.left > 0 {
		in.token = token
		t.place(in, w)
	}
	return b
}

// cut ends p, whose connection ended without a goodbye. After ours, that is how
// a peer answers it.
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
