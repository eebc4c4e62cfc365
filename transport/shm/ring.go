package shm

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/mem"
	"gompi/transport"
)

// A ring carries records from one rank to another. One process writes it, one
// reads it. Positions count bytes from the beginning of the job; a position
// modulo the size is a place in the ring.
//
//	offset  size  content
//	0       64    head: how far the reader has read and lets the writer write;
//	              helped: what it has done of the copy that the writer asked it
//	              to help with
//	64      64    hungry: not 0 while the writer sleeps and waits for room;
//	              claims: what of that copy has been begun, and by whom;
//	              grownTo: how many bytes the records go round in once the ring has grown
//	128     size  records
//
// Its first firstLap bytes are a ring of their own at first: small messages stay
// in the first-level caches, and a pair of ranks takes little memory. When longer
// ones have come, the writer claims more and continues there at the end of a
// lap, instead of at the beginning. The last record of the lap says so, and grownTo how
// much there is then: as much as the writer's Shape says, which its reader need not know.
// Nor need it know how long the longest record is.
//
// A record begins at a multiple of 64 bytes and does not cross the end of the
// ring:
//
//	0       8     the word: kind and length of what follows, and how far its
//	              writer has read of the ring that goes the other way; 0: no
//	              record yet
//	8       48    the frame's header, if it is the first record of a frame
//	8/56    n     payload, which further records continue
//
// So a frame of up to 8 bytes is one cache line, and its reader polls that line:
// there is no tail to read first.
//
// # Short laps
//
// Where small messages are answered, a lap is faster that the first-level caches of both
// sides hold beside all else (half a round trip between two bare processes, near, around
// 64 KiB and around 4: 1 KiB 211 and 135 ns, far 930 and 850; np=2 near, 8 B 175 and 136
// ns, 256 B 205 and 161). So a writer that has published some small records in a row, and
// of each knew that the reader had read all before it, ends the lap behind the next one,
// whose word says so. What is left of the lap counts as written and read. The writer knows
// it without a look at head: each word that comes the other way says so. Where messages are
// not answered no word comes, and laps are long.
//
// # Why a reader never takes for a record what is none
//
// The reader looks at the word at its position only. Before the writer stores
// the word of a record, it has stored the record, and 0 into the word behind it,
// which is where the reader looks next. Those stores come first for the reader
// too: the word is stored and loaded atomically, which in Go's memory model
// orders all that came before. The word behind the record is free, like the
// record itself: the writer counts on 64 bytes more than it writes, and takes as
// free only what the reader gave up by an atomic store of head, when it had read
// it. At the beginning the memory is zero.
//
// Small records would fetch the line of that next word from the reader's cache
// each time, and the store of their word wait for it. So their places are wiped
// some at a time, behind a store that has been made: those from tail to clean
// hold 0 (8 B between two cores: 0.31 us with one place each time, 0.28 with 16; of 1 KiB
// they are all lines of the next record).
//
// This holds across growth too: a place that is reached again was left a whole
// ring of positions before, as counted in the size that the ring has now. And it holds
// for short laps, whose rest is positions like others. Both ends count in the same size:
// the writer stores grownTo before the word that announces it, and never again, since a ring
// grows once. What it grows by was never written, and so is zero. No record is longer than
// what is free before the end of the lap, whatever the Shape, and a Shape's longest record
// ends at a multiple of 64 bytes: so none reaches the 64 bytes that are counted on besides.
//
//c:struct gompi_ring
type ring struct {
	*control
	mem  []byte // all of it, also what is not claimed yet
	lap  uint64 // how much of mem is in use, a power of two
	base uint64 // a position that is at the beginning of mem
}

// control is the beginning of a ring.
//
//c:struct gompi_control
type control struct {
	head    atomic.Uint64
	helped  atomic.Uint64
	_       [lineSize - 16]byte
	hungry  atomic.Uint32
	_       uint32
	claims  atomic.Uint64
	grownTo atomic.Uint64
	_       [lineSize - 24]byte
}

//c:const GOMPI_RING_
const (
	lineSize    = 64
	controlSize = int(unsafe.Sizeof(control{}))
	wordSize    = 8
	frameHead   = wordSize + transport.HeaderSize
)

// newRing returns the ring in mem.
func newRing(mem []byte) ring {
	return ring{
		control: (*control)(unsafe.Pointer(&mem[0])),
		mem:     mem[controlSize:],
		lap:     uint64(min(firstLap, len(mem)-controlSize)),
	}
}

func (r *ring) at(pos uint64) int { return int((pos - r.base) & (r.lap - 1)) }

// end returns the end of the lap that pos is in, pos itself if it is there.
func (r *ring) end(pos uint64) uint64 { return pos + (r.base-pos)&(r.lap-1) }

// canGrow reports whether the ring can grow to lap bytes, a power of two, at pos, where a lap ends.
// It grows once.
func (r *ring) canGrow(pos, lap uint64) bool {
	return r.at(pos) == 0 && r.lap < lap && r.lap <= firstLap && lap <= uint64(len(r.mem)) && lap&(lap-1) == 0
}

