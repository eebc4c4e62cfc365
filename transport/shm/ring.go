package shm

import (
	"sync/atomic"
	"time"
	"unsafe"

	"gompi/internal/mem"
	"gompi/transport"
)

// A ring carries records from one rank to another, from one writing process to one reading process.
// Positions count bytes from the beginning of the job; a position modulo the size is a place in the
// ring.
//
//	offset  size  content
//	0       64    head: the position up to which the reader has read, and lets the
//	              writer write;
//	              helped: the chunks that the reader has copied of a shared copy;
//	              cost: the time that copying out the last timed record took
//	64      64    hungry: not 0 while the writer sleeps and waits for room;
//	              claims: the chunks of that copy that each side has taken;
//	              grownTo: the bytes for records in use after the ring has grown
//	128     size  records
//
// At first, the first firstLap bytes are a ring of their own: small messages stay in the
// first-level caches, and a pair of ranks takes little memory. After longer messages, the writer
// claims more memory and, at the end of a lap, continues there instead of at the beginning. The
// last record of the lap announces the growth, and grownTo holds the new size, as the writer's
// Shape specifies. The reader needs to know neither that Shape nor the length of the longest
// record.
//
// A record begins at a multiple of 64 bytes and does not cross the end of the ring:
//
//	0       8     the word: kind and length of the record, and the position up to
//	              which its writer has read the ring of the other direction;
//	              0: no record yet
//	8       48    the frame's header, if the record is the first of a frame
//	8/56    n     payload, continued by further records
//
// So a frame of up to 8 bytes is one cache line, and the reader polls that line: there is no tail
// to read first.
//
// # Short laps
//
// If small messages are answered, a lap is faster when the first-level caches of both sides hold it
// beside all other data (half a round trip between two bare processes, near, in 64 KiB and in 4: 1
// KiB 211 and 135 ns, far 930 and 850; np=2 near, 8 B 175 and 136 ns, 256 B 205 and 161). So the
// writer ends the lap behind its next small record after publishing some small records in a row,
// each when the reader had read all earlier records. The word of that last record says so. The rest
// of the lap counts as written and read. The writer knows the reader's progress without looking at
// head: each word of the other direction carries the position. If messages are not answered, no
// word comes, and laps are long.
//
// # Why the reader never mistakes old bytes for a record
//
// The reader looks at the word at its position only. Before the writer stores the word of a record,
// it stores the record, and 0 into the following word, where the reader looks next. The reader sees
// these stores first too: the word is stored and loaded atomically, which in Go's memory model
// orders all earlier stores. The word behind the record is free, like the record itself: the writer
// requires 64 bytes more than it writes, and counts as free only bytes that the reader has read and
// then given up by an atomic store of head. At the beginning the memory is zero.
//
// For small records, storing that 0 would fetch the next word's line from the reader's cache each
// time, and delay the store of the record's own word. So the writer wipes several places at a time,
// behind a finished store: the places from tail to clean hold 0 (8 B between two cores: 0.31 us
// with one place each time, 0.28 with 16; of 1 KiB they are all lines of the next record).
//
// Growth keeps this true: a place that is reached again was left a whole ring of positions before,
// counted in the ring's new size. So do short laps: their rest consists of positions like others.
// Both ends count in the same size: the writer stores grownTo once, before the word that announces
// growth, since a ring grows once. The added memory was never written, and so is zero. No record is
// longer than the free part before the end of the lap, whatever the Shape, and a Shape's longest
// record ends at a multiple of 64 bytes. So no record reaches the 64 bytes that are required in
// addition.
//
//c:struct gompi_ring
type ring struct {
	*control
	mem  []byte // the whole ring, including the part that is not claimed yet
	lap  uint64 // the part of mem in use, a power of two
	base uint64 // a position at the beginning of mem
}

// control is the beginning of a ring.
//
//c:struct gompi_control
type control struct {
	head    atomic.Uint64
	helped  atomic.Uint64
	cost    atomic.Uint64
	_       [lineSize - 24]byte
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

// end returns the end of the lap that pos is in, pos itself if a lap ends there.
func (r *ring) end(pos uint64) uint64 { return pos + (r.base-pos)&(r.lap-1) }

// canGrow reports whether the ring can grow to lap bytes, a power of two, at pos, where a lap must
// end. A ring grows once.
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
	invite            // to help with a copy; lies between frames
)

