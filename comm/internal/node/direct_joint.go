package node

import (
	"gompi/comm/internal/coll"
	"gompi/internal/mem"
)

// Collectives on vectors of which every member does its share: it combines that
// stretch of all sends in one pass and stores the result to all recvs. So every
// byte is read once and stored once for each who gets it, and all members have the
// same to do, whoever is the root.

// members are those from lo to hi-1.
type members struct{ lo, hi int }

func (m members) n() int { return m.hi - m.lo }

func (m members) has(j int) bool { return m.lo <= j && j < m.hi }

func (r *Room) all() members { return members{0, r.size()} }

func only(root int) members { return members{root, root + 1} }

// allreduceDirect does an allreduce if all vectors can be reached.
func (r *Room) allreduceDirect(send, recv mem.Buffer, op coll.Op) (done bool, err error) {
	if r.keepsOrder(op) {
		return false, nil
	}
	done, err = r.show(vectors{sends: r.place(send.HostSlice()), recvs: r.place(recv.HostSlice())})
	if done {
		err = r.jointly(send, op, r.all(), r.all())
	}
	return done, err
}

// reduceDirect does a reduce if all vectors can be reached.
func (r *Room) reduceDirect(root int, send, recv mem.Buffer, op coll.Op) (done bool, err error) {
	if r.keepsOrder(op) {
		return false, nil
	}
	v := vectors{sends: r.place(send.HostSlice()), recvs: private}
	if r.me == root {
		v[recvs] = r.place(recv.HostSlice())
	}
	if done, err = r.show(v); done {
		err = r.jointly(send, op, r.all(), only(root))
	}
	return done, err
}

// bcastDirect does a bcast if all vectors can be reached.
func (r *Room) bcastDirect(root int, b mem.Buffer) (done bool, err error) {
	at := r.place(b.HostSlice())
	v := vectors{sends: private, recvs: at}
	if r.me == root {
		v[sends] = at
	}
	if done, err = r.show(v); done {
		err = r.jointly(b, coll.Op{}, only(root), r.all())
	}
	return done, err
}

// jointly does this member's share of vectors like one: from the sends of some
// members, combined by op where they are several, to the recvs of others. What the
// caches do not hold is stored past them, but for what has just been read there (np=2
// near, through the caches and past them: bcast of 16 MiB 0.39 and 0.61 ms, of 64 MiB
// 4.2 and 2.8; allreduce of 64 MiB 10.4 and 9.2, in place 6.4 and 7.1). What one member
// alone receives is combined past them, too (see mem.StreamReduce).
func (r *Room) jointly(like mem.Buffer, op coll.Op, from, to members) error {
	size := like.Type().Size()
	lo, hi := r.stretch(like.Size())
	past := like.Size()*r.touched(from, to) > r.size()*pastFrom
	piece := pieceDirect(past)
	for ; lo < hi; lo += piece {
		n := min(piece, hi-lo)
		for j := from.lo; j < from.hi; j++ {
			r.srcs[j] = mem.HostBytes(like.Type(), n/size, r.vector(j, r.access.places[j][sends], lo, n))
		}
		result := r.srcs[from.lo]
		if from.n() > 1 {
			mine := max(to.lo, min(r.me, to.hi-1)) // its own recv, if it has one
			result = mem.HostBytes(like.Type(), n/size, r.vector(mine, r.access.places[mine][recvs], lo, n))
			if err := r.combineDirect(op, result, from.lo, from.hi, past && to.n() == 1); err != nil {
				return err
			}
		}
		for j := to.lo; j < to.hi; j++ {
			at := &r.access.places[j]
			carry(r.vector(j, at[recvs], lo, n), result.HostSlice(), past && at[sends] != at[recvs])
		}
	}
	return r.Barrier()
}

// combineDirect is combine of what is combined in no order, past the caches if nobody
// reads it here.
func (r *Room) combineDirect(op coll.Op, dst mem.Buffer, lo, hi int, past bool) error {
	if past {
		return mem.StreamReduce(op.Kind, dst, r.srcs[lo:hi]...)
	}
	return r.combine(op, dst, lo, hi, false)
}

// touched returns how many vectors the sends of some members and the recvs of others
// are: in place they are the same.
func (r *Room) touched(from, to members) (n int) {
	for j, at := range r.access.places {
		if from.has(j) {
			n++
		}
		if to.has(j) && at[recvs] != at[sends] {
			n++
		}
	}
	return n
}

// stretch returns this member's share of n bytes, whole lines of the cache.
func (r *Room) stretch(n int) (lo, hi int) {
	each := ((n+r.size()-1)/r.size() + cacheLine - 1) / cacheLine * cacheLine
	return min(r.me*each, n), min((r.me+1)*each, n)
}