// grow takes lap bytes of mem into use, from pos on.
func (r *ring) grow(pos, lap uint64) {
	r.base = pos - r.lap
	r.lap = lap
}

func (r *ring) word(pos uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.mem[r.at(pos)]))
}

// The kinds of records, in the lower byte of the word.
//
//c:const GOMPI_RING_
const (
	first  = 1 + iota // of a frame
	more              // of the frame before
	invite            // to help with a copy; it lies between frames
)

// Marks in the word of a record: behind it the ring has grown; with it the lap ends,
// wherever it lies.
//
//c:const GOMPI_RING_
const (
	grown  = 0x80
	turned = 0x40
	marks  = grown | turned
)

// The parts of a word: 8 bits of kind and marks, 16 of length, 40 of the position that
// the writer has read up to, in lines. A word may lie unread while its reader writes on:
// the position is unambiguous as long as that is less than 64 TiB.
//
//c:const GOMPI_RING_
const (
	lengthAt   = 8
	readAt     = 24
	lengthMask = 1<<(readAt-lengthAt) - 1
	readMask   = 1<<64 - 1<<readAt
	toRead     = readAt - 6 // how far a position, a multiple of 64, is moved to be there
)

// shortLap is how much of a lap at least lies before the last record but one of a short
// one: as much can be written before the reader has read that.
//
//c:const GOMPI_RING_
const shortLap = 2 << 10

// smallRecord is the longest record that counts as small (np=2 near on an Intel Xeon, where those
// of 1 KiB did and where those of 2 KiB do: 1.5 KiB .85 us and .63, 2 KiB .94 and .80).
//
//c:const GOMPI_RING_
const smallRecord = (frameHead + 2<<10 + lineSize - 1) &^ (lineSize - 1)

// streamLap is up to which length a lap grows for short messages, if half of it was written before
// it was read: in a longer one the writer looks less often how far the reader is (64 messages of
// 512 B one after another, np=2 near on an Intel Xeon: .29 us each in 64 KiB, .15 in 256). A lap
// that leaves the caches has not been tried for them.
//
//c:const GOMPI_RING_
const streamLap = 256 << 10

// mostFetched bounds how much of a record is fetched before it is looked at.
//
//c:const GOMPI_RING_
const mostFetched = 4 << 10

// ahead is how many places are wiped at a time: behind a record of 1 KiB those of the next
// one and of the word behind that.
//
//c:const GOMPI_RING_
const ahead = 17

// length returns how much of the ring a record with n bytes behind its word takes.
func length(n int) int { return (wordSize + n + lineSize - 1) &^ (lineSize - 1) }

// A writer is the writing end.
//
//c:struct gompi_writer
type writer struct {
	ring
	tail  uint64
	seen  uint64           // how far the reader has read, as far as is known
	read  uint64           // how far the other ring has been read, for the next word
	turns bool             // the next record ends the lap, if it is small
	since uint64           // all of this lap from here on was small and answered
	clean uint64           // up to here, the places from tail on hold 0
	bulk  bool             // a frame with more than smallBody has come, or many short ones
	most  int              // bytes of the longest record
	full  uint64           // the lap to grow to
	claim func() (ok bool) // makes sure that the full lap exists

	reader mem.Distance // to the reader
}

// setShape sets how w writes, before the first record.
func (w *writer) setShape(s Shape) {
	w.most, w.full = s.Chunk, uint64(min(s.Bytes, len(w.mem)))
	w.reader = s.Reach
}

// room returns how many bytes the next record may take, word included.
func (w *writer) room() int {
	free := func() int { return int(w.lap - lineSize - (w.tail - w.seen)) }
	n := free()
	if n < min(int(w.lap/2), 2*w.most) {
		w.seen = max(w.seen, w.head.Load())
		n = free()
	}
	return min(n, int(w.lap)-w.at(w.tail), w.most)
}

// streams reports whether so much is under way that a longer lap serves better.
func (w *writer) streams() bool { return w.full <= streamLap && w.tail-w.seen > w.lap/2 }

// owned is up to which length a record's lines are fetched for writing before they are written.
const owned = 8 << 10

// begin writes the first record of a frame with as much of body as it takes, and
// reports how much that is, and whether there was room for the record at all.
func (w *writer) begin(h *transport.Header, body []byte) (int, bool) {
	room := w.room()
	if room < lineSize {
		return 0, false
	}
	w.bulk = w.bulk || len(body) > smallBody || w.streams()
	n := min(len(body), room-frameHead)
	at := w.at(w.tail)
	if n > 2*lineSize && n <= owned {
		// All at once: stores fetch fewer lines at a time (np=2 near on an Intel Xeon, messages of
		// 256 B .41 and .37 us, of 1 KiB .54 and .49). Not the first line, at which the reader
		// looks.
		mem.PrefetchToWrite(unsafe.Pointer(&w.mem[at+lineSize]), frameHead+n-lineSize)
	}
	h.Encode(w.mem[at+wordSize:])
	w.reader.Copy(w.mem[at+frameHead:], body[:n])
	w.publish(first, transport.HeaderSize+n)
	return n, true
}

