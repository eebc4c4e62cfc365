package shm

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// This file implements transport.Direct. All ranks of a host map each rank's symmetric
// heap, so its peers read and write buffers there in place. That is one copy instead of two
// (2 ranks on processors near each other, through the ring, with one side in a heap, and
// with both: latency of 256 KiB 16.6, 11 and 7 us, of 1 MiB 50, 32 and 16; window of 1 MiB
// 37, 28 and 13 us a message, of 16 MiB 1.6, 1.2 and 0.4 ms).
//
// # Recalls
//
// A place is an offset in the heap of the rank that sends it, and the number of recalls of
// that rank at that time. A rank that copies compares this number with the one in the
// owner's line: before each chunk and, after a read, once more behind the last chunk. The
// owner recalls its places before it changes memory that others may still read. So either
// the reader has read the bytes that were offered, or it finds the number changed.
//
// That needs two orders between the plain loads and stores of the bytes and the atomic
// accesses to the number. First, the owner's stores must not be seen before its recall: Recall
// is an atomic Add, whose load acquires on every processor, so that no later store is
// done before it. Second, the reader's loads must be done before it looks at the number for
// the last time. On amd64 they are, since loads are done in the order of the program. On
// arm64 an atomic load (LDAR) holds back what is behind it, and lets what is before it be
// done later; so there read adds 0 to the number. The store of that Add releases: the
// reader's loads are done before it. If it finds the old number, no recall was before it,
// and as nothing comes between the load and the store of an Add, the next recall loads
// what it stored, or what later Adds made of that. So the reader's loads come before that
// store, it before the recall's load, and that before the owner's stores.
//
// # Copies that both ranks make
//
// If both buffers of a Get lie in heaps, or the source in the peer's own memory, the peer can help.
// The rank that gets invites it by a record in its ring. The inviter takes chunks from the front;
// the peer, once it reads the record, takes chunks from the back. Each takes a chunk by a
// compare-and-swap of the word claims, so that no chunk is copied twice. The inviter does not wait
// for a peer that computes instead of helping. Bits of the word: 40 to 63 the number of the
// invitation, which is different each time, so that a peer which comes late takes nothing; 20 to 39
// the chunks taken by the peer, 0 to 19 those by the inviter. When all are taken, the peer's number
// is final, and the inviter waits until the word helped, which the peer stores after each chunk,
// says as many, or that the peer could not.
//
// An inviter that gives the copy up takes all chunks away. If the destination is its caller's own
// memory, it waits for the one that the peer may be copying: the caller has the memory back then.

const (
	// placeBits is what a place holds the offset in, 1 for the first byte; or an address.
	placeBits  = 48
	recallMask = 1<<(64-placeBits) - 1
	// loadsInOrder means that the processor does loads in the order of the program.
	loadsInOrder = runtime.GOARCH == "amd64"
	// A chunk is what is copied between two looks at whether it is still wanted, and what the two
	// who share a copy take at a time. It takes some microseconds. It is a quarter of the copy, in
	// multiples of leastChunk: less makes more calls of the kernel, more leaves none for who comes
	// late (np=2, Intel Xeon 6/207, chunks of 64, 256 KiB and 1 MiB at most: latency of 512 KiB
	// 17.5, 14.5 and 15.1 us, of 1 MiB 44, 35 and 37, bw of 4 MiB 239, 211 and 198; in eighths
	// latency of 1 MiB 39).
	leastChunk, mostChunk = 64 << 10, 256 << 10
	// helpFrom is the length of the shortest copy that the peer is asked to help with:
	// two chunks (np=2 near, in windows, alone and with help: 128 KiB 3.4 and 2.6 us a
	// message, 1 MiB 24.6 and 15.7; np=4 on two processors, a window of two pairs each of
	// 1 MiB: 45 and 48, so it does no harm where no peer has time to help).
	helpFrom = 128 << 10
	// nonTemporalFrom is the length from which on copies are non-temporal (np=2 near, in
	// windows, plain and non-temporal: 4 MiB 57 and 91 us a message, 16 MiB 570 and
	// 369).
	nonTemporalFrom = 8 << 20

	// How often a rank looks whether a helper has copied a chunk, which takes some microseconds,
	// unless the helper does not run: first at once, then each time after a pause.
	looks, pausedLooks = 1000, 10_000
	pause              = 100 * time.Microsecond

	takenBits   = 20
	takenMask   = 1<<takenBits - 1
	invitations = 1<<(64-2*takenBits) - 1
	couldNot    = takenMask // helped, of a peer that could not copy a chunk that it had taken
)

