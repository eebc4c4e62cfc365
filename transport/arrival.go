package transport

import (
	"gompi/internal/mem"
	"gompi/internal/world"
)

// An Arrival is the rest of the frame that is arriving from one peer, after its header. Its payload
// comes in pieces, and is stored into the windows of a Sink. The zero Arrival means none.
type Arrival struct {
	left   int64  // bytes of payload that have not arrived
	window []byte // memory for the next bytes
	drop   bool   // the rest is dropped
	token  uint64
}

// Begin announces a frame to sink.
func (a *Arrival) Begin(sink Sink, peer world.Rank, h *Header) {
	a.left = h.Len
	w, token := sink.Arrive(peer, h)
	if a.left > 0 {
		a.token = token
		a.place(w)
	}
}

// Resume begins with the rest of a frame, which a look at its front has given this window.
func (a *Arrival) Resume(rest []byte) { *a = Arrival{left: int64(len(rest)), window: rest} }

// Name gives a token to the window of Resume.
func (a *Arrival) Name(token uint64) { a.token = token }

// Skip begins a frame with n bytes of payload that is dropped without telling the sink.
func (a *Arrival) Skip(n int64) { *a = Arrival{left: n, drop: true} }

// Left returns the number of payload bytes that have not arrived.
func (a *Arrival) Left() int64 { return a.left }

// Window returns memory where payload may be stored directly, nil if the payload is dropped or
// complete.
func (a *Arrival) Window() []byte {
	if a.left == 0 || a.drop {
		return nil
	}
	return a.window
}

// Advance notes that n bytes of the Window have been stored, and reports whether they filled it.
func (a *Arrival) Advance(sink Sink, n int) bool {
	a.window = a.window[n:]
	a.left -= int64(n)
	if len(a.window) > 0 {
		return false
	}
	a.place(sink.Filled(a.token))
	return true
}

// Store stores payload from the front of b, up to the end of the frame. It returns the rest of b
// and the number of filled windows.
func (a *Arrival) Store(sink Sink, b []byte) (rest []byte, filled int) {
	for len(b) > 0 && a.left > 0 {
		if a.drop {
			n := min(int64(len(b)), a.left)
			a.left -= n
			b = b[n:]
			continue
		}
		n := copy(a.window, b)
		b = b[n:]
		if a.Advance(sink, n) {
			filled++
		}
	}
	return b, filled
}

// place makes w the window for the rest of the payload.
func (a *Arrival) place(w mem.Buffer) {
	n := min(int64(w.Size()), a.left)
	a.drop = n == 0
	a.window = nil
	if n > 0 {
		a.window = w.HostSlice()[:n]
	}
}

// Forget drops the rest of the payload if its window has this token.
func (a *Arrival) Forget(token uint64) {
	if a.left > 0 && !a.drop && a.token == token {
		a.Abandon()
	}
}

// Abandon drops the rest of the payload, and gives the window back.
func (a *Arrival) Abandon() { a.drop, a.window = true, nil }
