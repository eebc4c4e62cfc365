package payload

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/internal/mem"
	"gompi/transport"
)

var errLost = errors.New("the peer is lost")

// A step is an event of a message. It returns what the Move does about it, apart from frames.
type step struct {
	event string
	do    func(k *bench) string
	want  string // what do returns, the stage after it, and what the transport is asked for
}

// cleared is a CTS for all bytes, or for some chunks.
func cleared(chunks int32, place uint64, want string) step {
	return step{fmt.Sprintf("CTS for %d chunks at place %d", chunks, place), func(k *bench) string {
		return outcome(k.Cleared(&transport.Header{Kind: transport.CTS, A: own, B: other, Tag: chunks,
			Seq: place}), nil)
	}, want}
}

// sent is the transport's Sent.
func sent(err error, want string) step {
	return step{fmt.Sprintf("Sent(%v)", err), func(k *bench) string { return outcome(k.Sent(err)) }, want}
}

// fetch begins to get what was announced, at a place if that is not 0.
func fetch(place uint64, want string) step {
	return step{fmt.Sprintf("Fetch from place %d", place),
		func(k *bench) string { k.Fetch(other, place); return "waits" }, want}
}

// arrives is a Data frame of n bytes, of which each window is filled at once.
func arrives(n int, want string) step {
	return step{fmt.Sprintf("%d bytes", n), func(k *bench) string {
		if !k.Expects(int64(n)) {
			return "unexpected"
		}
		window, done := k.Arrives(n)
		var err error
		for !done && window.Size() > 0 {
			window, done, err = k.Filled()
		}
		return outcome(done, err)
	}, want}
}

func outcome(done bool, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case done:
		return "done"
	}
	return "waits"
}

var stageNames = [...]string{"complete", "posted", "queued", "filling", "fetching", "landing", "announced",
	"leaving", "storing"}

// The stages of a message in host memory: what each event does in them, and which frames, copies
// and outcomes follow.
func TestAMoveGoesThroughItsStages(t *testing.T) {
	chunk := StagingChunk
	for _, test := range []struct {
		name  string
		stage Stage
		size  int
		buf   int // bytes
		on    func() *bench
		steps []step
	}{
		{"sent in one frame", Announced, 10, 10, plain, []step{cleared(0, 0, "done leaving: data 9 bytes 10")}},
		{"sent in one frame that the transport holds", Announced, 10, 10, holding, []step{
			cleared(0, 0, "waits leaving: data 9 bytes 10"), sent(nil, "done leaving: ")}},
		{"sent by chunks", Announced, 3 * chunk, 3 * chunk, holding, []step{
			cleared(1, 0, fmt.Sprint("waits announced: data 9 bytes ", chunk)), sent(nil, "waits announced: "),
			cleared(0, 0, fmt.Sprint("waits leaving: data 9 bytes ", 2*chunk)), sent(nil, "done leaving: ")}},
		{"a Sent that nothing waits for", Announced, 10, 10, plain, []step{sent(errLost, "waits announced: ")}},
		{"lost while the transport holds it", Announced, 10, 10, holding, []step{
			cleared(0, 0, "waits leaving: data 9 bytes 10"), sent(errLost, "the peer is lost leaving: ")}},
		{"stored at the receiver", Announced, 10, 10, direct, []step{
			cleared(0, 7, "waits storing: put 10 bytes at 7, token 5"), sent(nil, "done storing: done 9")}},
		{"stored at a place that is recalled", Announced, 10, 10, direct, []step{
			cleared(0, 7, "waits storing: put 10 bytes at 7, token 5"),
			sent(transport.ErrRecalled, "done leaving: data 9 bytes 10")}},
		{"stored at a receiver that is lost", Announced, 10, 10, direct, []step{
			cleared(0, 7, "waits storing: put 10 bytes at 7, token 5"), sent(errLost, "the peer is lost storing: ")}},
		{"a place after frames counts for nothing", Announced, 2 * chunk, 2 * chunk, direct, []step{
			cleared(1, 0, fmt.Sprint("waits announced: data 9 bytes ", chunk)),
			cleared(0, 7, fmt.Sprint("done leaving: data 9 bytes ", chunk))}},
		{"a place without such a transport counts for nothing", Announced, 10, 10, plain,
			[]step{cleared(0, 7, "done leaving: data 9 bytes 10")}},

		{"received in one frame", Posted, 10, 10, plain,
			[]step{fetch(0, "waits filling: cts 9 token 5"), arrives(10, "done filling: ")}},
		{"received in two frames", Posted, 10, 10, plain, []step{
			fetch(0, "waits filling: cts 9 token 5"), arrives(4, "waits filling: "), arrives(6, "done filling: ")}},
		{"more than was asked for", Posted, 10, 10, plain, []step{
			fetch(0, "waits filling: cts 9 token 5"), arrives(4, "waits filling: "),
			arrives(7, "unexpected filling: ")}},
		{"a frame without payload", Posted, 10, 10, plain,
			[]step{fetch(0, "waits filling: cts 9 token 5"), arrives(0, "unexpected filling: ")}},
		{"a message without payload", Posted, 0, 10, plain,
			[]step{fetch(0, "waits filling: cts 9 token 5"), arrives(0, "done filling: ")}},
		{"payload that was not asked for", Posted, 10, 10, plain, []step{arrives(10, "unexpected posted: ")}},
		{"longer than the buffer", Posted, 10, 4, plain,
			[]step{fetch(0, "waits filling: cts 9 token 5"), arrives(10, "done filling: ")}},
		{"longer than a buffer without bytes", Posted, 10, 0, plain,
			[]step{fetch(0, "waits filling: cts 9 token 5"), arrives(10, "done filling: ")}},
		{"longer than the buffer, with a place", Posted, 10, 4, mapping,
			[]step{fetch(8, "waits filling: cts 9 token 5")}},
		{"stored by the sender", Posted, 10, 10, placed, []step{fetch(0, "waits filling: cts 9 token 5 place 7")}},
		{"copied from the sender", Posted, 10, 10, mapping, []step{
			fetch(8, "waits fetching: get 10 bytes from 8, token 5"), sent(nil, "done fetching: done 9")}},
		{"copied from a place that is recalled", Posted, 10, 10, mapping, []step{
			fetch(8, "waits fetching: get 10 bytes from 8, token 5"),
			sent(transport.ErrRecalled, "waits filling: cts 9 token 5"),
			arrives(10, "done filling: ")}},
		{"copied from a sender that is lost", Posted, 10, 10, mapping, []step{
			fetch(8, "waits fetching: get 10 bytes from 8, token 5"), sent(errLost, "the peer is lost fetching: ")}},
		{"a place that is slower than frames", Posted, 10, 10, direct,
			[]step{fetch(8, "waits filling: cts 9 token 5")}},
	} {
		k := test.on()
		k.begin(k.Peer, test.stage, make([]byte, test.buf), test.size)
		for _, s := range test.steps {
			got := s.do(k)
			if got = fmt.Sprintf("%s %s: %s", got, stageNames[k.Stage], k.wire.Taken()); got != s.want {
				t.Errorf("%s, %s: %s\nwant %s", test.name, s.event, got, s.want)
			}
		}
	}
}