// A move is a copy from or to a peer's memory that is under way.
type move struct {
	dst, src []byte
	source   uintptr // instead of src: where it lies in the peer's own memory
	sink     uintptr // instead of dst, which has its length: where it lies there
	place    uint64  // at the peer, or this rank's own if it helps
	token    uint64
	next     int  // the chunk to copy, without a helper
	put      bool // dst is the peer's
	ask      bool // the peer may be asked to help
	shared   sharing
	err      error
}

// A sharing is a copy's part in the words of a ring, of which there are two: for who
// invited and for who helps.
type sharing struct {
	claims, helped *atomic.Uint64 // nil: there is no helper
	number         uint64
	helping        bool
}

// moves are the copies from and to one peer, first come, first served.
type moves struct{ fifo.Queue[move] }

// ready reports whether there is something to copy, or a copy has ended.
func (m *moves) ready() bool {
	if m.Empty() {
		return false
	}
	x := &m.Items()[0]
	_, _, _, left := x.left()
	return left || x.over()
}

// Place implements transport.Direct.
func (t *Transport) Place(rank world.Rank, b mem.Buffer) uint64 {
	if b.Size() == 0 || !b.IsHost() || t.local(rank) < 0 {
		return 0
	}
	body, heap := b.HostSlice(), t.Heap(t.Local)
	off := uintptr(unsafe.Pointer(unsafe.SliceData(body))) - uintptr(unsafe.Pointer(unsafe.SliceData(heap)))
	if off >= uintptr(len(heap)) || uintptr(len(heap))-off < uintptr(len(body)) {
		return 0
	}
	return t.recalls(t.Local)<<placeBits | uint64(off+1)
}

// recalls returns the number of recalls in the places that a rank sends now.
func (t *Transport) recalls(local world.LocalRank) uint64 {
	return t.lines[local].recalls.Load() & recallMask
}

// Recall implements transport.Direct.
func (t *Transport) Recall() { t.lines[t.Local].recalls.Add(1) }

// holds reports whether a place that a rank has sent still holds.
func (t *Transport) holds(local world.LocalRank, place uint64) bool {
	return place>>placeBits == t.recalls(local)
}

// read is holds for a reader, after its last load from the place: see Recalls.
func (t *Transport) read(local world.LocalRank, place uint64) bool {
	if !loadsInOrder {
		return place>>placeBits == t.lines[local].recalls.Add(0)&recallMask
	}
	return t.holds(local, place)
}

// at returns n bytes from a place of a rank's heap on, nil if they are not there.
func (t *Transport) at(local world.LocalRank, place uint64, n int) []byte {
	heap, off := t.Heap(local), place&(1<<placeBits-1) // the address of a source is beyond any heap
	if off == 0 || off-1 > uint64(len(heap)) || uint64(n) > uint64(len(heap))-(off-1) {
		return nil
	}
	return heap[off-1:][:n:n]
}

// Get implements transport.Direct.
func (t *Transport) Get(rank world.Rank, place uint64, dst mem.Buffer, token uint64, helped bool) {
	p := t.peer(t.local(rank))
	x := move{dst: dst.HostSlice(), place: place, token: token, ask: helped && dst.Size() >= helpFrom}
	if place&isSource != 0 {
		x.source = addressOf(place)
	} else {
		x.src = t.at(p.local, place, dst.Size())
	}
	t.begin(p, x)
}

// Put implements transport.Direct.
func (t *Transport) Put(rank world.Rank, place uint64, src mem.Buffer, token uint64) {
	p := t.peer(t.local(rank))
	t.begin(p, move{dst: t.at(p.local, place, src.Size()), src: src.HostSlice(), place: place, token: token, put: true})
}

func (t *Transport) begin(p *peer, x move) {
	switch {
	case p.lost:
		x.err = transport.ErrCut // its memory may be freed
	case len(x.src) != len(x.dst) && x.source == 0 && x.sink == 0:
		x.err = transport.ErrRecalled
	}
	p.moves.Push(x)
	t.moving++
}

