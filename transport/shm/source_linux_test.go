package shm

import (
	"bytes"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/mem"
	"gompi/internal/world"
)

// needReading leaves out a test where the kernel reads no process for us.
func needReading(t *testing.T) {
	t.Helper()
	var own [8]byte
	if err := readMemory(os.Getpid(), make([]byte, 8), uintptr(unsafe.Pointer(&own))); err != nil {
		t.Skipf("left out: %v", err)
	}
}

// readers returns two ranks of this process, which they know by these numbers, and the ends of the
// first.
func readers(t *testing.T, pids ...int) (ranks [2]*Transport, sink *ends) {
	needReading(t)
	area, heap := area(2), make([]byte, 100)
	sink = &ends{losses: losses{}}
	for i := range ranks {
		s := &ends{losses: losses{}}
		if i == 0 {
			s = sink
		}
		var err error
		if ranks[i], err = New(Config{Local: world.LocalRank(i), Ranks: []world.Rank{0, 1}, Area: area, Claim: claimed,
			Ring: func(world.LocalRank) {},
			Heap: func(world.LocalRank) []byte { return heap }, State: func(world.LocalRank) State { return Alive },
			PID: func(local world.LocalRank) int { return pids[local] }}, s); err != nil {
			t.Fatal(err)
		}
	}
	ranks[0].Reaches(1)
	return ranks, sink
}

// get has rank 0 get from a place, and reports whether it got all.
func get(ranks [2]*Transport, sink *ends, place uint64, dst []byte) bool {
	all, well := sink.all, sink.well
	for ranks[0].Get(1, place, mem.Bytes(dst), 1, true); sink.all == all; {
		ranks[0].Poll(1)
	}
	return sink.well > well
}

func TestOrdinaryMemoryIsRead(t *testing.T) {
	ranks, sink := readers(t, os.Getpid(), os.Getpid())
	for i, n := range []int{1, 100, 5000, readChunk, readChunk + 1, 3*readChunk + 7} {
		src, dst := make([]byte, n+2), make([]byte, n+2)
		for j := range src {
			src[j] = byte(1 + i + j + j>>8)
		}
		place := ranks[1].Source(0, mem.Bytes(src[1:][:n]))
		if !get(ranks, sink, place, dst[1:][:n]) {
			t.Fatal("memory was not read")
		}
		if src[0], src[n+1] = 0, 0; !bytes.Equal(src, dst) {
			t.Errorf("%d bytes: wrong, or in the wrong place", n)
		}
		ranks[0].Put(1, place, mem.Bytes(dst[1:][:n]), 1)
		for all := sink.all; sink.all == all; {
			ranks[0].Poll(1)
		}
		if sink.well != i+1 {
			t.Errorf("%d bytes: a put to ordinary memory ended well", n)
		}
	}
}

// A recalled or unmapped place is read in vain, but not the next place.
func TestOrdinaryMemoryIsReadInVain(t *testing.T) {
	ranks, sink := readers(t, os.Getpid(), os.Getpid())
	src, dst := bytes.Repeat([]byte{7}, 4*readChunk), make([]byte, 4*readChunk)
	if !get(ranks, sink, ranks[1].Source(0, mem.Bytes(src)), dst) {
		t.Fatal("memory was not read")
	}
	for polls := range 4 {
		all, well := sink.all, sink.well
		ranks[0].Get(1, ranks[1].Source(0, mem.Bytes(src)), mem.Bytes(dst), 1, true)
		for range polls {
			ranks[0].Poll(1)
		}
		for ranks[1].Recall(); sink.all == all; {
			ranks[0].Poll(1)
		}
		if sink.well != well && polls < 3 { // it may have ended before
			t.Errorf("recalled after %d polls: read nevertheless", polls)
		}
	}
	gone, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	place := ranks[1].Source(0, mem.Bytes(gone))
	if err := unix.Munmap(gone); err != nil {
		t.Fatal(err)
	}
	if get(ranks, sink, place, dst[:1<<20]) {
		t.Error("memory was read that is not there")
	}
	if !get(ranks, sink, ranks[1].Source(0, mem.Bytes(src)), dst) {
		t.Error("nothing is read any more")
	}
}

// A process that is not the peer is not read, and then nothing is offered to who found that out.
func TestAnotherProcessIsNotRead(t *testing.T) {
	parent := os.Getppid()
	ranks, sink := readers(t, os.Getpid(), parent)
	src, dst := bytes.Repeat([]byte{7}, 1000), make([]byte, 1000)
	if get(ranks, sink, ranks[1].Source(0, mem.Bytes(src)), dst) || !bytes.Equal(dst, make([]byte, 1000)) {
		t.Error("memory of another process was taken for the peer's")
	}
	if place := ranks[1].Source(0, mem.Bytes(src)); place != 0 {
		t.Errorf("place %#x for a rank that cannot read it", place)
	}
	if place := ranks[0].Source(1, mem.Bytes(src)); place == 0 {
		t.Error("no place for a rank that may be able to read it")
	}
}

