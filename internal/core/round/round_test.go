package round

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

// wire is a transport that records the frames it is given.
type wire struct {
	transporttest.Stub
	transporttest.Log
}

func (w *wire) Send(to world.Rank, h *transport.Header, b mem.Buffer, _ uint64) bool {
	s := fmt.Sprintf("%v %d to %d", h.Kind, h.Seq, to)
	if h.Kind == transport.Call && h.Flags != 0 {
		s += fmt.Sprintf(" flags %d", h.Flags)
	}
	if h.Kind == transport.Call && h.Tag != 0 && h.Flags&aGoodbye == 0 {
		s += fmt.Sprintf(" waits to send %d", h.Tag)
	}
	w.Note("%s", s)
	return true
}

// member is rank 0 of three, whose peers are the test.
type member struct {
	*Round
	*testing.T
	e    *message.Engine
	wire *wire
}

func newMember(t *testing.T) *member {
	w := new(wire)
	e := message.New(message.Config{
		Size: 3, Host: func(world.Rank) string { return "host" }, Parker: inproc.NewParker(), Yield: runtime.Gosched,
		Eager: message.DefaultEager, Collectives: New,
	})
	e.Use(w)
	ch := e.Open(7, nil)
	t.Cleanup(ch.Close)
	return &member{Of(ch), t, e, w}
}

var (
	bcast   = call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Count: 4}
	barrier = call.Fingerprint{Kind: calls.Barrier}
)

// begin begins a bcast, of which a rank may be done before others begin.
func (m *member) begin() {
	m.Helper()
	if err := m.Begin(m.Context(), &bcast, 4, false); err != nil {
		m.Fatal(err)
	}
}

// rounds makes n bcasts.
func (m *member) rounds(n int) {
	for range n {
		m.begin()
		if err := m.End(nil); err != nil {
			m.Fatal(err)
		}
	}
}

// arrives has a frame of a rank arrive, with payload if it is not nil.
func (m *member) arrives(from world.Rank, h transport.Header, payload []byte) {
	h.Comm, h.Len = 7, int64(len(payload))
	m.progress.Lock()
	defer m.progress.Exit()
	for window, token := m.e.Arrive(from, &h); len(payload) > 0 && window.Size() > 0; window = m.e.Filled(token) {
		payload = payload[copy(window.HostSlice(), payload):]
	}
}

// frame returns a frame of the seq-th round, in which its sender calls f.
func frame(k transport.Kind, seq uint64, f call.Fingerprint) transport.Header {
	h := transport.Header{Kind: k, Seq: seq}
	h.A, h.B = f.Words()
	return h
}

// broken fails the test unless the communicator is broken with an error that has text, or works if
// text is "".
func (m *member) broken(name, text string) {
	m.Helper()
	if err := m.ch.Err(); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		m.Errorf("%s: broken: %v, want %q", name, err, text)
	}
}

func (m *member) sent(name, want string) {
	m.Helper()
	if got := m.wire.Taken(); got != want {
		m.Errorf("%s: sent %q, want %q", name, got, want)
	}
}

