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
	cells [2]cells
}

// twinCells is the number of cells behind each ring.
const twinCells = 2

func newSides(size int) *sides {
	p := &sides{}
	for i := range p.rings {
		words := make([]uint64, (controlSize+size+twinCells*cellSize)/8)
		p.rings[i] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
		p.out[i] = writer{ring: newRing(p.rings[i][:controlSize+size])}
		p.out[i].setShape(Shape{Chunk: size / 2, Bytes: size})
		p.out[i].copies = &copier{short: ways.New(ways.Pace{Ways: 1, First: 10_000})} // C never reports
		p.in[1-i] = newReader(p.rings[i][:controlSize+size])
		p.cells[i] = cells{most: twinCells, n: twinCells, owned: [...]byte{1: 2, 2*ringCells - 1: 0}, asked: true}
		p.out[i].cells = &p.cells[i]
	}
	for i := range p.cells {
		p.cells[i].mem = [2]*byte{&p.rings[i][controlSize+size], &p.rings[1-i][controlSize+size]}
	}
	return p
}

// bytes returns all memory, as C gets it: with zeros in place of Go's pointers and own fields.
func (p *sides) bytes() []byte {
	out, in, cells := p.out, p.in, p.cells
	for i := range out {
		out[i].control, out[i].claim, out[i].copies, out[i].cells = nil, nil, nil, nil
		out[i].awaited, out[i].plain = false, plainInC
		in[i].control, in[i].here, in[i].after, in[i].wider, in[i].read = nil, nil, 0, 0, 0
		in[i].cell, cells[i].fit, cells[i].mem, cells[i].claim = false, false, [2]*byte{}, nil
		out[i].mem, in[i].mem = nil, nil
	}
	all := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&out)), unsafe.Sizeof(out))...)
	all = append(all, unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))...)
	all = append(all, unsafe.Slice((*byte)(unsafe.Pointer(&cells)), unsafe.Sizeof(cells))...)
	return append(append(all, p.rings[0]...), p.rings[1]...)
}

// send reports whether there was room for a frame whole.
func (p *sides) send(side int, tag int32, body []byte) bool {
	w, n := &p.out[side], len(body)
	if n >= chosenFrom && w.cells.n > 0 {
		n = wordSize
	}
	if w.room() < frameHead+n {
		return false
	}
	w.begin(&transport.Header{Kind: transport.Eager, Tag: tag, Len: int64(len(body))}, body)
	return true
}

// receive reports whether there was a frame.
func (p *sides) receive(side int) bool {
	pair := peer{w: p.out[side], r: p.in[side], cells: p.cells[side], behind: true}
	if kind, _, _ := pair.next(); kind != first {
		return false
	}
	pair.done()
	p.out[side], p.in[side], p.cells[side] = pair.w, pair.r, pair.cells
	return true
}

// Two sides send and receive frames of all lengths that C writes, in Go and in C, in phases: one
// sends ahead, or the two answer each other, so that laps are short.
func TestRingsInGoAndC(t *testing.T) {
	const size, longest = 16 << 10, 3 << 10
	const length = uint64(controlSize + size + twinCells*cellSize)
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	var inGo *sides
	var inC []byte
	turned, full, celled, plain := false, false, 0, 0
	for i := range 3000 {
		if i%600 == 0 { // rings that have had no long frame
			inGo = newSides(size)
			inC = inGo.bytes()
		}
		answers, side := i/100%2 == 1, i%2
		n := r.IntN(1 << r.IntN(13))
		if n = min(n, longest); i/300%2 == 0 && i%600 < 290 {
			n = min(n, 200)
		} else if i%600 == 290 {
			n = smallBody // before any that is longer
		}
		body, owned := bytes.Repeat([]byte{byte(i)}, n), inGo.cells[side].n
		got, want := c.Call("writer_begin", inC, uint64(side), length, uint64(n), uint64(i)),
			inGo.send(side, int32(i), body)
		left := (*uint32)(unsafe.Add(unsafe.Pointer(&inC[0]), uintptr(side)*unsafe.Sizeof(writer{})+unsafe.Offsetof(writer{}.plain)))
		inCell := inGo.cells[side].n < owned
		asked := n >= chosenFrom && got != 0 && !inCell
		if inCell {
			celled++
		} else if asked {
			plain++
		}
		if asked != (*left == plainInC-1) {
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
	if !turned || !full || celled == 0 || plain == 0 {
		t.Errorf("laps were short: %v, rings were full: %v, %d payloads went to cells and %d long ones not: want all",
			turned, full, celled, plain)
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
