package ucx

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

// eachUCX runs fn over UCX's transports that there are here, on two ranks that have met.
func eachUCX(t *testing.T, fn func(t *testing.T, ranks [2]*rank)) {
	for _, transports := range []string{"tcp", "posix,cma", ""} {
		if transports == "" && !haveDevice() {
			continue
		}
		t.Run("over "+transports, func(t *testing.T) {
			ranks := pairOver(t, transports, 1, 1)
			meet(t, ranks)
			ranks[0].sendText(1, "hello")
			both(t, ranks, "contact", func() bool { return len(ranks[1].got) > 0 })
			fn(t, ranks)
		})
	}
}

func both(t *testing.T, ranks [2]*rank, what string, done func() bool) {
	t.Helper()
	drive(t, what, done, ranks[0], ranks[1])
}

// registered returns n bytes that r can put from, and to.
func (r *rank) registered(t *testing.T, n int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err == nil {
		err = r.Register(mem.Bytes(b))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b // until the process ends: UCX may use it when the test has failed
}

func random(n int) []byte {
	b := make([]byte, n)
	g := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	g.Read(b)
	return b
}

// putTo puts src to b of the other rank, and returns how that has ended.
func putTo(t *testing.T, ranks [2]*rank, b, src []byte) error {
	t.Helper()
	place := ranks[1].Place(0, mem.Bytes(b))
	if place == 0 {
		t.Fatalf("%d registered bytes have no place", len(b))
	}
	return putAt(t, ranks, place, src)
}

func putAt(t *testing.T, ranks [2]*rank, place uint64, src []byte) error {
	t.Helper()
	ranks[0].sent = nil
	ranks[0].Put(1, place, mem.Bytes(src), 7)
	both(t, ranks, "the end of a put", func() bool { return len(ranks[0].sent) > 0 })
	return ranks[0].sent[7]
}

// A put arrives where it should and nowhere else, from registered memory and other, and a frame
// that is sent after its end comes later.
func TestPutsAreStored(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const most = 9<<20 + 3
		own, theirs := ranks[0].registered(t, most+100), ranks[1].registered(t, most+100)
		for _, n := range []int{1, 100, 2048, 5000, ucp.ChunkSize, ucp.ChunkSize + 1, 300_001, ucp.PartSize, most} {
			for _, src := range [][]byte{make([]byte, n), own[7:][:n]} {
				copy(src, random(n))
				clear(theirs)
				want := append(append(make([]byte, 33), src...), make([]byte, most+100-33-n)...)
				ranks[1].got = nil
				if err := putTo(t, ranks, theirs[33:][:n], src); err != nil {
					t.Fatalf("%d bytes: %v", n, err)
				}
				clear(src) // it is ours again
				ranks[0].sendText(1, "stored")
				both(t, ranks, "the frame", func() bool { return len(ranks[1].got) > 0 })
				if !bytes.Equal(theirs, want) {
					t.Fatalf("%d bytes: wrong ones, or in the wrong place", n)
				}
			}
		}
	})
}

// Puts in both directions at the same time, with frames between them, are all stored, in few parts
// on their way at a time.
func TestPutsInARowAreStored(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const n, count = 700_001, 40
		var bufs, srcs [2][count][]byte
		for i, r := range ranks {
			for k := range count {
				bufs[i][k] = r.registered(t, n)
				if srcs[i][k] = random(n + k)[:n]; k%2 == 0 {
					copy(bufs[i][k], srcs[i][k]) // of a put to itself this would be the source
				}
			}
			r.sent, r.got = nil, nil
		}
		for k := range count {
			for i, r := range ranks {
				peer := ranks[1-i]
				r.Put(world.Rank(1-i), peer.Place(world.Rank(i), mem.Bytes(bufs[1-i][k])), mem.Bytes(srcs[i][k]),
					uint64(1+k))
				r.sendText(world.Rank(1-i), fmt.Sprint(k))
			}
		}
		both(t, ranks, "all puts and frames", func() bool {
			return len(ranks[0].sent)+len(ranks[1].sent) == 2*count && len(ranks[0].got)+len(ranks[1].got) == 2*count
		})
		for i, r := range ranks {
			for k := range count {
				if err := r.sent[uint64(1+k)]; err != nil || !bytes.Equal(bufs[1-i][k], srcs[i][k]) {
					t.Fatalf("put %d of rank %d: %v, or wrong bytes", k, i, err)
				}
			}
		}
	})
}

