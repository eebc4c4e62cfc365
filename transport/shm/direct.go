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

// This file implements transport.Direct. All ranks of a host map each rank's symmetric heap, so
// peers read and write buffers there in place. Such a transfer takes one copy instead of two (2
// ranks on processors near each other, through the ring, with one side in a heap, and with both:
// latency of 256 KiB 16.6, 11 and 7 us, of 1 MiB 50, 32 and 16; window of 1 MiB 37, 28 and 13 us a
// message, of 16 MiB 1.6, 1.2 and 0.4 ms).
//
// # Recalls
//
// A place consists of an offset in the sender's heap and the sender's number of recalls. A copying
// rank compares this number with the number in the owner's line: before each chunk and, after a
// read, once more behind the last chunk. The owner recalls its places before it changes memory that
// others may still read. So either the reader has read the bytes that were offered, or it finds the
// number changed.
//
// That needs two orders between the plain loads and stores of the bytes and the atomic accesses to
// the number. First, the owner's stores must not be seen before its recall: Recall is an atomic
// Add, whose load acquires on every processor, so that no later store happens earlier. Second, the
// reader's loads must precede its last look at the number. On amd64 loads follow program order. On
// arm64 an atomic load (LDAR) holds back later accesses, but not earlier ones; so there read adds 0
// to the number. The store of that Add releases: the reader's loads come first. If the Add finds
// the old number, no recall preceded it, and as nothing comes between the load and the store of an
// Add, the next recall loads the value that this Add, or a later one, stored. So the reader's loads
// precede that store, the store precedes the recall's load, and the recall's load precedes the
// owner's stores.
//
// # Copies that both ranks make
//
// If both buffers of a Get lie in heaps, or the source in the peer's own memory, the peer can help.
// The getting rank invites the peer by a record in its ring. The inviter takes chunks from the
// front; the peer, after reading the record, takes chunks from the back. Each side takes a chunk by
// a compare-and-swap of the word claims, so that no chunk is copied twice. The inviter does not
// wait for a peer that computes instead of helping. Bits of claims: 40 to 63 the number of the
// invitation, which is different each time, so that a late peer takes nothing; 20 to 39 the chunks
// taken by the peer, 0 to 19 the chunks taken by the inviter. Once all are taken, the peer's count
// is final. Then the inviter waits until the word helped, which the peer stores after each chunk,
// shows the same count, or a failure of the peer.
//
// An inviter that gives the copy up takes all chunks away. If the destination is the caller's own
// memory, the inviter waits for the chunk that the peer may be copying: the caller then gets the
// memory back.

const (
	// placeBits is the length of the offset in a place, which is 1 for the first byte, or of an
	// address.
	placeBits  = 48
	recallMask = 1<<(64-placeBits) - 1
	// loadsInOrder means that the processor performs loads in program order.
	loadsInOrder = runtime.GOARCH == "amd64"
	// A chunk is the part copied between two checks of the place, and the part that each of two
	// sharing ranks takes at a time. It takes some microseconds. It is a quarter of the copy, in
	// multiples of leastChunk: smaller chunks take more system calls, larger ones leave none for a
	// late peer (np=2, Intel Xeon 6/207, chunks of 64, 256 KiB and 1 MiB at most: latency of 512
	// KiB 17.5, 14.5 and 15.1 us, of 1 MiB 44, 35 and 37, bw of 4 MiB 239, 211 and 198; in eighths
	// latency of 1 MiB 39).
	leastChunk, mostChunk = 64 << 10, 256 << 10
	// helpFrom is the length of the shortest copy that the peer is asked to help with: two chunks
	// (np=2 near, in windows, alone and with help: 128 KiB 3.4 and 2.6 us a message, 1 MiB 24.6 and
	// 15.7; np=4 on two processors, a window of two pairs each of 1 MiB: 45 and 48, so asking does
	// no harm if no peer has time to help).
	helpFrom = 128 << 10
	// nonTemporalFrom is the length from which on copies are non-temporal (np=2 near, in windows,
	// plain and non-temporal: 4 MiB 57 and 91 us a message, 16 MiB 570 and 369).
	nonTemporalFrom = 8 << 20

	// The number of looks for a chunk of a helper, which takes some microseconds unless the helper
	// does not run: first without a pause, then each after a pause.
	looks, pausedLooks = 1000, 10_000
	pause              = 100 * time.Microsecond

	takenBits   = 20
	takenMask   = 1<<takenBits - 1
	invitations = 1<<(64-2*takenBits) - 1
	couldNot    = takenMask // the value of helped from a peer that could not copy a chunk that it had taken
)

// A move is a copy from or to a peer's memory that is under way.
type move struct {
	dst, src []byte
	source   uintptr // instead of src: the address in the peer's own memory
	sink     uintptr // instead of dst: the address in the peer's own memory; src has the length
	place    uint64  // at the peer, or this rank's own if this rank helps
	token    uint64
	next     int  // the chunk to copy, without a helper
	put      bool // dst is the peer's
	ask      bool // the peer may be asked to help
	shared   sharing
	err      error
}

