package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/stress"
	"gompi/internal/ways"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/transporttest"
)

// manyRanks is a number of ranks whose rings have the smallest size.
const manyRanks = 200

// area returns zeroed memory for n ranks, aligned like pages.
func area(n int) []byte {
	const page = 4096
	mem := make([]byte, Size(n)+page)
	off := int(-uintptr(unsafe.Pointer(&mem[0])) % page)
	return mem[off:][:Size(n)]
}

func claimed(off, n int) error { return nil }

// openNet makes a Net whose ranks share memory of this process.
func openNet(t *testing.T, sinks []transport.Sink) *transporttest.Net {
	return openAmong(t, sinks, len(sinks))
}

// openAmong makes a Net of the first of n ranks.
func openAmong(t *testing.T, sinks []transport.Sink, n int) *transporttest.Net {
	return openShaped(t, sinks, n, func(int) Shape { return defaultShape })
}

// openShaped makes a Net of the first of n ranks, each with the shape of its own.
func openShaped(t *testing.T, sinks []transport.Sink, n int, shape func(rank int) Shape) *transporttest.Net {
	mem := area(n)
	heaps := make([][]byte, len(sinks))
	for i := range heaps {
		heaps[i] = make([]byte, 10<<20)[:9<<20+4096]
	}
	states := make([]atomic.Uint32, n)
	sets := make([]*poll.Set, len(sinks))
	ranks := make([]world.Rank, n)
	for i := range ranks {
		ranks[i] = world.Rank(i)
	}
	for i := range sets {
		set, err := poll.New(-1)
		if err != nil {
			t.Fatal(err)
		}
		sets[i] = set
	}
	net := &transporttest.Net{Heap: func(rank world.Rank) []byte { return heaps[rank] }}
	for i, s := range sinks {
		tr, err := New(Config{
			Local: world.LocalRank(i), Ranks: ranks, Area: mem, Claim: claimed,
			Heap:  func(local world.LocalRank) []byte { return heaps[local] },
			Ring:  func(local world.LocalRank) { sets[local].Wake() },
			State: func(local world.LocalRank) State { return State(states[local].Load()) },
		}, s)
		if err != nil {
			t.Fatal(err)
		}
		tr.SetShape(shape(i))
		net.Ends = append(net.Ends, transporttest.End{Transport: tr, Parker: sets[i]})
	}
	net.Kill = func(rank world.Rank) {
		states[rank].Store(uint32(Dead))
		for _, s := range sets {
			s.Wake()
		}
	}
	net.Done = func() {
		for _, s := range sets {
			s.Close()
		}
	}
	return net
}

func TestConformance(t *testing.T) { transporttest.Run(t, openNet) }

func TestFaulty(t *testing.T) { transporttest.RunFaulty(t, openNet) }

// The smallest rings make every frame wait for room.
func TestConformanceWithTheSmallestRings(t *testing.T) {
	if ringSize(manyRanks) != smallestRing {
		t.Fatalf("rings of %d bytes for %d ranks, want %d", ringSize(manyRanks), manyRanks, smallestRing)
	}
	transporttest.Run(t, func(t *testing.T, sinks []transport.Sink) *transporttest.Net {
		return openAmong(t, sinks, manyRanks)
	})
}

// shapes are as different as can be.
var shapes = []Shape{
	defaultShape,
	{Chunk: leastRecord, Bytes: firstLap},
	{Chunk: leastRecord + 1, Bytes: largestRing},
	{Chunk: mostRecord, Bytes: firstLap},
	{Chunk: mostRecord, Bytes: largestRing},
	{Chunk: 16 << 10, Bytes: 256 << 10},
	{Chunk: 20_000, Bytes: 300_000},
}

// Each way of a copy delivers, and any mix of them.
func TestConformanceOfEachCopy(t *testing.T) {
	defer func(all [len(copies)]func(dst, src []byte), p ways.Pace) { copies, pace = all, p }(copies, pace)
	pace.First = 0
	for way, f := range copies {
		t.Run(fmt.Sprint("way ", way), func(t *testing.T) {
			defer func(all [len(copies)]func(dst, src []byte)) { copies = all }(copies)
			copies = [len(copies)]func(dst, src []byte){f, f, f}
			transporttest.Run(t, openNet)
		})
	}
	pace.Random = true
	t.Run("random", func(t *testing.T) { transporttest.Run(t, openNet) })
}

// A reader takes records of any shape, whatever its own is.
func TestConformanceWhereEachRankHasItsOwnShape(t *testing.T) {
	for _, first := range []int{1, 3} {
		t.Run(fmt.Sprintf("from %+v on", shapes[first]), func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T, sinks []transport.Sink) *transporttest.Net {
				return openShaped(t, sinks, len(sinks),
					func(rank int) Shape { return shapes[(first+rank)%len(shapes)] })
			})
		})
	}
}