// Marks in the word of a record: behind the record the ring has grown; the record ends the lap,
// wherever the record lies; the reader reports the time of copying the record out; the payload lies
// in a cell.
//
//c:const GOMPI_RING_
const (
	grown  = 0x80
	turned = 0x40
	timed  = 0x20
	inCell = 0x10
	marks  = grown | turned | timed | inCell
)

// The parts of a word: 8 bits of kind and marks, 16 of length, 40 of the position that the writer
// has read up to, in lines. A word may stay unread while the reader of the word writes on: the
// position is unambiguous if the reader writes less than 64 TiB meanwhile.
//
//c:const GOMPI_RING_
const (
	lengthAt   = 8
	readAt     = 24
	lengthMask = 1<<(readAt-lengthAt) - 1
	readMask   = 1<<64 - 1<<readAt
	toRead     = readAt - 6 // the shift of a position, a multiple of 64, to its bits in a word
)

// shortLap is the minimum number of bytes before the last two records of a short lap: the writer
// can fill as many bytes of the next lap before the reader has read those two.
//
//c:const GOMPI_RING_
const shortLap = 2 << 10

// smallRecord is the longest record that counts as small. This limit is the better of two measured
// ones, 1 KiB and 2 KiB (np=2 near on an Intel Xeon: 1.5 KiB .85 us and .63, 2 KiB .94 and .80).
//
//c:const GOMPI_RING_
const smallRecord = (frameHead + 2<<10 + lineSize - 1) &^ (lineSize - 1)

// mostFetched bounds the part of a record that is fetched before the first look at the record.
//
//c:const GOMPI_RING_
const mostFetched = 4 << 10

// ahead is the number of places wiped at a time: behind a record of 1 KiB, the places of the next
// record and of the word behind that.
//
//c:const GOMPI_RING_
const ahead = 17

// length returns the bytes of the ring that a record with n bytes behind its word takes.
func length(n int) int { return (wordSize + n + lineSize - 1) &^ (lineSize - 1) }

// A writer is the writing end.
//
//c:struct gompi_writer
type writer struct {
	ring
	tail    uint64
	seen    uint64           // the last known position up to which the reader has read
	read    uint64           // the position up to which the other ring has been read, for the next word
	turns   bool             // the next record ends the lap, if that record is small
	since   uint64           // all records of this lap from here on were small and answered
	clean   uint64           // the places from tail to clean hold 0
	bulk    bool             // a frame with more than smallBody has come, or many short ones
	awaited bool             // all earlier frames had been read when this one began
	plain   uint32           // payloads with a choice that C may copy plainly before Go chooses again
	most    int              // bytes of the longest record
	full    uint64           // the lap to grow to
	claim   func() (ok bool) // makes sure that the full lap exists

	//c:type struct gompi_cells *
	cells  *cells
	copies *copier
}

// setShape sets the Shape of w's writes, before the first record.
func (w *writer) setShape(s Shape) {
	w.most, w.full = s.Chunk, uint64(min(s.Bytes, len(w.mem)))
	w.copies, w.cells = newCopier(), &cells{asked: true}
}

// room returns the largest size of the next record, including its word.
func (w *writer) room() int {
	free := func() int { return int(w.lap - lineSize - (w.tail - w.seen)) }
	n := free()
	if n < min(int(w.lap/2), 2*w.most) {
		w.seen = max(w.seen, w.head.Load())
		n = free()
	}
	return min(n, int(w.lap)-w.at(w.tail), w.most)
}

// fits reports whether there is room for a whole frame with n bytes of payload, in as many records
// as needed.
func (w *writer) fits(n int) bool {
	if room := w.room(); n <= transport.ShortFrame {
		return room >= frameHead+n
	}
	padding := (n/transport.ShortFrame + 3) * 2 * lineSize
	return int(w.lap-lineSize-(w.tail-w.seen)) >= n+padding
}

// chunk returns the size of the next record, with room for at most so many bytes, and n bytes left
// of its frame. A waiting reader copies a record while the next one is written; a reader that is
// behind has enough to read, and long records cost less (np=2 near on an AMD EPYC 25/17, by a
// quarter and whole: latency of 30 KB 1.8 and 2.2 us, bw 1.3 and 1.1).
func (w *writer) chunk(room, n int) int {
	if !w.awaited {
		return room
	}
	return min(max(n/4, frameHead+transport.ShortFrame), room)
}