// A sharing is one side's access, the inviter's or the helper's, to the words of a shared copy.
type sharing struct {
	claims, helped *atomic.Uint64 // nil: there is no helper
	number         uint64
	helping        bool
}

// moves are the copies from and to one peer, first come, first served.
type moves struct{ fifo.Queue[move] }

// ready reports whether a chunk is left to copy, or a copy has ended.
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

// recalls returns the number of recalls for the places that a rank sends.
func (t *Transport) recalls(local world.LocalRank) uint64 {
	return t.lines[local].recalls.Load() & recallMask
}

// Recall implements transport.Direct.
func (t *Transport) Recall() { t.lines[t.Local].recalls.Add(1) }

// holds reports whether a place that a rank has sent is still valid.
func (t *Transport) holds(local world.LocalRank, place uint64) bool {
	return place>>placeBits == t.recalls(local)
}

// read is holds for a reader, after the last load from the place: see Recalls.
func (t *Transport) read(local world.LocalRank, place uint64) bool {
	if !loadsInOrder {
		return place>>placeBits == t.lines[local].recalls.Add(0)&recallMask
	}
	return t.holds(local, place)
}

// at returns n bytes from a place of a rank's heap on, nil if the heap does not contain them.
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
		x.err = transport.ErrCut // the peer's memory may be freed
	case len(x.src) != len(x.dst) && x.source == 0 && x.sink == 0:
		x.err = transport.ErrRecalled
	}
	p.moves.Push(x)
	t.moving++
}

// invite asks p to help with a copy that begins, if p can reach the destination and the record can
// leave at once.
func (t *Transport) invite(p *peer, x *move) {
	x.ask = false
	to := t.Place(p.rank, mem.Bytes(x.dst))
	if to == 0 && x.source != 0 {
		to = t.Source(p.rank, mem.Bytes(x.dst))
	}
	if to == 0 || len(x.dst) > takenMask*leastChunk || p.lost || !p.out.Empty() || p.w.mem == nil ||
		p.w.room() < lineSize {
		return
	}
	p.invited = p.invited%invitations + 1
	x.shared = sharing{claims: &p.w.claims, helped: &p.w.helped, number: p.invited}
	p.w.claims.Store(p.invited << (2 * takenBits))
	t.announce(p)
	p.w.invite(invitation{p.invited, x.place, to, uint64(len(x.dst))})
	t.wake(p)
}

// An invitation is the content of an invite record: its number, places in the heaps of its reader
// and its writer, and the number of bytes to copy from the first to the second.
type invitation struct{ number, from, to, n uint64 }

const invitationSize = 32

func (w *writer) invite(i invitation) {
	at := w.mem[w.at(w.tail)+wordSize:]
	for k, v := range [...]uint64{i.number, i.from, i.to, i.n} {
		binary.NativeEndian.PutUint64(at[8*k:], v)
	}
	w.publish(invite, invitationSize)
}

// help accepts an invitation by p, in content. It returns false if content is not an invitation.
func (t *Transport) help(p *peer, content []byte) bool {
	if len(content) != invitationSize {
		t.lose(p, fmt.Errorf("%w: an invitation of %d bytes, want %d", transport.ErrProtocol, len(content),
			invitationSize))
		return false
	}
	word := func(k int) uint64 { return binary.NativeEndian.Uint64(content[8*k:]) }
	i := invitation{word(0), word(1), word(2), word(3)}
	if !t.holds(t.Local, i.from) { // the memory may have other content
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

// findEnds finds the two ends of a copy that this rank helps with. Memory of this rank outside the
// heap is memory that the rank has sent as a source, and not recalled.
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

// chunk returns the bytes copied at a time.
func (x *move) chunk() int {
	if x.source != 0 && x.shared.claims == nil {
		return readChunk
	}
	return min(max(x.size()/4/leastChunk*leastChunk, leastChunk), mostChunk)
}

// size returns the bytes copied in all.
func (x *move) size() int { return max(len(x.src), len(x.dst)) }

// left reports whether chunks are left to take. It returns the next such chunk, the present value w
// of claims, and the value of claims after this rank has taken that chunk.
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

// take takes the next chunk of a copy for this rank, and reports whether one was left.
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

// over reports whether a copy without chunks to take is complete. A helper need not wait.
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
		x.err = transport.ErrRecalled // the message is sent as frames
		return true
	}
	return helped == s.number<<takenBits|helper
}

// move continues the copies under way, some chunks of one copy for each peer, and returns the
// number of events.
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

// advance copies a chunk. It reports whether a chunk was left, and whether the copy is over.
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

// copy copies some bytes. Copies to a peer's memory may use non-temporal stores even if the copy is
// short.
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
	case (x.put || x.shared.helping) && p.w.copies != nil:
		copies[p.w.copies.long.Present()](dst, src)
	default:
		copy(dst, src)
	}
	return nil
}

// publish publishes that one more chunk has been copied, or that copying it failed.
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

// stop takes all chunks away from the helper. If the destination is the caller's own memory, stop
// returns after the helper's last write there.
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
			*x = move{err: transport.ErrRecalled} // end does not report this error
		}
	}
}
