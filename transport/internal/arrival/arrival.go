// Package arrival stores the payload of a frame that arrives in pieces into the windows of a
// transport.Sink. The transports share it.
package arrival

import (
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A Frame is the rest of the frame that is arriving from one peer, after its header. The zero Frame
// means none.
type Frame struct {
	left   int64  // bytes of payload that have not arrived
	window []byte // memory for the next bytes
	drop   bool   // the rest is dropped
	token  uint64
}

// Begin announces a frame to sink.
func (f *Frame) Begin(sink transport.Sink, peer world.Rank, h *transport.Header) {
	f.left = h.Len
	w, token := sink.Arrive(peer, h)
	if f.left > 0 {
		f.token = token
		f.place(w)
	}
}

// Skip begins a frame with n bytes of payload that is dropped without telling the sink.
func (f *Frame) Skip(n int64) { *f = Frame{left: n, drop: true} }

// Left returns how many bytes of payload have not arrived.
func (f *Frame) Left() int64 { return f.left }

// Window returns memory where payload may be stored directly, nil if the payload is dropped or
// complete.
func (f *Frame) Window() []byte {
	if f.left == 0 || f.drop {
		return nil
	}
	return f.window
}

// Advance notes that n bytes of the Window have been stored, and reports whether they filled it.
func (f *Frame) Advance(sink transport.Sink, n int) bool {
	f.window = f.window[n:]
	f.left -= int64(n)
	if len(f.window) > 0 {
		return false
	}
	f.place(sink.Filled(f.token))
	return true
}

// Store stores payload from the front of b, up to the end of the frame. It returns the rest of b
// and the number of filled windows.
func (f *Frame) Store(sink transport.Sink, b []byte) (rest []byte, filled int) {
	for len(b) > 0 && f.left > 0 {
		if f.drop {
			n := min(int64(len(b)), f.left)
			f.left -= n
			b = b[n:]
			continue
		}
		n := copy(f.window, b)
		b = b[n:]
		if f.Advance(sink, n) {
			filled++
		}
	}
	return b, filled
}

// place makes w the window for the rest of the payload.
func (f *Frame) place(w mem.Buffer) {
	n := min(int64(w.Size()), f.left)
	f.drop = n == 0
	f.window = nil
	if n > 0 {
		f.window = w.HostSlice()[:n]
	}
}

// Forget drops the rest of the payload if its window has this token.
func (f *Frame) Forget(token uint64) {
	if f.left > 0 && !f.drop && f.token == token {
		f.Abandon()
	}
}

// Abandon drops the rest of the payload, and gives the window back.
func (f *Frame) Abandon() { f.drop, f.window = true, nil }