// The call of a frame is compared with the call made here in the round of that number: the running
// one, one of the last pastCalls, or a later one when it begins.
func TestCallsAreComparedByNumber(t *testing.T) {
	const other = "called bcast(4 uint8, root 0), but rank 1 called barrier()"
	for name, test := range map[string]struct {
		done    int
		running bool
		seq     uint64
		call    call.Fingerprint
		want    string
		later   string // when the next round has begun
	}{
		"the running round, equal":      {1, true, 2, bcast, "", ""},
		"the running round":             {1, true, 2, barrier, "collective 2: rank 0 " + other, ""},
		"the last round, equal":         {2, false, 2, bcast, "", ""},
		"the last round":                {2, false, 2, barrier, "collective 2: rank 0 " + other, ""},
		"a past round, equal":           {2, true, 1, bcast, "", ""},
		"a past round":                  {2, true, 1, barrier, "collective 1: rank 0 " + other, ""},
		"the oldest round that is kept": {pastCalls, false, 1, barrier, "collective 1: rank 0 " + other, ""},
		"an older round":                {pastCalls, true, 1, barrier, "", ""},
		"the next round, equal":         {1, false, 2, bcast, "", ""},
		"the next round":                {1, false, 2, barrier, "", "collective 2: rank 0 " + other},
		"a later round":                 {1, false, 3, barrier, "", ""},
	} {
		m := newMember(t)
		if m.rounds(test.done); test.running {
			m.begin()
		}
		m.arrives(1, frame(transport.Call, test.seq, test.call), nil)
		if m.broken(name, test.want); test.running || test.want != "" {
			continue
		}
		err := m.Begin(t.Context(), &bcast, 4, false)
		if m.broken(name+", begun", test.later); (err != nil) != (test.later != "") {
			t.Errorf("%s: Begin returns %v", name, err)
		}
	}
}

// A message whose calls up to the round have another digest is not received, though its own call is
// the same. Its sender gets the calls made here, once, and finds which differs.
func TestADigestThatDiffersCallsForTheCallsBefore(t *testing.T) {
	m := newMember(t)
	m.rounds(2)
	m.begin()
	m.Irecv(1, mem.Bytes(make([]byte, 4)))
	h := frame(transport.Coll, 3, bcast)
	h.Flags, h.Tag = uint8(mem.U8), m.digested()+1
	m.arrives(1, h, []byte("data"))
	m.sent("a digest that differs", fmt.Sprintf("call 1 to 1; call 2 to 1; call 3 to 1 flags %d", aRecall))
	m.arrives(1, h, []byte("data"))
	m.sent("the second time", "")
	if m.broken("before the answer", ""); m.left != 1 {
		t.Error("the message was received")
	}
	h = frame(transport.Call, 3, bcast)
	h.Flags = aRecall // the other has compared all calls, and knows none that differs
	m.arrives(1, h, nil)
	m.broken("after a recall", "before collective 3, bcast(4 uint8, root 0), ranks 0 and 1 called different collectives")
}

// Payload that differs from what its receive expects breaks the communicator.
func TestBlocksThatDifferBreakTheCommunicator(t *testing.T) {
	for name, test := range map[string]struct {
		kind transport.Kind
		tag  int32 // of a Call: bytes that its sender waits to send; added to the digest of others
		typ  mem.Type
		len  int
		want string
	}{
		"equal": {transport.Coll, 0, mem.U8, 4, ""},
		"longer": {transport.Coll, 0, mem.U8, 5,
			"rank 0 expected 4 bytes of uint8 from rank 1, which sends 5 bytes of uint8"},
		"another type": {transport.Coll, 0, mem.I8, 4,
			"rank 0 expected 4 bytes of uint8 from rank 1, which sends 4 bytes of int8"},
		"long, and not asked": {transport.Call, 1 << 20, 0, 0,
			"rank 0 expected 4 bytes of uint8 from rank 1, which sends 1048576 bytes"},
		"a wait without payload": {transport.Call, 0, 0, 0, ""},
	} {
		m := newMember(t)
		m.begin()
		m.Irecv(1, mem.Bytes(make([]byte, 4)))
		h := frame(test.kind, 1, bcast)
		if h.Flags, h.Tag = uint8(test.typ), test.tag; test.kind == transport.Coll {
			h.Tag = m.digested()
		}
		m.arrives(1, h, make([]byte, test.len))
		m.broken(name, test.want)
		if received := m.left == 0 && m.ch.Err() == nil; received != (name == "equal") {
			t.Errorf("%s: received: %v", name, received)
		}
	}
}