// A rank that puts to a recalled place hears that it was in vain; nothing is stored that arrives
// after the recall, and new places hold.
func TestRecalledPlacesGetNothing(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const n = 5 << 20
		theirs, src := ranks[1].registered(t, n), random(n)
		for polls := range 12 {
			place := ranks[1].Place(0, mem.Bytes(theirs))
			clear(theirs)
			ranks[0].sent = nil
			ranks[0].Put(1, place, mem.Bytes(src), 7)
			for range polls {
				ranks[0].Poll(world.None)
				ranks[1].Poll(world.None)
			}
			ranks[1].Recall()
			before := bytes.Clone(theirs)
			both(t, ranks, "the end of a put", func() bool { return len(ranks[0].sent) > 0 })
			err := ranks[0].sent[7]
			switch {
			case err == nil && !bytes.Equal(theirs, src):
				t.Errorf("recalled after %d polls: it ended well, with wrong bytes", polls)
			case err != nil && !errors.Is(err, transport.ErrRecalled):
				t.Errorf("recalled after %d polls: %v, want %v", polls, err, transport.ErrRecalled)
			case polls == 0 && (err == nil || !bytes.Equal(theirs, before)):
				t.Errorf("recalled before the put: %v, and bytes were stored: %v", err, !bytes.Equal(theirs, before))
			}
		}
		if err := putTo(t, ranks, theirs, src); err != nil || !bytes.Equal(theirs, src) {
			t.Errorf("after the recalls: %v, or wrong bytes", err)
		}
	})
}

func TestPlacesThatMeanNothingGetNothing(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const n = ucp.ChunkSize // one part: of a longer put the parts count that lie in the region
		theirs := ranks[1].registered(t, n)
		for name, b := range map[string][]byte{"of other memory": make([]byte, 8), "of nothing": theirs[:0],
			"across the end": theirs[:n][n-4:][:4:4]} {
			if place := ranks[1].Place(0, mem.Bytes(b)); (place != 0) != (name == "across the end") {
				t.Errorf("place %#x %s", place, name)
			}
		}
		whole := ranks[1].Place(0, mem.Bytes(theirs))
		src := random(1 << 20)
		for _, place := range []uint64{0, whole - 1, whole + 1, whole + n, whole + 1<<36, 1 << 39, ^uint64(0)} {
			if err := putAt(t, ranks, place, src); !errors.Is(err, transport.ErrRecalled) {
				t.Errorf("put to place %#x: %v, want %v", place, err, transport.ErrRecalled)
			}
		}
		if !bytes.Equal(theirs, make([]byte, n)) {
			t.Error("bytes were stored")
		}
	})
}

// A forgotten put is not reported, and later puts are stored.
func TestForgottenPutsEnd(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const n = 9 << 20
		theirs, own, next := ranks[1].registered(t, n), ranks[0].registered(t, n), random(1000)
		for polls := range 4 {
			for _, src := range [][]byte{own, make([]byte, n)} {
				ranks[0].sent = nil
				place := ranks[1].Place(0, mem.Bytes(theirs))
				ranks[0].Put(1, place, mem.Bytes(src), 1)
				for range polls {
					ranks[0].Poll(world.None)
				}
				ranks[0].Forget(1, 1)
				ranks[1].Recall() // as the rank does that learns of it
				ranks[0].Put(1, ranks[1].Place(0, mem.Bytes(theirs[:1000])), mem.Bytes(next), 2)
				both(t, ranks, "the next put", func() bool { return len(ranks[0].sent) > 0 })
				if err, ok := ranks[0].sent[1]; ok {
					t.Errorf("after %d polls: the forgotten put ends with %v", polls, err)
				}
				if err := ranks[0].sent[2]; err == nil && !bytes.Equal(theirs[:1000], next) ||
					err != nil && !errors.Is(err, transport.ErrRecalled) {
					t.Errorf("after %d polls: the next put: %v, or wrong bytes", polls, err)
				}
			}
		}
	})
}