func TestShapesAreThoseThatRingsCanHave(t *testing.T) {
	for _, test := range []struct{ s, want Shape }{
		{defaultShape, defaultShape},
		{Shape{}, Shape{Chunk: 4 << 10, Bytes: 64 << 10}},
		{Shape{Chunk: 1 << 40, Bytes: 1 << 40},
			Shape{Chunk: 64 << 10, Bytes: 2 << 20}},
		{Shape{Chunk: 20_000, Bytes: 300_000}, Shape{Chunk: 20_000 &^ 63, Bytes: 256 << 10}},
	} {
		if got := test.s.rounded(); got != test.want {
			t.Errorf("%+v: %+v, want %+v", test.s, got, test.want)
		}
	}
}

func TestRingsOfAllHostsFitTheirBound(t *testing.T) {
	for n := 1; n <= MaxRanks; n++ {
		if rings := n * n * ringSize(n); rings > allRings && ringSize(n) > smallestRing {
			t.Errorf("%d ranks: rings of %d bytes, %d in all", n, ringSize(n), rings)
		}
	}
}

// A sink that keeps why peers were lost.
type losses map[world.Rank]error

func (losses) Arrive(world.Rank, *transport.Header) (mem.Buffer, uint64) { return mem.Buffer{}, 0 }
func (losses) Filled(uint64) mem.Buffer                                  { return mem.Buffer{} }
func (losses) Sent(uint64, error)                                        {}
func (l losses) Lost(peer world.Rank, err error)                         { l[peer] = err }

// pair returns the transports of two ranks and the losses of the second.
func pair(t *testing.T, claim func(off, n int) error) (a, b *Transport, lost losses) {
	mem, lost := area(2), losses{}
	heaps := make([]byte, 200)
	heap := func(local world.LocalRank) []byte { return heaps[100*local:][:100:100] }
	cfg := Config{Ranks: []world.Rank{7, 9}, Area: mem, Heap: heap, Claim: claimed, Ring: func(world.LocalRank) {},
		State: func(world.LocalRank) State { return Alive }}
	b, err := New(Config{
		Local: 1, Ranks: cfg.Ranks, Area: mem, Heap: heap, Claim: claimed, Ring: cfg.Ring, State: cfg.State,
	}, lost)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Claim = claim; claim == nil {
		cfg.Claim = claimed
	}
	if a, err = New(cfg, losses{}); err != nil {
		t.Fatal(err)
	}
	return a, b, lost
}

func TestWithoutMemoryForARingAPeerIsNotReached(t *testing.T) {
	a, b, _ := pair(t, func(off, n int) error {
		if off > 0 {
			return errors.New("no memory")
		}
		return nil
	})
	if a.Reaches(9) {
		t.Error("reaches a peer without memory for the ring")
	}
	if !b.Reaches(7) || b.Reaches(9) || b.Reaches(0) {
		t.Errorf("reaches 7, 9 and 0: %v, %v, %v; want only 7, the other rank", b.Reaches(7), b.Reaches(9),
			b.Reaches(0))
	}
}

// A record that no rank of this version writes loses the peer, and harms nothing else.
func TestNonsenseInARingIsAProtocolError(t *testing.T) {
	whole := length(transport.HeaderSize)
	for name, spoil := range map[string]func(w *writer){
		"kind":        func(w *writer) { w.word(0).Store(9) },
		"length":      func(w *writer) { w.word(0).Store(lengthMask<<lengthAt | first) },
		"no header":   func(w *writer) { w.word(0).Store(8<<8 | first) },
		"header":      func(w *writer) { w.mem[wordSize] = 0xff },
		"no frame":    func(w *writer) { w.word(0).Store(8<<8 | more) },
		"too long":    func(w *writer) { w.word(0).Store(uint64(transport.HeaderSize+8)<<8 | first) },
		"growth":      func(w *writer) { w.word(0).Store(uint64(transport.HeaderSize)<<8 | first | grown) },
		"growth to 0": func(w *writer) { w.word(0).Store(uint64(transport.HeaderSize)<<8 | first | grown | turned) },
		"growth to 96 K": func(w *writer) {
			w.grownTo.Store(96 << 10)
			w.word(0).Store(uint64(transport.HeaderSize)<<8 | first | grown | turned)
		},
		"growth to 4 M": func(w *writer) {
			w.grownTo.Store(2 * largestRing)
			w.word(0).Store(uint64(transport.HeaderSize)<<8 | first | grown | turned)
		},
		"half a question": func(w *writer) { w.word(0).Store(8<<8 | invite) },
		"no heap there":   func(w *writer) { w.word(0).Store(invitationSize<<8 | invite) },
		"not the end":     func(w *writer) { w.word(uint64(whole)).Store(8<<8 | more) },
	} {
		a, b, lost := pair(t, nil)
		a.Send(9, &transport.Header{Kind: transport.Credit}, mem.Buffer{}, 0)
		spoil(&a.peers[1].w)
		b.Poll(-1)
		if err := lost[7]; !errors.Is(err, transport.ErrProtocol) {
			t.Errorf("%s: lost with %v, want %v", name, err, transport.ErrProtocol)
		}
	}
}