// getTogether is get where the peer helps, as it does while it waits for the answer. They copy in
// turns.
func getTogether(t *testing.T, ranks [2]*Transport, sink *ends, place uint64, dst []byte) bool {
	all, well := sink.all, sink.well
	for ranks[0].Get(1, place, mem.Bytes(dst), 1, true); sink.all == all; {
		ranks[0].begun(t, 1)
		ranks[1].begun(t, 1)
	}
	return sink.well > well
}

// together returns two ranks that have copied src of the second to dst of the first.
func together(t *testing.T) (ranks [2]*Transport, sink *ends, src, dst []byte) {
	t.Helper()
	ranks, sink = readers(t, os.Getpid(), os.Getpid())
	ranks[1].Reaches(0)
	src, dst = bytes.Repeat([]byte{7}, 9*leastChunk), make([]byte, 9*leastChunk)
	if !getTogether(t, ranks, sink, ranks[1].Source(0, mem.Bytes(src)), dst) {
		t.Fatal("memory was not read")
	}
	return ranks, sink, src, dst
}

func TestBothCopyOrdinaryMemory(t *testing.T) {
	ranks, sink := readers(t, os.Getpid(), os.Getpid())
	ranks[1].Reaches(0)
	src, dst := make([]byte, 9*leastChunk), make([]byte, 9*leastChunk)
	for j := range src {
		src[j] = byte(1 + j + j>>8)
	}
	for i, n := range []int{helpFrom, helpFrom + 1, 9*leastChunk - 1, 9 * leastChunk} {
		clear(dst)
		place := ranks[1].Source(0, mem.Bytes(src[:n]))
		if !getTogether(t, ranks, sink, place, dst[:n]) {
			t.Fatal("memory was not read")
		}
		if !bytes.Equal(src[:n], dst[:n]) {
			t.Errorf("%d bytes: wrong", n)
		}
		p, x := ranks[0].peers[1], move{dst: dst[:n], shared: sharing{claims: new(atomic.Uint64)}}
		if number, helped := p.w.helped.Load()>>takenBits, p.w.helped.Load()&takenMask; number != uint64(i+1) ||
			helped < uint64(n/x.chunk()/2-1) || helped == couldNot {
			t.Errorf("%d bytes: the peer copied %d chunks of copy %d, want half of them, of copy %d", n, helped,
				number, i+1)
		}
	}
}

// A copy that is given up leaves its destination alone, also if the peer was about to help; and one
// whose source is recalled goes no further.
func TestHelpEndsWithTheCopy(t *testing.T) {
	ranks, sink, src, dst := together(t)
	for _, giveUp := range []func(){ranks[1].Recall, func() { ranks[0].Forget(1, 1) }} {
		for polls := range 4 {
			clear(dst)
			ranks[0].Get(1, ranks[1].Source(0, mem.Bytes(src)), mem.Bytes(dst), 1, true)
			ranks[0].begun(t, polls)
			ranks[1].begun(t, polls)
			giveUp()
			ranks[0].Poll(1)
			clear(dst)
			for range 10 {
				ranks[1].Poll(0)
				ranks[0].Poll(1)
			}
			if !bytes.Equal(dst, make([]byte, len(dst))) {
				t.Fatalf("given up after %d polls: the destination is written to", polls)
			}
		}
	}
	if !getTogether(t, ranks, sink, ranks[1].Source(0, mem.Bytes(src)), dst) || !bytes.Equal(src, dst) {
		t.Error("the next copy is wrong")
	}
}

// begun polls so often, but copies one chunk at most each time.
func (t *Transport) begun(tb testing.TB, polls int) {
	tb.Helper()
	for range polls {
		t.findWriters()
		for _, p := range t.readers {
			t.receive(p, records)
		}
		for _, p := range t.used {
			if p.moves.Empty() {
				continue
			}
			if _, over := t.advance(p, &p.moves.Items()[0]); over {
				t.end(p)
			}
		}
	}
}

// A peer that cannot write to the destination says so, and the message goes the other way.
func TestHelpThatFails(t *testing.T) {
	ranks, sink, src, dst := together(t)
	all, well := sink.all, sink.well
	ranks[0].Get(1, ranks[1].Source(0, mem.Bytes(src)), mem.Bytes(dst), 1, true)
	ranks[0].begun(t, 1)
	ranks[1].findWriters()
	ranks[1].receive(ranks[1].peers[0], records)
	ranks[1].peers[0].moves.Items()[0].sink = 8 // it has begun to help; nothing is there
	for sink.all == all {
		ranks[1].Poll(0)
		ranks[0].Poll(1)
	}
	if sink.well != well {
		t.Error("a copy of which a part was not made ended well")
	}
}