// invite asks p to help with a copy that begins, if p can reach its destination and the record can
// leave at once.
func (t *Transport) invite(p *peer, x *move) {
	x.ask = false
	to := t.Place(p.rank, mem.Bytes(x.dst))
	if to == 0 && x.source != 0 {
		to = t.Source(p.rank, mem.Bytes(x.dst))
	}
	if to == 0 || len(x.dst) > takenMask*leastChunk || p.lost || !p.out.Empty() || p.w.mem == nil || p.w.room() < lineSize {
		return
	}
	p.invited = p.invited%invitations + 1
	x.shared = sharing{claims: &p.w.claims, helped: &p.w.helped, number: p.invited}
	p.w.claims.Store(p.invited << (2 * takenBits))
	t.announce(p)
	p.w.invite(invitation{p.invited, x.place, to, uint64(len(x.dst))})
	t.wake(p)
}

// An invitation is what a record of that kind holds: its number, places in the heaps of
// its reader and its writer, and how many bytes to copy from the one to the other.
type invitation struct{ number, from, to, n uint64 }

const invitationSize = 32

func (w *writer) invite(i invitation) {
	at := w.mem[w.at(w.tail)+wordSize:]
	for k, v := range [...]uint64{i.number, i.from, i.to, i.n} {
		binary.NativeEndian.PutUint64(at[8*k:], v)
	}
	w.publish(invite, invitationSize)
}

// help accepts an invitation of p's, in content. It reports whether it was one.
func (t *Transport) help(p *peer, content []byte) bool {
	if len(content) != invitationSize {
		t.lose(p, fmt.Errorf("%w: an invitation of %d bytes, want %d", transport.ErrProtocol, len(content), invitationSize))
		return false
	}
	word := func(k int) uint64 { return binary.NativeEndian.Uint64(content[8*k:]) }
	i := invitation{word(0), word(1), word(2), word(3)}
	if !t.holds(t.Local, i.from) { // its memory may be anything by now
		return true
	}
	x := move{place: i.from, shared: sharing{&p.r.claims, &p.r.helped, i.number, true}}
	if i.n <= takenMask*leastChunk {
		t.findEnds(p, &x, i)
	}
	if x.src == nil || x.dst == nil && x.sink == 0 {
		t.lose(p, fmt.Errorf("%w: an invitation to copy %d bytes outside the heap", transport.ErrProtocol, i.n))
		return false
	}
	if !t.closing && (x.sink == 0 || t.cross.Reaches(p.local)) {
		t.begin(p, x)
	}
	return true
}

// findEnds finds the two ends of a copy that this rank helps with. Its own memory outside the heap
// is what it has sent as a source, and not recalled.
func (t *Transport) findEnds(p *peer, x *move, i invitation) {
	n := int(i.n)
	if i.from&isSource == 0 {
		x.src = t.at(t.Local, i.from, n)
	} else if at := addressOf(i.from); at != 0 {
		x.src = unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
	}
	if i.to&isSource == 0 {
		x.dst = t.at(p.local, i.to, n)
	} else if i.from&isSource != 0 {
		x.sink = addressOf(i.to)
	}
}

// chunk is how much is copied at a time.
func (x *move) chunk() int {
	if x.source != 0 && x.shared.claims == nil {
		return readChunk
	}
	return min(max(x.size()/4/leastChunk*leastChunk, leastChunk), mostChunk)
}

// size is how much is copied in all.
func (x *move) size() int { return max(len(x.src), len(x.dst)) }

// left reports whether chunks are left to take, which is next, the present value w of claims,
// and its value when this rank takes that chunk.
func (x *move) left() (next int, w, taken uint64, ok bool) {
	s := &x.shared
	if s.claims == nil {
		return x.next, 0, 0, x.next*x.chunk() < x.size()
	}
	chunks := (x.size() + x.chunk() - 1) / x.chunk()
	w = s.claims.Load()
	front, back := int(w&takenMask), int(w>>takenBits&takenMask)
	if w>>(2*takenBits) != s.number || front+back >= chunks {
		return 0, 0, 0, false
	}
	if s.helping {
		return chunks - 1 - back, w, w + 1<<takenBits, true
	}
	return front, w, w + 1, true
}

// take takes the next chunk of a copy for this rank, and reports whether there is one.
func (x *move) take() (i int, ok bool) {
	i, w, taken, ok := x.left()
	if x.shared.claims == nil {
		x.next++
		return i, ok
	}
	for ok && !x.shared.claims.CompareAndSwap(w, taken) {
		i, w, taken, ok = x.left()
	}
	return i, ok
}

// over reports whether a copy without chunks to take is complete. A helper has nothing to
// wait for.
func (x *move) over() bool {
	s := &x.shared
	if s.claims == nil || s.helping {
		return true
	}
	helper := s.claims.Load() >> takenBits & takenMask
	if helper == 0 {
		return true
	}
	helped := s.helped.Load()
	if helped == s.number<<takenBits|couldNot {
		x.err = transport.ErrRecalled // the message goes the other way
		return true
	}
	return helped == s.number<<takenBits|helper
}

