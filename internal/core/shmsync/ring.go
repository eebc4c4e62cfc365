package shmsync

// A place is the location of a step's payload in every member's memory.
type place struct {
	inHead, large bool
	off           int    // in the large buffer if large, else in the block
	after         uint64 // to be filled only after all have read this step
}

// A ring is a bounce buffer: the payloads of successive steps go round in it. held lists the
// steps in the ring.
//
//c:struct gompi_bounce
type ring struct {
	at   int // offset of the ring
	size uint64
	next uint64 // where the next payload goes, counted without end
	held [depth]stay
	n    uint64 // of all that were held: the last at held[(n-1)%depth]
	out  uint64 // of these: steps that are gone
	gone uint64 // the last step of which something has been overwritten
}

type stay struct{ step, start uint64 }

// lay gives step s a place of n contiguous bytes.
func (g *ring) lay(p *place, s uint64, n int) {
	length := uint64(n+lineSize-1) &^ (lineSize - 1)
	if left := g.size - g.next%g.size; left < length {
		g.next += left
	}
	p.off = g.at + int(g.next%g.size)
	g.held[g.n%depth] = stay{s, g.next}
	g.n++
	g.next += length
	for ; g.out < g.n-1; g.out++ {
		h := g.held[g.out%depth]
		if h.start+g.size >= g.next && g.out+depth > g.n {
			break
		}
		g.gone = h.step
	}
	p.after = max(p.after, g.gone)
}