// A long message leaves when its receiver is ready. Until then a wait reports how much is held up,
// and does so once more if the receiver waits too.
func TestALongMessageWaitsForItsReceiver(t *testing.T) {
	const n = message.CollectiveEager + 1
	for flags, leaves := range map[uint8]string{0: "coll 1 to 1", wantRTS: "offer 1 to 1"} {
		m := newMember(t)
		m.begin()
		m.Isend(1, mem.Bytes(make([]byte, n)))
		m.sent("before Ready", "")
		m.Stalled()
		m.sent("a wait", fmt.Sprint("call 1 to 1 waits to send ", n))
		m.arrives(1, frame(transport.Call, 1, bcast), nil)
		m.sent("the receiver's wait", fmt.Sprintf("call 1 to 1 flags %d waits to send %d", anAnswer, n))
		h := frame(transport.Ready, 1, bcast)
		h.Flags = flags
		m.arrives(1, h, nil)
		m.sent("after Ready", leaves)
	}
}

// Short messages leave at once while there is credit, and when it is returned.
func TestShortMessagesTakeCredit(t *testing.T) {
	m := newMember(t)
	m.begin()
	b := mem.Bytes(make([]byte, message.CollectiveEager))
	fit := peers.Budget / peers.Cost(b.Size())
	for range fit + 2 {
		m.Isend(1, b)
	}
	if n := strings.Count(m.wire.Taken(), "coll"); n != fit {
		t.Errorf("%d messages have left, want %d", n, fit)
	}
	m.arrives(1, transport.Header{Kind: transport.Credit, B: uint64(peers.Cost(b.Size()))}, nil)
	m.sent("credit for one", "coll 1 to 1")
}

// A round whose algorithm fails breaks the communicator: others count on this rank.
func TestARoundThatFailsBreaksTheCommunicator(t *testing.T) {
	m, own := newMember(t), errors.New("its own reasons")
	m.begin()
	m.Isend(1, mem.Bytes(nil)) // they have met
	if err := m.End(own); !errors.Is(err, own) {
		t.Errorf("End returns %v, want %v", err, own)
	}
	m.broken("after End", "rank 0 (host host) failed in bcast(4 uint8, root 0): its own reasons")
	m.sent("after End", "coll 1 to 1; revoke 0 to 1")
}

