package shm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"gompi/transport"
)

// linked returns two peers, each with its ends of the same rings and with the cells behind them.
func linked() (p [2]*peer) {
	mem := area(2)
	ring := func(to, from int) []byte { return mem[ringsAt(2)+(to*2+from)*stride(2):][:stride(2)] }
	for i := range p {
		out, in := ring(1-i, i), ring(i, 1-i)
		p[i] = &peer{w: writer{ring: newRing(out[:cellsAt(2)])}, r: newReader(in[:cellsAt(2)]), reads: true}
		p[i].w.setShape(defaultShape)
		p[i].w.claim = func() bool { return true }
		c := &p[i].cells
		c.mem, c.most, c.claim = [2]*byte{&out[cellsAt(2)], &in[cellsAt(2)]}, uint32(cellBytes(2)/cellSize), p[i].w.claim
		p[i].w.cells = c
	}
	return p
}

// swap sends n bytes from a peer to the other, which reads them, and returns the cells used.
func swap(t *testing.T, from, to *peer, n int) (used int) {
	t.Helper()
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i + n)
	}
	from.w.begin(&transport.Header{Kind: transport.Eager, Len: int64(n)}, body)
	for at := 0; ; {
		kind, _, got := to.next()
		if kind != first && kind != more || !slices.Equal(got, body[at:at+len(got)]) {
			t.Fatalf("a record of kind %d with %d bytes behind %d of %d is wrong", kind, len(got), at, n)
		}
		if to.r.cell {
			used++
		}
		to.done()
		if at += len(got); at == n {
			return used
		}
		if from.w.continueFrame(body[at:]) == 0 {
			t.Fatalf("no room behind %d of %d bytes", at, n)
		}
	}
}

// An answer lies in the cells that its writer has just read, and a rank that gets no answers writes
// to its ring once it has given all its cells away.
func TestAnswersLieWhereMessagesWereRead(t *testing.T) {
	p := linked()
	for i := range 10 {
		from, to := p[i%2], p[1-i%2]
		last := from.cells.owned[max(from.cells.n, 1)-1]
		if used := swap(t, from, to, 60_000); used != 4 {
			t.Errorf("message %d: %d cells, want 4", i, used)
		}
		if i > 0 && to.cells.owned[to.cells.n-4] != last^1 {
			t.Errorf("message %d does not begin in cell %d, which was read last", i, last)
		}
	}
	all, used := int(p[0].cells.n+p[1].cells.n), 0
	for range all + 10 {
		used += swap(t, p[0], p[1], cellSize)
	}
	if p[0].cells.n != 0 || int(p[1].cells.n) != all || used == 0 || used >= all {
		t.Errorf("behind a stream the ranks have %d and %d cells of %d, %d messages took one",
			p[0].cells.n, p[1].cells.n, all, used)
	}
	if used := swap(t, p[1], p[0], 2*all*cellSize); used != 0 {
		t.Errorf("a frame longer than all cells took %d", used)
	}
}

// A frame that fits is written to its end before anything of it is read, in cells and behind them,
// also where the lap would end.
func TestAFrameThatFitsIsWrittenWholeBehindCells(t *testing.T) {
	for answered := range 40 {
		for owned := range 4 {
			for rest := 0; rest < cellSize; rest += 509 {
				p := linked()
				for range answered {
					swap(t, p[0], p[1], 8)
					swap(t, p[1], p[0], 8)
				}
				w, n := &p[0].w, owned*cellSize+rest
				if w.cells.has(); !w.fits(n) {
					continue
				}
				w.cells.n = uint32(owned)
				body := make([]byte, n)
				at, _ := w.begin(&transport.Header{Kind: transport.Eager, Len: int64(n)}, body)
				for at < n {
					k := w.continueFrame(body[at:])
					if at += k; k == 0 {
						t.Fatalf("behind %d answers and %d cells there is no room for %d of %d bytes", answered, owned, n-at, n)
					}
				}
			}
		}
	}
}

// Two ranks send to each other at random. All arrives, and no cell is lost or owned twice.
func TestEachCellHasOneOwner(t *testing.T) {
	p := linked()
	const frames = 5000
	var both sync.WaitGroup
	for i, me := range p {
		both.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			body := make([]byte, 100_000)
			sent, read := 0, 0 // frames
			var rest []byte    // of the frame that is being sent
			began, left := false, 0
			for sent < frames || read < frames {
				runtime.Gosched()
				for sent < frames && rng.IntN(4) > 0 {
					if !began {
						rest = body[:1+rng.IntN(1<<rng.IntN(17))]
						for j := range rest {
							rest[j] = byte(sent)
						}
						var n int
						n, began = me.w.begin(&transport.Header{Kind: transport.Eager, Len: int64(len(rest))}, rest)
						rest = rest[n:]
					} else {
						rest = rest[me.w.continueFrame(rest):]
					}
					if began && len(rest) == 0 {
						began = false
						sent++
					}
				}
				for rng.IntN(4) > 0 {
					kind, head, got := me.next()
					if kind == 0 {
						break
					}
					if kind == first {
						var h transport.Header
						if err := h.Decode(head); err != nil || left > 0 {
							panic(fmt.Sprint(err, left))
						}
						left = int(h.Len)
					}
					for _, b := range got {
						if b != byte(read) {
							panic(fmt.Sprintf("frame %d has %d", read, b))
						}
					}
					if left -= len(got); left == 0 {
						read++
					}
					me.done()
				}
			}
		})
	}
	both.Wait()
	owners := map[*byte]int{}
	for _, me := range p {
		for _, name := range me.cells.owned[:me.cells.n] {
			owners[unsafe.SliceData(me.cells.at(name))]++
		}
	}
	if want := 2 * int(p[0].cells.most); len(owners) != want || want == 0 || int(p[0].cells.n+p[1].cells.n) != want {
		t.Errorf("%d cells have owners, %d and %d are owned, want %d", len(owners), p[0].cells.n, p[1].cells.n, want)
	}
}
