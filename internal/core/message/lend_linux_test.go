package message_test

import (
	"testing"
	"testing/synctest"
	"unsafe"

	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// rings is a script whose rings can be lent, of which there is nothing but where they are.
type rings struct {
	*script
	ends   [4]uint64
	midway bool // in a frame
}

func (r *rings) Capabilities() transport.Capabilities { return transport.Capabilities{Lender: r} }

func (r *rings) MayLend(world.Rank) bool { return !r.midway }
func (r *rings) Lend() int               { return 1 << 10 }

func (r *rings) Ends(peer world.Rank) (transport.Ends, world.LocalRank, bool) {
	at := func(i int) unsafe.Pointer { return unsafe.Pointer(&r.ends[i]) }
	return transport.Ends{Writer: at(0), Reader: at(1), Behind: at(2), Parked: at(3)}, world.LocalRank(peer), true
}

// What a short message could have to wait for or to be matched with keeps its communicator from
// being lent, and nothing under way lets C have anything.
func TestWhatMayBeLent(t *testing.T) {
	u8 := uint8(mem.U8)
	for _, tt := range []struct {
		name  string
		begin func(ch, other *message.Channel, r *rings) (end func()) // nil: Close does it
		ch    bool                                                    // is lent meanwhile
		other bool
	}{
		{"nothing", func(_, _ *message.Channel, _ *rings) func() { return func() {} }, true, true},
		{"a receive that is posted", func(ch, _ *message.Channel, r *rings) func() {
			ch.Irecv(1, 3, mem.Bytes(make([]byte, 8)))
			return func() { r.send(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 3, Len: 8, Flags: u8}) }
		}, false, false},
		{"a message that is kept", func(ch, _ *message.Channel, r *rings) func() {
			r.send(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 3, Len: 8, Flags: u8})
			return func() { ch.Irecv(1, 3, mem.Bytes(make([]byte, 8))) }
		}, false, true},
		{"a frame in the midst", func(_, _ *message.Channel, r *rings) func() {
			r.midway = true
			return func() { r.midway = false }
		}, true, true}, // but no peer, as whole says
		{"a send that is announced", func(ch, _ *message.Channel, r *rings) func() {
			ch.Isend(1, 3, mem.Bytes(make([]byte, 8)), true)
			return nil
		}, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newScripted()
			r := &rings{script: &script{sink: e}}
			e.Use(r)
			ch, other := e.Open(1, nil), e.Open(2, nil)
			l, err := e.NewLease(mem.U8, false)
			if err != nil {
				t.Skip(err)
			}
			lend := func() (ofCh, ofOther, whole bool) {
				other.Lend(1, 1)
				ch.Lend(0, message.Any)
				ofCh, whole = l.Lent(0)
				ofOther, _ = l.Lent(1)
				return ofCh, ofOther, whole
			}
			if a, b, whole := lend(); !a || !b || !whole {
				t.Fatalf("%s: before it, lent: %v, %v, whole %v: want all", tt.name, a, b, whole)
			}
			end := tt.begin(ch, other, r)
			e.Advance(true)
			if a, b, whole := lend(); a != tt.ch || b != tt.other || whole != (a && !r.midway) {
				t.Errorf("%s: lent: %v, %v, whole %v: want %v and %v", tt.name, a, b, whole, tt.ch, tt.other)
			}
			if end != nil {
				end()
				e.Advance(true)
				if a, _, _ := lend(); !a {
					t.Errorf("%s: behind it the communicator is not lent", tt.name)
				}
			}
			ch.Close()
			other.Close()
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The lock takes back what is lent.
func TestEveryCallTakesBackWhatIsLent(t *testing.T) {
	e := newScripted()
	r := &rings{script: &script{sink: e}}
	e.Use(r)
	ch := e.Open(1, nil)
	l, err := e.NewLease(mem.U8, false)
	if err != nil {
		t.Skip(err)
	}
	for name, call := range map[string]func(){
		"Iprobe":  func() { ch.Probe(t.Context(), 1, 3, false, false) },
		"poll":    func() { e.Advance(true) },
		"Exclude": func() { l.Exclude(0) },
	} {
		ch.Lend(0, 1)
		if some, _ := l.Lent(0); !some {
			t.Fatalf("nothing is lent before %s", name)
		}
		call()
		if some, _ := l.Lent(0); some {
			t.Errorf("%s has not taken back what was lent", name)
		}
	}
}
