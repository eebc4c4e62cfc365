package shm

import (
	"sync/atomic"
	"unsafe"

	"gompi/transport"
)

// A ring carries records from one rank to another. One process writes it, one
// reads it. Positions count bytes from the beginning of the job; a position
// modulo the size is a place in the ring.
//
//	offset  size  content
//	0       64    head: how far the reader has read and lets the writer write
//	64      64    hungry: not 0 while the writer sleeps and waits for room
//	128     size  records
//
// A record begins at a multiple of 64 bytes and does not cross the end of the
// ring:
//
//	0       8     the word: kind and length of what follows; 0: no record yet
//	8       48    the frame's header, if it is the first record of a frame
//	8/56    n     payload, which further records continue
//
// So a frame of up to 8 bytes is one cache line, and its reader polls that line:
// there is no tail to read first.
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
type ring struct {
	head   *atomic.Uint64
	hungry *atomic.Uint32
	mem    []byte
}

const (
	lineSize    = 64
	controlSize = 2 * lineSize
	wordSize    = 8
	frameHead   = wordSize + transport.HeaderSize
)

// newRing returns the ring in mem.
func newRing(mem []byte) ring {
	return ring{
		head:   (*atomic.Uint64)(unsafe.Pointer(&mem[0])),
		hungry: (*atomic.Uint32)(unsafe.Pointer(&mem[lineSize])),
		mem:    mem[controlSize:],
	}
}

func (r *ring) at(pos uint64) int { return int(pos & uint64(len(r.mem)-1)) }

func (r *ring) word(pos uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.mem[r.at(pos)]))
}

// The kinds of records, in the lower byte of the word.
const (
	first = 1 + iota // of a frame
	more             // of the frame before
)

// length returns how much of the ring a record with n bytes behind its word takes.
func length(n int) int { return (wordSize + n + lineSize - 1) &^ (lineSize - 1) }

// A writer is the writing end.
type writer struct {
	ring
	tail uint64
	seen uint64 // what was last read of head
}

// room returns how many bytes the next record may take, word included.
func (w *writer) room() int {
	size := uint64(len(w.mem))
	free := func() int { return int(size - lineSize - (w.tail - w.seen)) }
	n := free()
	if n < min(len(w.mem)/2, 2*mostRecord) {
		w.seen = w.head.Load()
		n = free()
	}
	return min(n, len(w.mem)-w.at(w.tail), mostRecord)
}

// begin writes the first record of a frame with as much of body as it takes, and
// reports how much that is, and whether there was room for the record at all.
func (w *writer) begin(h *transport.Header, body []byte) (int, bool) {
	room := w.room()
	if room < lineSize {
		return 0, false
	}
	n := min(len(body), room-frameHead)
	at := w.at(w.tail)
	h.Encode(w.mem[at+wordSize:])
	copy(w.mem[at+frameHead:], body[:n])
	w.publish(first, transport.HeaderSize+n)
	return n, true
}

// goOn writes a record that continues a frame and returns how much of body it
// takes: 0 if there is no room.
func (w *writer) goOn(body []byte) int {
	room := w.room()
	if room < lineSize {
		return 0
	}
	n := min(len(body), room-wordSize)
	copy(w.mem[w.at(w.tail)+wordSize:], body[:n])
	w.publish(more, n)
	return n
}

// publish makes the record at tail, with n bytes behind its word, readable.
func (w *writer) publish(kind, n int) {
	next := w.tail + uint64(length(n))
	*(*uint64)(unsafe.Pointer(w.word(next))) = 0
	w.word(w.tail).Store(uint64(n)<<8 | uint64(kind))
	w.tail = next
}

// A reader is the reading end.
type reader struct {
	ring
	pos  uint64
	told uint64 // what head says
}

// next returns the kind and the content of the next record, 0 if there is none.
// A word that no writer writes is returned as kind -1.
func (r *reader) next() (kind int, content []byte) {
	w := r.word(r.pos).Load()
	if w == 0 {
		return 0, nil
	}
	kind, n, at := int(w&0xff), w>>8, r.at(r.pos)
	if kind > more || n > uint64(len(r.mem)-at-wordSize) || kind == first && n < transport.HeaderSize {
		return -1, nil
	}
	return kind, r.mem[at+wordSize:][:n]
}

// done gives up the record that next returned. It reports whether it told the
// writer, which it does when that is worth a cache line.
func (r *reader) done(content []byte) bool {
	r.pos += uint64(length(len(content)))
	if r.pos-r.told < uint64(len(r.mem)/4) {
		return false
	}
	r.tell()
	return true
}

func (r *reader) tell() {
	r.told = r.pos
	r.head.Store(r.pos)
}
