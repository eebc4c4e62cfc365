package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/internal/ways"
	"gompi/mpi/libmpi/twins"
	"gompi/transport"
)

// sides are two ranks with a ring in each direction.
type sides struct {
	rings [2][]byte
	out   [2]writer // side 0's goes to ring 0
	in    [2]reader
}

func newSides(size int) *sides {
	p := &sides{}
	for i := range p.rings {
		words := make([]uint64, (controlSize+size)/8)
		p.rings[i] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
		p.out[i] = writer{ring: newRing(p.rings[i])}
		p.out[i].setShape(Shape{Chunk: size / 2, Bytes: size})
		p.out[i].copies = &copier{short: ways.New(ways.Pace{Ways: 1, First: 10_000})} // C never reports
		p.in[1-i] = newReader(p.rings[i])
	}
	return p
}

// bytes returns all memory, as C gets it: with zeros in place of Go's pointers and own fields.
func (p *sides) bytes() []byte {
	out, in := p.out, p.in
	for i := range out {
		out[i].control, out[i].claim, out[i].copies, out[i].cells = nil, nil, nil, nil
		out[i].awaited, out[i].plain = false, plainInC
		in[i].control, in[i].here, in[i].after, in[i].wider, in[i].read = nil, nil, 0, 0, 0
		out[i].mem, in[i].mem = nil, nil
	}
	all := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&out)), unsafe.Sizeof(out))...)
	all = append(all, unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))...)
	return append(append(all, p.rings[0]...), p.rings[1]...)
}

// send reports whether there was room for a frame whole.
func (p *sides) send(side int, tag int32, body []byte) bool {
	w := &p.out[side]
	if w.room() < frameHead+len(body) {
		return false
	}
	w.begin(&transport.Header{Kind: transport.Eager, Tag: tag, Len: int64(len(body))}, body)
	return true
}

// receive reports whether there was a frame.
func (p *sides) receive(side int) bool {
	r, w := &p.in[side], &p.out[side]
	kind, content := r.next()
	if kind != first {
		return false
	}
	r.fetch(content)
	r.done()
	w.noteRead(r.read)
	w.read = r.pos
	return true
}

// Two sides send and receive frames of all lengths that C writes, in Go and in C, in phases: one
// sends ahead, or the two answer each other, so that laps are short.
func TestRingsInGoAndC(t *testing.T) {
	const size, longest = 16 << 10, 2<<10 + 100
	const length = uint64(controlSize + size)
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	var inGo *sides
	var inC []byte
	turned, full := false, false
	for i := range 3000 {
		if i%600 == 0 { // rings that have had no long frame
			inGo = newSides(size)
			inC = inGo.bytes()
		}
		answers, side := i/100%2 == 1, i%2
		n := r.IntN(1 << r.IntN(12))
		if n = min(n, longest); i/300%2 == 0 && i%600 < 290 {
			n = min(n, 200)
		} else if i%600 == 290 {
			n = smallBody // before any that is longer
		}
		body := bytes.Repeat([]byte{byte(i)}, n)
		got, want := c.Call("writer_begin", inC, uint64(side), length, uint64(n), uint64(i)),
			inGo.send(side, int32(i), body)
		left := (*uint32)(unsafe.Add(unsafe.Pointer(&inC[0]), uintptr(side)*unsafe.Sizeof(writer{})+unsafe.Offsetof(writer{}.plain)))
		if asked := n >= chosenFrom && got != 0; asked != (*left == plainInC-1) {
			t.Fatalf("step %d: of a payload of %d bytes C may copy %d more plainly", i, n, *left)
		}
		*left = plainInC
		if got != 0 != want || !bytes.Equal(inC, inGo.bytes()) {
			t.Fatalf("step %d: a frame of %d bytes is written: %v in Go, %v in C, and what the two leave differs at byte %d",
				i, n, want, got != 0, firstDifference(inC, inGo.bytes()))
		}
		turned, full = turned || inGo.out[side].turns, full || !want
		for ok := true; ok && (answers || r.IntN(4) > 0); {
			ok = inGo.receive(1 - side)
			if got := c.Call("reader_next", inC, uint64(1-side), length) != 0; got != ok ||
				!bytes.Equal(inC, inGo.bytes()) {
				t.Fatalf("step %d: a frame is read: %v in Go, %v in C, and what the two leave differs at byte %d",
					i, ok, got, firstDifference(inC, inGo.bytes()))
			}
		}
	}
	if !turned || !full {
		t.Errorf("laps were short: %v, rings were full: %v: want both", turned, full)
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
