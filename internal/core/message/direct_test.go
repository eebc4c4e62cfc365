package message_test

import (
	"testing"
	"testing/synctest"

	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A reach is a script whose two ranks share memory. It moves nothing: it knows what it was
// told to, and a test says when that has ended. Tests touch it while the engine's own
// goroutine sleeps, which progress sees to.
type reach struct {
	*script
	engine *message.Engine
	lies   bool // the buffers of this rank lie in that memory
	sent   []transport.Header
	held   []uint64 // tokens of payload that was sent
	copies []uint64 // tokens of Gets and Puts
	ends   []func()
}

// somewhere is a place in the memory that is shared.
const somewhere = 9

// end has what has token end at the next Poll.
func (x *reach) end(token uint64, err error) {
	x.ends = append(x.ends, func() { x.sink.Sent(token, err) })
}

func (x *reach) Poll(hint world.Rank) int {
	ends := x.ends
	x.ends = nil
	for _, end := range ends {
		end()
	}
	return len(ends) + x.script.Poll(hint)
}

func (x *reach) Send(_ world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	x.sent = append(x.sent, *h)
	if b.Size() > 0 {
		x.held = append(x.held, token)
	}
	return b.Size() == 0
}

func (x *reach) Capabilities() transport.Capabilities {
	return transport.Capabilities{Direct: x, Getter: x}
}

func (x *reach) Place(world.Rank, mem.Buffer) uint64 {
	if x.lies {
		return somewhere
	}
	return 0
}

// Source is asked only where lengths are to be read.
func (x *reach) Maps(place uint64) bool               { return place != somewhere+1 }
func (x *reach) Source(world.Rank, mem.Buffer) uint64 { return somewhere + 1 }

func (x *reach) Recall() {}
func (x *reach) Get(_ world.Rank, _ uint64, _ mem.Buffer, t uint64, _ bool) {
	x.copies = append(x.copies, t)
}
func (x *reach) Put(_ world.Rank, _ uint64, _ mem.Buffer, t uint64) { x.copies = append(x.copies, t) }

// progress has the engine do all that there is to do.
func (x *reach) progress() {
	synctest.Wait()
	x.engine.Advance(true)
	synctest.Wait()
}

// reaching runs f as rank 0 of two, whose other rank is a script that shares memory with it.
func reaching(t *testing.T, lies bool, f func(t *testing.T, ch *message.Channel, x *reach)) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted()
		x := &reach{script: &script{sink: e}, engine: e, lies: lies}
		e.Use(x)
		ch := e.Open(1, nil)
		f(t, ch, x)
		ch.Close()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Who was asked to help with a copy may still be at it when the message has gone the other
// way, and then has been given up.
func TestWhoHelpsWithACopyMayWriteAfterTheEnd(t *testing.T) {
	for _, recalled := range []bool{false, true} {
		for _, lies := range []bool{false, true} {
			reaching(t, lies, func(t *testing.T, ch *message.Channel, x *reach) {
				const size = 1 << 20
				b := mem.Bytes(make([]byte, size))
				ch.Irecv(1, 3, b)
				x.send(transport.Header{Kind: transport.RTS, Comm: 1, Tag: 3, A: size, B: 7, Seq: somewhere,
					Flags: uint8(mem.U8)})
				x.progress()
				if len(x.copies) != 1 {
					t.Fatalf("%d copies were begun, want 1", len(x.copies))
				}
				if recalled {
					x.end(x.copies[0], transport.ErrRecalled)
					x.progress()
					if len(x.sent) != 1 || x.sent[0].Kind != transport.CTS || x.sent[0].Seq != 0 {
						t.Fatalf("after a copy in vain %+v was sent, want a CTS without a place", x.sent)
					}
				}
				ch.Close()
				if got := x.engine.Mover.MayBeWritten(b); got != lies {
					t.Errorf("the buffer is shared: %v; recalled: %v; the peer may write to it: %v", lies,
						recalled, got)
				}
				if x.engine.Mover.MayBeWritten(mem.Bytes(make([]byte, size))) {
					t.Error("the peer may write to another buffer")
				}
				if lies {
					last := x.sent[len(x.sent)-1]
					if last.Kind != transport.Flush {
						t.Fatalf("%+v was sent last, want a Flush", last)
					}
					x.send(transport.Header{Kind: transport.Flushed, A: last.A - 1})
					x.progress()
					if !x.engine.Mover.MayBeWritten(b) {
						t.Error("an answer to something else was taken for the one")
					}
					x.send(transport.Header{Kind: transport.Flushed, A: last.A})
					x.progress()
				}
				if x.engine.Mover.MayBeWritten(b) {
					t.Error("the peer may write to the buffer when it has answered")
				}
			})
		}
	}
}

// A peer that is lost while its process lives may go on writing.
func TestWhoBreaksTheProtocolMayStillWrite(t *testing.T) {
	for _, copying := range []bool{false, true} {
		reaching(t, true, func(t *testing.T, ch *message.Channel, x *reach) {
			const size = 1 << 20
			b := mem.Bytes(make([]byte, size))
			ch.Irecv(1, 3, b)
			x.send(transport.Header{Kind: transport.RTS, Comm: 1, Tag: 3, A: size, B: 7, Seq: somewhere,
				Flags: uint8(mem.U8)})
			x.progress()
			if copying { // as transports say it
				x.end(x.copies[0], transport.ErrProtocol)
				x.ends = append(x.ends, func() { x.sink.Lost(1, transport.ErrProtocol) })
			} else {
				x.send(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 4, Len: 1 << 30})
			}
			x.progress()
			if ch.Err() == nil {
				t.Fatal("the peer is not lost")
			}
			if !x.engine.Mover.MayBeWritten(b) {
				t.Errorf("the copy told: %v; a buffer that the peer may write to is free", copying)
			}
		})
	}
}

// A peer that asks for a part of a message, and then tells where it wants all of it, gets
// frames: the copy would be taken for done when the first of them has left.
func TestAPlaceForTheRestOfAMessageIsNotUsed(t *testing.T) {
	for _, first := range []uint64{0, somewhere} {
		reaching(t, true, func(t *testing.T, ch *message.Channel, x *reach) {
			s := ch.Isend(1, 3, mem.Bytes(make([]byte, 3*chunk)), false)
			asks := transport.Header{Kind: transport.CTS, A: x.sent[0].B, B: 7, Tag: 1, Seq: first}
			x.send(asks)
			asks.Tag, asks.Seq = 0, somewhere
			x.send(asks)
			x.progress()
			if len(x.copies) != 0 || len(x.held) != 2 {
				t.Fatalf("place %d: %d copies and %d frames, want 0 and 2", first, len(x.copies), len(x.held))
			}
			for i, token := range x.held {
				if s.Done() {
					t.Errorf("place %d: the send is done, and the transport holds %d frames of it", first,
						len(x.held)-i)
				}
				x.end(token, nil)
				x.progress()
			}
			if !s.Done() {
				t.Errorf("place %d: all has left, and the send is not done", first)
			}
		})
	}
}