// A wait ends with the round's context, which breaks the communicator, or with the reason of
// another rank, if it is broken.
func TestAWaitEnds(t *testing.T) {
	m := newMember(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Begin(ctx, &bcast, 4, false); err != nil {
		t.Fatal(err)
	}
	m.Irecv(1, mem.Bytes(make([]byte, 4)))
	if err := m.End(m.Wait()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	m.broken("with a context that has ended", "rank 0 (host host) gave up in bcast(4 uint8, root 0)")
	m.sent("with a context that has ended", "revoke 0 to 1")

	m = newMember(t)
	m.begin()
	m.Irecv(1, mem.Bytes(make([]byte, 4)))
	m.arrives(2, transport.Header{Kind: transport.Revoke}, liveness.Reason{Rank: 2, Cause: "stumbled"}.Encode())
	if err := m.End(m.Wait()); !errors.Is(err, liveness.ErrRevoked) ||
		!strings.Contains(err.Error(), "rank 2 (host host) stumbled") {
		t.Errorf("after a revocation: %v", err)
	}
	if err := m.Begin(t.Context(), &bcast, 4, false); !errors.Is(err, liveness.ErrRevoked) {
		t.Errorf("the next round: %v", err)
	}
}

// A rank that closes sends goodbyes where its last collective may have ended here before others
// began it, and compares those that it receives, also if they came early.
func TestGoodbyesAreCompared(t *testing.T) {
	goodbyes := fmt.Sprintf("call 1 to 1 flags %d; call 1 to 2 flags %d", aGoodbye, aGoodbye|1<<goodbyeShift)
	const before = "before collective 1, bcast(4 uint8, root 0), ranks 0 and 2"
	for name, test := range map[string]struct {
		call   *call.Fingerprint
		theirs call.Fingerprint // of rank 2
		digest int32            // of rank 2, less this one's
		sent   string
		want   string
	}{
		"no call":               {nil, bcast, 0, "", ""},
		"a call that needs all": {&barrier, barrier, 0, "", ""},
		"equal":                 {&bcast, bcast, 0, goodbyes, ""},
		"another call": {&bcast, barrier, 0, "",
			"collective 1: rank 0 called bcast(4 uint8, root 0), but rank 2 called barrier()"},
		"other calls before this call": {&bcast, bcast, 1, "", before},
	} {
		m := newMember(t)
		if test.call != nil {
			if err := m.Begin(t.Context(), test.call, 4, false); err != nil {
				t.Fatal(err)
			}
			m.End(nil)
			for k, from := range []world.Rank{2, 1} {
				h := frame(transport.Call, 1, bcast)
				if h.A, h.B = test.call.Words(); from == 2 {
					h = frame(transport.Call, 1, test.theirs)
				}
				h.Flags, h.Tag = uint8(aGoodbye|k<<goodbyeShift), m.digested()
				if from == 2 {
					h.Tag += test.digest
				}
				m.arrives(from, h, nil)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if cancel(); test.digest == 0 { // only a member whose calls differ is waited for here
			ctx = t.Context()
		}
		m.wire.Taken()
		err := m.Part(ctx)
		if m.broken(name, test.want); (err == nil) != (test.want == "") {
			t.Errorf("%s: Part returns %v", name, err)
		}
		if got := m.wire.Taken(); test.want == "" && got != test.sent {
			t.Errorf("%s: sent %q, want %q", name, got, test.sent)
		}
	}
}

func TestPartSaysWhyTheChannelBrokeBeforeAnyCall(t *testing.T) {
	m := newMember(t)
	m.arrives(2, transport.Header{Kind: transport.Revoke}, liveness.Reason{Rank: 2, Cause: "stumbled"}.Encode())
	if err := m.Part(t.Context()); err == nil || !strings.Contains(err.Error(), "stumbled") {
		t.Errorf("Part returns %v, want that rank 2 stumbled", err)
	}
}

// A rank that does not know that the members behind it agree sends no further goodbyes: who receives
// all would take it that all agree.
func TestGoodbyesAreNotSentOnWithoutThoseBefore(t *testing.T) {
	for name, seq := range map[string]uint64{"it is late": 0, "it has not made the last call": 1} {
		m := newMember(t)
		m.rounds(2)
		m.wire.Taken()
		for k, from := range []world.Rank{2, 1} {
			h := frame(transport.Call, 2, bcast)
			if h.Flags, h.Tag = uint8(aGoodbye|k<<goodbyeShift), m.digested(); from == 2 {
				h.Seq = seq
			}
			if h.Seq > 0 {
				m.arrives(from, h, nil)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.Part(ctx); err != nil {
			t.Errorf("%s: Part returns %v", name, err)
		}
		if got, want := m.wire.Taken(), fmt.Sprintf("call 2 to 1 flags %d", aGoodbye); got != want {
			t.Errorf("%s: sent %q, want %q", name, got, want)
		}
	}
}

// Goodbyes of a member from which none is due in that step count for nothing.
func TestGoodbyesOfOthersAreIgnored(t *testing.T) {
	for k, from := range map[int]world.Rank{0: 1, 1: 2, 2: 1, 31: 2} {
		m := newMember(t)
		m.rounds(1)
		h := frame(transport.Call, 1, bcast)
		h.Flags = uint8(aGoodbye | k<<goodbyeShift)
		m.arrives(from, h, nil)
		for i := range m.parting.received {
			if m.parting.received[i].arrived.Load() != 0 {
				t.Errorf("the %d-th of rank %d is taken for the %d-th", k, from, i)
			}
		}
	}
}