// The peer of a message may be lost, or the message given up, in any stage: what the transport
// forgets, which places are recalled, and whether the peer has to answer that it writes no more.
func TestAMoveIsGivenUp(t *testing.T) {
	for stage := Posted; stage <= Storing; stage++ {
		for _, exposed := range []bool{false, true} {
			for _, lost := range []bool{false, true} {
				for _, ended := range []bool{false, true} {
					k := mapping()
					k.Stage, k.exposed = stage, exposed
					if lost {
						k.Peer.Lost = errLost
					}
					k.GiveUp(ended)
					writes := exposed && !ended && (stage == Filling || stage == Fetching)
					want := "forget 5"
					if exposed {
						want += "; recall"
					}
					if writes && !lost {
						want += "; flush 1"
					}
					name := fmt.Sprintf("%s, exposed %v, lost %v, ended %v", stageNames[stage], exposed, lost, ended)
					if got := k.wire.Taken(); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
					if got := k.v.MayBeWritten(k.Buf); got != writes {
						t.Errorf("%s: may be written: %v, want %v", name, got, writes)
					}
				}
			}
		}
	}
}

// A buffer may be written until the peer has answered the Flush for it, or a later one.
func TestAFlushEndsWrites(t *testing.T) {
	k := plain()
	one, two := mem.Bytes(make([]byte, 8)), mem.Bytes(make([]byte, 8))
	k.v.GiveUp(1, one)
	second := k.v.GiveUp(1, two)
	k.v.Flushed(2, second) // another rank's
	k.v.Flushed(1, second-1)
	if k.v.MayBeWritten(one) || !k.v.MayBeWritten(two) {
		t.Errorf("after the first answer: the first %v, the second %v, want false and true", k.v.MayBeWritten(one),
			k.v.MayBeWritten(two))
	}
	if k.v.Flushed(1, second); k.v.MayBeWritten(two) {
		t.Error("the second may still be written after its answer")
	}
}

