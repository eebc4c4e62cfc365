package shmcoll

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// Open vectors are for callers that have more to do with them than one collective: between
// Open and Shut members combine and fetch what they want of each other's, and tell what
// they have made, in whatever order they need. Nobody stores to another's.
//
// Open orders what members read of sends after what their owners did before. A piece
// is stored before Made tells of it, and fetched after; so an owner that has fetched
// nothing yet has told of nothing that depends on it. Shut is a barrier: nobody
// changes what another still reads.

// opening is what a Comm knows of the vectors that are open, from Open to Shut.
type opening struct {
	first       uint64 // the step of the first piece; there is one for each, in which no head is filled
	nonTemporal bool   // what is fetched is stored so
}

// Open opens this member's vectors of n bytes to the others for the pieces of a
// collective: send if they combine it, recv if they fetch from it, and else none. It
// reports whether all that were opened can be reached; only then do Fold, Made, Fetch
// and Shut follow.
func (c *Comm) Open(send, recv mem.Buffer, n, pieces int) (open bool, err error) {
	open, err = c.tellPlaces(places{c.locate(send), c.locate(recv)})
	if open {
		c.open = opening{first: c.Next(pieces), nonTemporal: n >= nonTemporalFrom}
	}
	return open, err
}

// Fold combines the sends of all members, of which this one's is own, from element lo
// of their vectors on, into dst.
func (c *Comm) Fold(dst, own mem.Buffer, lo int, op call.Op) error {
	size := own.Type().Size()
	for j := range c.srcs {
		if c.srcs[j] = own; j != c.Me() {
			c.srcs[j] = mem.HostBytes(own.Type(), own.Len(), c.vector(j, sends, lo*size, own.Size()))
		}
	}
	return c.combine(op, dst, 0, c.Size(), false)
}

// Made tells that this member's recv holds the pieces up to i. It may do so again.
func (c *Comm) Made(i int) { c.ResultReady(c.open.first + uint64(i)) }

// Fetch copies what a member's recv has from element lo on to dst, when that member
// has made piece i.
func (c *Comm) Fetch(member, i int, dst mem.Buffer, lo int) error {
	if err := c.AwaitResult(member, c.open.first+uint64(i)); err != nil {
		return err
	}
	src := c.vector(member, recvs, lo*dst.Type().Size(), dst.Size())
	copyShared(dst.HostSlice(), src, c.open.nonTemporal)
	return nil
}

// Shut returns when all members want nothing of each other's vectors any more.
func (c *Comm) Shut() error {
	c.Consumed(c.Last())
	return c.Barrier()
}