// Two goroutines send each other frames of all sizes through the smallest rings
// and through ones that grow, and stop for a moment wherever chance has it. Of some
// frames the writer waits until they have been read, as one does that is answered.
func TestStreamsSurviveAnyTiming(t *testing.T) {
	for _, n := range []int{manyRanks, 2} {
		for _, s := range shapes {
			t.Run(fmt.Sprintf("%d ranks, %+v", n, s), func(t *testing.T) {
				end := stress.Until(t)
				for seed := uint64(1); seed == 1 || stress.Asked() && time.Now().Before(end); seed++ {
					streams(t, n, s.rounded(), seed)
				}
			})
		}
	}
}

// streams sends frames through a ring of a host with n ranks.
func streams(t *testing.T, n int, shape Shape, seed uint64) {
	frames := 20_000
	if testing.Short() {
		frames = 2000
	}
	mem := area(n)[ringsAt(n):][:stride(n)]
	w, r := writer{ring: newRing(mem)}, newReader(mem)
	w.setShape(shape)
	if n == 2 { // and any mix of copies
		random := ways.Pace{Ways: int8(len(copies)), Random: true}
		w.copies = &copier{short: ways.New(random), long: ways.New(random)}
	}
	longest, claims := 0, 0
	w.claim = func() bool { // not at first
		claims++
		return claims > 3
	}
	var read atomic.Uint64
	turns := 0
	pause := func(r *rand.Rand) {
		for range r.IntN(4) {
			runtime.Gosched()
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		body := make([]byte, 1<<17) // longer than any record, and several times the smallest ring
		for i := range frames {
			b := body[:rng.IntN(1<<rng.IntN(14))]
			if i%64 == 0 {
				b = body[:rng.IntN(len(body))]
			}
			if i&32 != 0 {
				for b = b[:len(b)&(smallBody-1)]; w.seen != w.tail; w.noteRead(read.Load()) {
					runtime.Gosched()
				}
			}
			for j := range b {
				b[j] = byte(i + j)
			}
			h := transport.Header{Kind: transport.Eager, A: uint64(i), Len: int64(len(b))}
			n, begun := w.begin(&h, b)
			for ; !begun; n, begun = w.begin(&h, b) {
				runtime.Gosched()
			}
			for n < len(b) {
				pause(rng)
				k := w.continueFrame(b[n:])
				if n += k; k == 0 {
					runtime.Gosched()
				}
			}
		}
	})
	rng := rand.New(rand.NewPCG(seed, 2))
	for i, left, at := 0, 0, 0; i < frames; {
		kind, content := r.next()
		body := content
		switch kind {
		case 0:
			runtime.Gosched()
			continue
		case first:
			var h transport.Header
			if err := h.Decode(content); err != nil || h.A != uint64(i) || left != 0 {
				t.Fatalf("frame %d: header %+v, %v, with %d bytes of the one before to come", i, h, err, left)
			}
			body, left, at = content[transport.HeaderSize:], int(h.Len), 0
		case -1:
			t.Fatalf("frame %d: nonsense", i)
		}
		for _, b := range body {
			if b != byte(i+at) {
				t.Fatalf("frame %d: byte %d is %d, want %d", i, at, b, byte(i+at))
			}
			at++
		}
		pause(rng)
		longest = max(longest, length(len(content)))
		if r.after != r.pos+uint64(length(len(content))) {
			turns++
		}
		r.done()
		read.Store(r.pos << toRead)
		if left -= len(body); left == 0 {
			i++
		}
	}
	all.Wait()
	if least := frames / 64; n == 2 && turns < least {
		t.Errorf("%d short laps, want %d at least", turns, least)
	}
	if longest > shape.Chunk {
		t.Errorf("a record of %d bytes, want %d at most", longest, shape.Chunk)
	}
	if size := uint64(min(ringSize(n), shape.Bytes)); w.lap != size || r.lap != size {
		t.Errorf("the writer uses %d bytes of the ring and the reader %d, want all %d", w.lap, r.lap, size)
	}
}

