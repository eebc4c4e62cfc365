package message_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

// A script is a transport whose peer sends what a test says, whatever it is.
type script struct {
	transporttest.Stub
	sink transport.Sink

	mu     sync.Mutex
	frames []transport.Header
}

// send has frames arrive at the next Poll.
func (s *script) send(frames ...transport.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, frames...)
}

func (s *script) take() []transport.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames := s.frames
	s.frames = nil
	return frames
}

// Poll delivers all frames from rank 1, with zeroes for payload.
func (s *script) Poll(world.Rank) int {
	frames := s.take()
	for _, h := range frames {
		left := h.Len
		w, token := s.sink.Arrive(1, &h)
		for left > 0 && w.Size() > 0 {
			left -= int64(w.Size())
			w = s.sink.Filled(token)
		}
	}
	return len(frames)
}

// scripted returns rank 0 of two, whose other rank is a script.
func scripted() (*message.Engine, *script) {
	e := newScripted()
	s := &script{sink: e}
	e.Use(s)
	return e, s
}

func newScripted() *message.Engine {
	return message.New(message.Config{Rank: 0, Size: 2,
		Host:   func(r world.Rank) string { return [2]string{"ash", "elm"}[r] },
		Parker: inproc.NewParker(), Yield: func() {}, Collectives: round.New, Eager: message.DefaultEager,
		Lender: new(purse)})
}

func TestPayloadNobodyAskedForIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    transport.Header
	}{
		{"eager", transport.Header{Kind: transport.Eager, Comm: 1, Len: transport.MaxPayload}},
		{"eager for no channel", transport.Header{Kind: transport.Eager, Comm: 99, Len: transport.MaxPayload}},
		{"collective", transport.Header{Kind: transport.Coll, Comm: 1, Seq: 1, Len: transport.MaxPayload}},
		{"collective for no channel", transport.Header{Kind: transport.Coll, Comm: 99, Seq: 1,
			Len: transport.MaxPayload}},
		{"announcement", transport.Header{Kind: transport.RTS, Comm: 99, A: 1 << 60, Len: 1 << 40}},
		{"call", transport.Header{Kind: transport.Call, Comm: 99, Len: 1 << 40}},
	} {
		e, s := scripted()
		ch := e.Open(1, nil)
		s.send(tt.h)
		e.Advance(true)
		if err := ch.Err(); err == nil {
			t.Errorf("%s of %d bytes: no error", tt.name, tt.h.Len)
		}
	}
}

func TestRevocationThatBlamesNoRankIsRead(t *testing.T) {
	e, s := scripted()
	ch := e.Open(1, nil)
	s.send(transport.Header{Kind: transport.Revoke, Comm: 1, Len: 20}) // too short for what it claims to be
	e.Advance(true)
	if !errors.Is(ch.Err(), liveness.ErrRevoked) {
		t.Errorf("got %v, want ErrRevoked", ch.Err())
	}
}

// Whatever frames a peer sends, this rank neither panics nor takes memory for
// lengths that nobody asked for.
func FuzzFrames(f *testing.F) {
	frame := func(h transport.Header) []byte {
		b := make([]byte, transport.HeaderSize)
		h.Encode(b)
		return b
	}
	coll := transport.Header{Kind: transport.Coll, Comm: 1, Seq: 1, A: uint64(calls.Bcast) | uint64(mem.U8)<<8,
		B: 8, Len: 8}
	ready, asks := coll, coll
	ready.Kind, ready.Len, asks.Kind, asks.Len, asks.Tag = transport.Ready, 0, transport.Call, 0, 1<<30
	f.Add(frame(coll))
	f.Add(append(frame(ready), frame(asks)...))
	offer := transport.Header{Kind: transport.Offer, Comm: 1, Seq: 1, A: 3 * chunk, B: 1 << 32}
	ready.Flags = 1
	f.Add(append(frame(ready), frame(offer)...))
	offer.A = 8
	f.Add(append(frame(offer), frame(offer)...))
	f.Add(frame(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 3, Len: 5, Flags: uint8(mem.U8)}))
	f.Add(append(frame(transport.Header{Kind: transport.RTS, Comm: 1, Tag: 3, A: 50, B: 1 << 32}),
		frame(transport.Header{Kind: transport.Data, A: 1 << 32, Len: 50})...))
	f.Add(append(frame(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 4, Len: 1 << 20}),
		frame(transport.Header{Kind: transport.Data, A: 1<<32 | 2, Len: 50})...))
	f.Add(frame(transport.Header{Kind: transport.CTS, A: 1 << 32, B: 7}))
	f.Add(frame(transport.Header{Kind: transport.CTS, A: 1<<32 | 1, B: 7, Seq: 1 << 40}))
	f.Add(frame(transport.Header{Kind: transport.Credit, A: 1 << 63, B: 1 << 63}))
	f.Add(frame(transport.Header{Kind: transport.Revoke, Comm: 1, Len: 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, s := scripted()
		ch := e.Open(1, nil)
		ch.Irecv(1, 3, mem.Bytes(make([]byte, 10)))
		ch.Irecv(message.Any, message.Any, mem.Of(make([]float32, 10)))
		ch.Irecv(1, 4, newDevice().with(make([]byte, 3*chunk)))
		ch.Isend(1, 0, mem.Bytes(make([]byte, 100)), true)
		ch.Isend(1, 0, newDevice().with(make([]byte, 3*chunk)), false)
		rd := round.Of(ch)
		rd.Begin(context.Background(), &call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Count: 8}, 0, false)
		rd.Irecv(1, mem.Bytes(make([]byte, 8)))
		rd.Irecv(1, newDevice().with(make([]byte, 3*chunk)))
		rd.Isend(1, newDevice().with(make([]byte, 3*chunk)))
		rd.Isend(1, mem.Bytes(make([]byte, 3*chunk)))
		for len(b) >= transport.HeaderSize {
			var h transport.Header
			if h.Decode(b) == nil {
				h.Len %= 1 << 24 // what this test has time to deliver
				s.send(h)
			}
			b = b[transport.HeaderSize:]
			e.Advance(true)
		}
		e.Open(binary.LittleEndian.Uint64(append(b, make([]byte, 8)...)), nil)
		ch.Close()
		e.Shutdown(context.Background())
	})
}
