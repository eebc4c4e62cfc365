package shmsync

// A place is the location of a step's payload in every member's memory.
type place struct {
	inHead, large bool
	exchanged     int    // 1 if the two members have exchanged their buffers
	off           int    // in the large buffer if large, else in the block
	after         uint64 // to be filled only after all have read this step
}

// A ring is a bounce buffer: the payloads of successive steps go round in it. held lists the
// steps in the ring.
//
// In steps in which two members send to each other they exchange their buffers after each round:
// a member stores its payload where it has read the other's a round ago. Reading has brought the
// lines to its cache; lines that the other has read would have to be taken back (half a round trip
// of 64 KiB between two bare processes on an AMD EPYC 25/17, us: near 3.0 in a ring of 2 MiB for
// each direction, 10 in 64 KiB each, 2.5 in 64 KiB for both; far 29, 32 and 5.1).
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
	turn uint64 // 1 if members can exchange their buffers, 0 if they are not two
}

type stay struct{ step, start uint64 }

// lay gives step s a place of n contiguous bytes. exchange means that all members fill the step for
// all others.
func (g *ring) lay(p *place, s uint64, n int, exchange bool) {
	length := uint64(n+lineSize-1) &^ (lineSize - 1)
	if left := g.size - g.next%g.size; left < length {
		g.next += left
	}
	round := g.next / g.size
	if p.off, p.exchanged = g.at+int(g.next-round*g.size), 0; exchange {
		p.exchanged = int(round & g.turn)
	}
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
