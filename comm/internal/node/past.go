package node

import "gompi/internal/mem"

// What the caches do not hold is stored past them.

// pastFrom is the bytes of all members' buffers from which on they are so much: what is
// received would first be fetched from memory, then overwritten (np=2 near, through the
// caches and past them: gather of 16 MiB 3.0 and 1.5 ms, alltoall 5.2 and 3.6,
// reduce-scatter 5.3 and 3.8, of 4 MiB 0.86 and 0.54, allgather of 4 MiB 0.89 and 0.71,
// allreduce of 8 MiB 1.7 and 0.9; np=4 on two processors, allgather of 1 MiB 1.3 and 0.9.
// But of 4 MiB, which they hold, gather 0.31 and 0.41, scatter 0.34 and 0.45).
const pastFrom = 20 << 20

// footprint returns the bytes of all members' buffers, as far as this one can tell.
func (r *Room) footprint(f *flow) int {
	own := footprint(f.send, f.recv)
	if f.full {
		return r.size() * own
	}
	return own + (r.size()-1)*f.most*f.typ.Size()
}

// footprint returns the bytes of a member's buffers.
func footprint(send, recv []byte) int {
	bytes := func(b []byte) mem.Buffer { return mem.HostBytes(mem.U8, len(b), b) }
	if mem.Overlap(bytes(send), bytes(recv)) { // in place: one lies in the other
		return max(len(send), len(recv))
	}
	return len(send) + len(recv)
}

// deliver stores what this member receives.
func deliver(dst, src []byte, past bool) {
	if past {
		mem.Stream(dst, src)
	} else {
		copy(dst, src)
	}
}

// fork copies b to where the others read it, and to this member's own block.
func (r *Room) fork(f *flow, own, to, b []byte) {
	if len(b) == 0 || &own[0] == &b[0] {
		r.reach.Copy(to, b)
	} else {
		r.reach.Fork(to, own, b, f.past)
	}
}

// combineTo combines the srcs of a flow into dst.
func (r *Room) combineTo(f *flow, dst mem.Buffer) error {
	if f.past && !r.keepsOrder(f.op) {
		return mem.StreamReduce(f.op.Kind, append(r.dsts[:0], dst), mem.Buffer{}, r.srcs[f.lo:f.hi]...)
	}
	return r.combine(f.op, dst, f.lo, f.hi, f.scan)
}

// combineShare combines the srcs of a long allreduce into this member's recv, and into
// held, where the others read the result.
func (r *Room) combineShare(l *share, dst, held mem.Buffer) error {
	if l.past && !r.keepsOrder(l.op) && !r.reach.Far() {
		return mem.StreamReduce(l.op.Kind, append(r.dsts[:0], dst), held, r.srcs...)
	}
	err := r.combine(l.op, dst, 0, r.size(), false)
	r.reach.Copy(held.HostSlice(), dst.HostSlice())
	return err
}