// A frame that fits is written to its end, at the beginning of a lap or behind other frames.
func TestAFrameThatFitsIsWrittenWhole(t *testing.T) {
	mem := area(2)[ringsAt(2):][:stride(2)]
	for _, s := range shapes {
		s = s.rounded()
		fits := 0
		for n := transport.ShortFrame - 8; n < firstLap; n += 1 + (firstLap-n)/200 {
			w, body := writer{ring: newRing(mem), claim: func() bool { return false }}, make([]byte, n)
			w.setShape(s)
			for range 4 {
				if !w.fits(n) {
					break
				}
				fits++
				k, _ := w.begin(&transport.Header{Kind: transport.Eager, Len: int64(n)}, body)
				for k < n {
					more := w.continueFrame(body[k:])
					if k += more; more == 0 {
						t.Fatalf("%+v: of %d bytes that fit %d have no room", s, n, n-k)
					}
				}
				w.noteRead(w.tail << toRead)
			}
		}
		if fits < 1000 {
			t.Errorf("%+v: %d frames fit, want most", s, fits)
		}
	}
}

// Messages that are answered go around a short lap, once the ring has grown for the longer ones;
// others find the whole ring free.
func TestSmallMessagesThatAreAnsweredStayInAShortLap(t *testing.T) {
	for _, body := range []int{smallBody, smallRecord - frameHead} {
		a, b, _ := pair(t, nil)
		send := func(from, to *Transport) int {
			if !from.Send(to.Ranks[to.Local], &transport.Header{Kind: transport.Eager},
				mem.Bytes(make([]byte, body)), 0) {
				t.Fatal("a small message waits for room")
			}
			to.Poll(-1)
			w := &from.peers[to.Local].w
			return w.at(w.tail)
		}
		for range 10 {
			send(a, b)
			send(b, a)
		}
		most := 0
		for range 100 {
			most = max(most, send(a, b))
			send(b, a)
		}
		if want := shortLap + 2*length(transport.HeaderSize+body); most > want {
			t.Errorf("answered messages of %d bytes reach byte %d of the ring, want %d at most", body, most, want)
		}
		for range 3 * largestRing / body {
			most = max(most, send(a, b))
		}
		if want := firstLap - 4<<10; most < want {
			t.Errorf("messages of %d bytes that are not answered reach byte %d of the ring, want %d at least",
				body, most, want)
		}
	}
}

// Where many short messages are under way the ring grows for them.
func TestARingGrowsForManyShortMessages(t *testing.T) {
	a, b, _ := pair(t, nil)
	if !a.Reaches(9) {
		t.Fatal("has no ring to its peer")
	}
	w := &a.peers[b.Local].w
	for _, c := range []struct{ together, want int }{{8, firstLap}, {firstLap * 3 / 4 / 600, largestRing}} {
		for range 200 {
			for range c.together { // before any is read
				if !a.Send(9, &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, 512)), 0) {
					t.Fatal("a short message waits for room")
				}
			}
			for b.Poll(-1) > 0 {
			}
		}
		if w.lap != uint64(c.want) {
			t.Errorf("with %d messages under way a ring goes round in %d bytes, want %d", c.together, w.lap, c.want)
		}
	}
}

// A word may lie unread while the ring that it tells of goes around 4 GiB.
func TestWhatWasToldLongAgoIsNotTakenForNews(t *testing.T) {
	a, b, _ := pair(t, nil)
	send := func(from, to *Transport) {
		from.Send(to.Ranks[to.Local], &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, smallBody)), 0)
	}
	send(a, b)
	b.Poll(-1)
	send(b, a)
	w, r := &a.peers[b.Local].w, &b.peers[a.Local].r
	const on = 1<<32 - firstLap/2 // so far both ends go, without a look at the word
	for _, pos := range []*uint64{&w.base, &w.tail, &w.seen, &w.since, &w.clean, &r.base, &r.pos, &r.returned} {
		*pos += on
	}
	r.returnCredit()
	for w.tail <= 1<<32+firstLap/4 {
		send(a, b)
	}
	a.Poll(-1)
	if w.seen > r.pos {
		t.Errorf("the writer takes positions up to %d for read, the reader is at %d", w.seen, r.pos)
	}
}

// Without memory to grow a ring stays as it is, and small messages ask for none.
func TestARingThatCannotGrowStaysInUse(t *testing.T) {
	asked := 0
	a, b, lost := pair(t, func(off, n int) error {
		if n > controlSize+firstLap {
			asked++
			return errors.New("no memory")
		}
		return nil
	})
	for _, size := range []int{smallBody, 16 << 10} {
		for range 3 * firstLap / size {
			if !a.Send(9, &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, size)), 0) {
				t.Fatalf("a message of %d bytes waits for room", size)
			}
			for b.Poll(7) > 0 {
			}
		}
		if want := size / (16 << 10); asked != want { // once is enough
			t.Errorf("messages of %d bytes: asked for memory %d times, want %d", size, asked, want)
		}
	}
	if w := &a.peers[1].w; w.lap != firstLap || len(lost) > 0 {
		t.Errorf("the ring has %d bytes and %v is lost, want %d and none", w.lap, lost, firstLap)
	}
}