// Only a message in these stages waits for the peer, or may have been copied by it.
func TestStagesThatDependOnThePeer(t *testing.T) {
	for stage := Complete; stage <= Storing; stage++ {
		k := plain()
		k.Stage, k.exposed = stage, true
		if got, want := k.HalfWay(), stage == Announced || stage == Filling || stage == Fetching; got != want {
			t.Errorf("%s: half-way: %v, want %v", stageNames[stage], got, want)
		}
		want := stage == Announced || stage == Filling
		if got := k.MayBeReached(k.Peer); got != want {
			t.Errorf("%s: may have been copied: %v, want %v", stageNames[stage], got, want)
		}
		if k.exposed = false; k.MayBeReached(k.Peer) {
			t.Errorf("%s: may have been copied from a place that was not sent", stageNames[stage])
		}
	}
}

// A send whose peer is lost hangs until its fate is known: nothing is due any more.
func TestAMoveHangsWhosePeerIsASuspect(t *testing.T) {
	k := holding()
	k.Stage = Announced
	k.Cleared(&transport.Header{B: other})
	if k.Hang(); k.Stage != Queued || k.due != 0 {
		t.Errorf("stage %s with %d frames due, want queued and 0", stageNames[k.Stage], k.due)
	}
	if !k.End(errLost) || k.Stage != Complete {
		t.Errorf("it does not end: stage %s", stageNames[k.Stage])
	}
}

// A receive that reduces has dst = own op in, whatever the frames, and in op own if Left is true.
func TestAReceiveReduces(t *testing.T) {
	const n = 2*arriveChunk/8 + 3
	for _, frames := range [][]int{{n * 8}, {8, arriveChunk, n*8 - arriveChunk - 8}} {
		k := plain()
		dst, opnd := make([]byte, n*8), make([]byte, n*8)
		k.begin(k.Peer, Posted, dst, n*8)
		sum, in := mem.HostBytes(mem.I64, n, dst), mem.HostBytes(mem.I64, n, opnd)
		for i := range n {
			in.HostSlice()[i*8] = byte(i)
		}
		k.Buf = sum
		k.Combine(&Combine{Own: in, Op: mem.Sum})
		k.Fetch(other, 0)
		at := 0
		for _, f := range frames {
			window, done := k.Arrives(f)
			for !done && window.Size() > 0 {
				for i := range window.Size() {
					window.HostSlice()[i] = byte(at/8) * byte(1-min(at%8, 1)) // i in place i, as own has
					at++
				}
				window, done, _ = k.Filled()
			}
		}
		for i := range n {
			if got, want := int(dst[i*8])+int(dst[i*8+1])<<8, 2*int(byte(i)); got != want {
				t.Fatalf("frames %v: element %d is %d, want %d", frames, i, got, want)
			}
		}
	}
}

// A peer that has a message of this rank's to copy is not asked to help.
func TestABusyPeerIsNotAskedToHelp(t *testing.T) {
	k := newBench(true, reaching{place: 7, maps: true})
	receive := func() string {
		k.begin(k.Peer, Posted, make([]byte, 10), 10)
		k.Fetch(other, 8)
		k.Sent(nil)
		return k.wire.Taken()
	}
	helped := receive()
	var send Move
	send.Init(&k.v, k)
	send.Begin(Announced, mem.Bytes(make([]byte, 10)))
	send.Peer = k.Peer
	if place := send.Source(); place != 7 {
		t.Fatalf("the message is offered at place %d, want 7", place)
	}
	alone := receive()
	send.End(nil)
	if again := receive(); strings.Contains(helped, "alone") || !strings.Contains(alone, "alone") || again != helped {
		t.Errorf("before, while and after a message is offered: %s; %s; %s", helped, alone, again)
	}
}

// Whoever can read the sender's memory only by the kernel chooses by length at first.
func TestTheReceiverChoosesByLength(t *testing.T) {
	v := &plain().v
	v.SetLengths(Lengths{From: 128, Below: 1024, TriesFrom: 512})
	for _, test := range []struct {
		size   int
		fetch  bool
		choice Choice
	}{{127, false, Untimed}, {128, true, Untimed}, {1023, true, Untimed}, {4000, false, Untimed}} {
		fetch, c := v.Choose(1, test.size)
		if fetch != test.fetch || c != test.choice {
			t.Errorf("%d bytes: fetch %v, choice %d, want %v and %d", test.size, fetch, c, test.fetch, test.choice)
		}
		v.End(1, c, nil)
	}
	for first := 0; ; first++ { // trials begin after some messages
		if _, c := v.Choose(1, 4000); c == Timed {
			if _, c := v.Choose(1, 4000); c != Untimed {
				t.Error("a message that waits for another is timed")
			}
			return
		} else if v.End(1, c, nil); first > 10_000 {
			t.Fatal("no message is timed")
		}
	}
}