// streams reports whether there are enough unread bytes for the whole ring to be faster: its lines
// have left the reader's cache when they are written again (np=2 near on an AMD EPYC 25/17, bw in
// 64 KiB and in 2 MiB: 1 KiB .25 and .16 us).
func (w *writer) streams() bool { return w.tail-w.seen > w.lap/2 }

// begin writes the first record of a frame with as much of body as fits. It returns the number of
// bytes taken from body, and whether there was room for the record at all.
func (w *writer) begin(h *transport.Header, body []byte) (int, bool) {
	if n := w.fill(h, body); n > 0 {
		return n, true
	}
	room := w.room()
	if room < lineSize {
		return 0, false
	}
	w.bulk = w.bulk || len(body) > smallBody || w.streams()
	n := min(len(body), w.chunk(room, len(body))-frameHead)
	at := w.at(w.tail)
	h.Encode(w.mem[at+wordSize:])
	marks := w.copy(w.mem[at+frameHead:], body[:n])
	w.publish(first|marks, transport.HeaderSize+n)
	return n, true
}

// continueFrame writes a record that continues a frame and returns the number of bytes taken from
// body: 0 if there is no room.
func (w *writer) continueFrame(body []byte) int {
	if n := w.fill(nil, body); n > 0 {
		return n
	}
	room := w.room()
	if room < lineSize {
		return 0
	}
	n := min(len(body), w.chunk(room, len(body))-wordSize)
	marks := w.copy(w.mem[w.at(w.tail)+wordSize:], body[:n])
	w.publish(more|marks, n)
	return n
}

// noteRead notes the reader's position, from the word that the reader has published.
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

// plan decides whether the next record ends the lap, after a record of size bytes has been
// published. answered means that this record is small, and that all earlier records have been read.
// So the beginning of the lap is free, as the record does not lie there, and plan wipes the word
// there, behind a finished store.
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
	returned uint64         // the value of head
	here     *atomic.Uint64 // the word at pos
	// Of the record that next returned:
	after uint64 // the position behind the record
	wider uint64 // the size that the ring grows to behind the record, 0 if it does not grow
	read  uint64 // the position up to which the writer has read the other ring
	timed bool   // the writer wants to know the time of copying the record out
	since time.Duration
	cell  bool // the payload lies in a cell
}

func newReader(mem []byte) reader {
	r := reader{ring: newRing(mem)}
	r.here = r.word(0)
	return r
}

// idle reports whether there is no record.
func (r *reader) idle() bool { return r.here.Load() == 0 }

// next returns the kind and the content of the next record, kind 0 if there is none. A word that no
// writer writes is returned as kind -1.
func (r *reader) next() (kind int, content []byte) {
	w := r.here.Load()
	if w == 0 {
		return 0, nil
	}
	kind, n, at := int(w&^marks&0xff), w>>lengthAt&lengthMask, r.at(r.pos)
	if kind > invite || n > r.lap-uint64(at)-wordSize || kind == first && n < transport.HeaderSize {
		return -1, nil
	}
	r.after, r.wider, r.read, r.cell = r.pos+uint64(length(int(n))), 0, w&readMask, w&inCell != 0
	if r.timed = w&timed != 0; r.timed {
		r.since = clock()
	}
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

// fetch begins to fetch the lines behind the record that next returned, as if the following record
// were as long. Only a reader that is behind the writer calls fetch: other readers would take the
// lines from the writer (in a window of 8 B: 76 ns a message without, 66 with; of 4 KiB 282 with
// one line, 223 with all; half a round trip of 8 B 126, and 131 if done always).
func (r *reader) fetch(content []byte) {
	at := r.at(r.after)
	mem.Prefetch(unsafe.Pointer(&r.mem[at]), min(length(len(content)), mostFetched, int(r.lap)-at))
}

// done gives up the record that next returned. It reports whether it returned credit to the writer,
// which it does once the credit is worth a cache line.
func (r *reader) done() bool {
	if r.timed {
		r.cost.Store(report(r.pos, clock()-r.since))
	}
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