// Memory stays registered while UCX uses it, and has no place any more when it is not.
func TestRegionsInUseStay(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const n = 16 << 20
		theirs, own := ranks[1].registered(t, n), ranks[0].registered(t, n)
		ranks[0].Put(1, ranks[1].Place(0, mem.Bytes(theirs)), mem.Bytes(own), 7)
		ranks[0].Poll(world.None)
		if ranks[0].Deregister(mem.Bytes(own)) {
			t.Error("it was deregistered while UCX sends from it")
		}
		both(t, ranks, "the put", func() bool { return len(ranks[0].sent) > 0 && ranks[0].ucp.Outstanding() == 0 })
		for i, b := range [][]byte{own, theirs} {
			if !ranks[i].Deregister(mem.Bytes(b)) {
				t.Errorf("rank %d: it stays registered although nothing uses it", i)
			}
			if place := ranks[i].Place(world.Rank(1-i), mem.Bytes(b)); place != 0 {
				t.Errorf("rank %d: it has place %#x, and is not registered", i, place)
			}
		}
	})
}

func TestRegionsAreBounded(t *testing.T) {
	ranks := pair(t, 1, 1)
	b := ranks[0].registered(t, 1<<20)
	for i := 1; i < ucp.Regions; i++ {
		if err := ranks[0].Register(mem.Bytes(b[4*i:][:4])); err != nil {
			t.Fatalf("region %d: %v", i, err)
		}
	}
	if err := ranks[0].Register(mem.Bytes(b)); !errors.Is(err, errRegions) {
		t.Errorf("one more: %v, want %v", err, errRegions)
	}
}

// Puts to a rank that dies end with its loss.
func TestPutsToARankThatDiesEnd(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const n = 16 << 20
		theirs, own := ranks[1].registered(t, n), ranks[0].registered(t, n)
		place := ranks[1].Place(0, mem.Bytes(theirs))
		ranks[0].sent = nil
		ranks[0].Put(1, place, mem.Bytes(own), 1)
		ranks[0].Put(1, place, mem.Bytes(random(n)), 2)
		for range 3 {
			ranks[0].Poll(world.None)
			ranks[1].Poll(world.None)
		}
		ranks[1].Close(true)
		ranks[0].Ended(1, transport.ErrCut)
		drive(t, "the loss", func() bool { return ranks[0].lost[1] != nil }, ranks[0])
		for token := range uint64(2) {
			if err, ok := ranks[0].sent[1+token]; !ok || err == nil {
				t.Errorf("put %d: %v (%v), want the loss", token, err, ok)
			}
		}
		ranks[0].Deregister(mem.Bytes(own)) // whatever it says, nothing breaks
	})
}

// A sinkhole takes arriving frames, and allocates nothing.
type sinkhole struct {
	window []byte
	frames int
	sent   uint64
}

func (s *sinkhole) Arrive(_ world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	return mem.Bytes(s.window[:h.Len]), 1
}
func (s *sinkhole) Filled(uint64) mem.Buffer {
	s.frames++
	return mem.Buffer{}
}
func (s *sinkhole) Sent(token uint64, _ error) { s.sent = token }
func (s *sinkhole) Lost(world.Rank, error)     {}

// Frames, short and long, and puts allocate nothing in Go once there have been some.
func TestNothingAllocates(t *testing.T) {
	const n = 700_000
	var sinks [2]*sinkhole
	var ranks [2]*Transport
	for i := range ranks {
		sinks[i] = &sinkhole{window: make([]byte, n)}
		tr, set := start(t, Config{Rank: world.Rank(i), Size: 2, Transports: "tcp"}, sinks[i])
		ranks[i] = tr
		t.Cleanup(func() { tr.Close(true); set.Close() })
	}
	for _, r := range ranks {
		if err := r.SetCards([][]byte{ranks[0].Card(), ranks[1].Card()}); err != nil {
			t.Fatal(err)
		}
	}
	theirs := (&rank{Transport: ranks[1]}).registered(t, n)
	own := (&rank{Transport: ranks[0]}).registered(t, n)
	private, h := make([]byte, n), new(transport.Header)
	round := func() {
		frames := sinks[1].frames
		for _, size := range []int{8, n} {
			h.Kind = transport.Eager
			ranks[0].Send(1, h, mem.Bytes(private[:size]), 9)
		}
		for token, src := range [][]byte{own, private} {
			sinks[0].sent = 0
			ranks[0].Put(1, ranks[1].Place(0, mem.Bytes(theirs)), mem.Bytes(src), uint64(token)+1)
			for end := time.Now().Add(acceptTime); sinks[0].sent != uint64(token)+1 || sinks[1].frames < frames+2; {
				ranks[0].Poll(1)
				ranks[1].Poll(0)
				if time.Now().After(end) {
					t.Fatal("a put or a frame does not end")
				}
			}
		}
	}
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations for two frames and two puts, want 0", n)
	}
}
