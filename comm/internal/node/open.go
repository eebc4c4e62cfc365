package node

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// Open vectors are for callers that have more to do with them than a room has: between
// Open and Shut members combine and fetch what they want of each other's, and tell what
// they have made, in whatever order they need. Nobody stores to another's.
//
// Open orders what members read of sends after what their owners did before. A piece
// is stored before made tells of it, and fetched after; so an owner that has fetched
// nothing yet has told of nothing that depends on it. Shut is a barrier: nobody
// changes what another still reads.

// opening is what a room knows of the vectors that are open.
type opening struct {
	first uint64 // the step of the first piece; there is one for each, in which no head is filled
	past  bool   // what is fetched is stored past the caches
}

// Open opens this member's vectors of n bytes to the others for the pieces of a
// collective: send if they combine it, recv if they fetch from it, and else none. It
// reports whether all that were opened can be reached; only then do Fold, Made, Fetch
// and Shut follow.
func (r *Room) Open(send, recv mem.Buffer, n, pieces int) (open bool, err error) {
	open, err = r.show(vectors{sends: r.place(send.HostSlice()), recvs: r.place(recv.HostSlice())})
	if open {
		r.open = opening{first: r.step + 1, past: n >= pastFrom}
		r.step += uint64(pieces)
	}
	return open, err
}

// Fold combines the sends of all members, of which this one's is own, from element lo
// of their vectors on, into dst.
func (r *Room) Fold(dst, own mem.Buffer, lo int, op call.Op) error {
	size := own.Type().Size()
	for j := range r.parts {
		if r.srcs[j] = own; j != r.me {
			r.srcs[j] = mem.HostBytes(own.Type(), own.Len(), r.vector(j, r.access.places[j][sends], lo*size, own.Size()))
		}
	}
	return r.combine(op, dst, 0, r.size(), false)
}

// Made tells that this member's recv holds the pieces up to i. It may do so again.
func (r *Room) Made(i int) {
	if made, s := &r.parts[r.me].lines.made, r.open.first+uint64(i); made.Load() < s {
		r.store(made, s)
	}
}

// Fetch copies what a member's recv has from element lo on to dst, when that member
// has made piece i.
func (r *Room) Fetch(member, i int, dst mem.Buffer, lo int) error {
	if err := r.await(&r.parts[member].lines.made, r.open.first+uint64(i), member); err != nil {
		return err
	}
	src := r.vector(member, r.access.places[member][recvs], lo*dst.Type().Size(), dst.Size())
	carry(dst.HostSlice(), src, r.open.past)
	return nil
}

// Shut returns when all members want nothing of each other's vectors any more.
func (r *Room) Shut() error {
	r.hasRead(r.step)
	return r.barrier()
}