// move continues the copies under way, some chunks of one for each peer, and returns
// how many.
func (t *Transport) move() int {
	n := 0
	for i := 0; i < len(t.used); i++ { // includes peers that are added meanwhile
		p := t.used[i]
		for bytes := 0; bytes < burst && !p.moves.Empty(); {
			x := &p.moves.Items()[0]
			bytes += x.chunk()
			done, over := t.advance(p, x)
			if over {
				t.end(p)
			} else if !done {
				break
			}
			n++
		}
	}
	return n
}

// advance copies a chunk. It reports whether there was one, and whether the copy is
// over.
func (t *Transport) advance(p *peer, x *move) (done, over bool) {
	switch {
	case x.err != nil:
		return false, true
	case x.shared.helping && !t.holds(t.Local, x.place):
		return false, true
	case !x.shared.helping && !t.holds(p.local, x.place):
		x.err = transport.ErrRecalled
		t.stop(p, x)
		return false, true
	}
	if x.ask {
		t.invite(p, x)
	}
	i, ok := x.take()
	if !ok {
		return false, x.over()
	}
	from, to := i*x.chunk(), min((i+1)*x.chunk(), x.size())
	err := t.copy(p, x, from, to)
	switch {
	case x.shared.helping:
		x.shared.publish(err)
		t.wake(p)
	case err != nil:
		x.err = err
		t.stop(p, x)
	}
	return true, err != nil || x.shared.claims == nil && to == x.size()
}

// copy copies some bytes. Bytes for a peer's memory may go with non-temporal stores even if
// the copy is short.
func (t *Transport) copy(p *peer, x *move, from, to int) error {
	switch {
	case x.source != 0:
		return t.readSource(p, x.dst[from:to], x.source+uintptr(from))
	case x.sink != 0:
		return t.cross.Write(p.local, x.src[from:to], x.sink+uintptr(from))
	}
	dst, src := x.dst[from:to], x.src[from:to]
	switch {
	case len(x.src) >= nonTemporalFrom:
		mem.CopyNonTemporal(dst, src)
	case x.put || x.shared.helping:
		p.w.reader.Copy(dst, src)
	default:
		copy(dst, src)
	}
	return nil
}

// publish publishes that one more chunk has been copied, or that it could not be.
func (s *sharing) publish(err error) {
	helped := s.helped.Load()
	if helped>>takenBits != s.number {
		helped = s.number << takenBits
	}
	if helped++; err != nil {
		helped = s.number<<takenBits | couldNot
	}
	s.helped.Store(helped)
}

// stop takes all chunks away from the helper. If the destination is the caller's own memory, it
// returns when the helper does not write there any more.
func (t *Transport) stop(p *peer, x *move) {
	s := &x.shared
	if s.claims == nil || s.helping {
		return
	}
	taken := s.claims.Swap(0)
	if x.source == 0 || taken>>(2*takenBits) != s.number || t.Place(p.rank, mem.Bytes(x.dst)) != 0 {
		return
	}
	taken = taken >> takenBits & takenMask
	over := func() bool {
		helped := s.helped.Load()
		return taken == 0 || helped == s.number<<takenBits|taken || helped == s.number<<takenBits|couldNot
	}
	for n := 0; !over() && t.State(p.local) == Alive && n < looks+pausedLooks; n++ {
		if n < looks {
			runtime.Gosched()
		} else {
			time.Sleep(pause)
		}
	}
}

// end ends the first copy from or to p.
func (t *Transport) end(p *peer) {
	x := p.moves.Pop()
	t.moving--
	if x.err == nil && !x.shared.helping && !x.put && !t.read(p.local, x.place) {
		x.err = transport.ErrRecalled
	}
	if x.token != 0 {
		t.sink.Sent(x.token, x.err)
	}
}

// endMoves ends all copies from and to p.
func (t *Transport) endMoves(p *peer, err error) {
	for !p.moves.Empty() {
		x := &p.moves.Items()[0]
		t.stop(p, x)
		x.err = err
		t.end(p)
	}
}

// forgetMove ends the copy with a token without calling Sent.
func (t *Transport) forgetMove(p *peer, token uint64) {
	moves := p.moves.Items()
	for i := range moves {
		if x := &moves[i]; x.token == token {
			t.stop(p, x)
			*x = move{err: transport.ErrRecalled} // which is not reported
		}
	}
}