// continueFrame writes a record that continues a frame and returns how much of body it
// takes: 0 if there is no room.
func (w *writer) continueFrame(body []byte) int {
	room := w.room()
	if room < lineSize {
		return 0
	}
	n := min(len(body), room-wordSize)
	w.reader.Copy(w.mem[w.at(w.tail)+wordSize:], body[:n])
	w.publish(more, n)
	return n
}

// noteRead notes how far the reader has read, by the word that it publishes.
func (w *writer) noteRead(read uint64) { w.seen = max(w.seen, w.tail-(w.tail<<toRead-read)>>toRead) }

// publish makes the record at tail, with n bytes behind its word, readable.
func (w *writer) publish(kind, n int) {
	word, size := w.word(w.tail), uint64(length(n))
	next := w.tail + size
	answered := size <= smallRecord && w.seen == w.tail
	if w.turns && size <= smallRecord {
		next = w.end(next)
		w.clean = next + lineSize
		kind |= turned
	}
	if w.bulk && w.canGrow(next, w.full) && w.claim() {
		w.grow(next, w.full)
		w.grownTo.Store(w.full)
		kind |= grown
	}
	if w.clean <= next {
		w.wipe(next, 1)
	}
	word.Store(w.read<<toRead | uint64(n)<<lengthAt | uint64(kind))
	w.tail = next
	if w.clean == next+lineSize {
		w.wipe(w.clean, ahead) // not the place at next: the reader looks at it by now
	}
	w.plan(size, answered)
}

// plan decides whether the next record ends the lap, when one of this many bytes has been
// published; answered means that it is small, and that all before it have been read. So
// the beginning of the lap is free, as the record does not lie there, and is wiped, behind
// a store that has been made.
func (w *writer) plan(size uint64, answered bool) {
	if !answered || w.at(w.tail) == 0 {
		w.since = w.tail
	}
	if w.turns = w.tail-w.since >= shortLap+size; w.turns {
		w.blank(w.end(w.tail))
	}
}

// wipe stores 0 into the words of n places from pos on, as far as there is room.
func (w *writer) wipe(pos uint64, n int) {
	w.clean = min(pos+uint64(n)*lineSize, w.seen+w.lap)
	for ; pos < w.clean; pos += lineSize {
		w.blank(pos)
	}
}

func (w *writer) blank(pos uint64) { *(*uint64)(unsafe.Pointer(w.word(pos))) = 0 }

// A reader is the reading end.
//
//c:struct gompi_reader
type reader struct {
	ring
	pos      uint64
	returned uint64         // what head says
	here     *atomic.Uint64 // the word at pos
	// Of the record that next returned:
	after uint64 // where the one behind it will be
	wider uint64 // what the ring has grown to between the two, 0 if it has not
	read  uint64 // how far its writer has read the other ring
}

func newReader(mem []byte) reader {
	r := reader{ring: newRing(mem)}
	r.here = r.word(0)
	return r
}

// idle reports whether there is no record.
func (r *reader) idle() bool { return r.here.Load() == 0 }

// next returns the kind and the content of the next record, 0 if there is none.
// A word that no writer writes is returned as kind -1.
func (r *reader) next() (kind int, content []byte) {
	w := r.here.Load()
	if w == 0 {
		return 0, nil
	}
	kind, n, at := int(w&^marks&0xff), w>>lengthAt&lengthMask, r.at(r.pos)
	if kind > invite || n > r.lap-uint64(at)-wordSize || kind == first && n < transport.HeaderSize {
		return -1, nil
	}
	r.after, r.wider, r.read = r.pos+uint64(length(int(n))), 0, w&readMask
	if w&turned != 0 {
		r.after = r.end(r.after)
	}
	if w&grown != 0 {
		if r.wider = r.grownTo.Load(); !r.canGrow(r.after, r.wider) {
			return -1, nil
		}
	}
	return kind, r.mem[at+wordSize:][:n]
}

// fetch begins to fetch what lies behind the record that next returned, as if it were
// as long, for a reader that is behind the writer: one that is not would take the lines
// from it (in a window of 8 B: 76 ns a message without, 66 with; of 4 KiB 282 with one
// line, 223 with all; half a round trip of 8 B 126, and 131 if done always).
func (r *reader) fetch(content []byte) {
	at := r.at(r.after)
	prefetch(&r.mem[at], min(length(len(content)), mostFetched, int(r.lap)-at))
}

// done gives up the record that next returned. It reports whether it returned
// credit to the writer, which it does when that is worth a cache line.
func (r *reader) done() bool {
	if r.pos = r.after; r.wider != 0 {
		r.grow(r.pos, r.wider)
	}
	r.here = r.word(r.pos)
	if r.pos-r.returned < r.lap/4 {
		return false
	}
	r.returnCredit()
	return true
}

func (r *reader) returnCredit() {
	r.returned = r.pos
	r.head.Store(r.pos)
}
