package node

import (
	"gompi/comm/internal/coll"
	"gompi/internal/mem"
)

// directMost returns the bytes up to which every member combines all operands
// itself: one step from one member to the others, where sharing the work takes two.
func (r *Room) directMost() int { return 4 << 10 }

// A share is a long allreduce. In each step the members do a stretch of the vector
// in three movements:
//
//	fill    a member stores in its slot what the others will combine
//	reduce  it combines its own share of the stretch, for which it reads that share
//	        in all slots, and stores the result there in its slot
//	gather  it reads the shares of the others
//
// So every element is stored once for the others by all but one of them, and once
// by the one that has combined it. The next steps are filled before the first is
// reduced, so that nobody waits for what others do at the same time.
type share struct {
	send, recv mem.Buffer
	op         coll.Op
	first      uint64
	stretch    int // elements in a step
	staged     bool
}

// The movements of a step come so many steps after its slot was filled.
const (
	reduceAfter = 2
	gatherAfter = 4
)

func (r *Room) allreduceLong(send, recv mem.Buffer, op coll.Op) error {
	l := &share{send: send, recv: recv, op: op, first: r.step + 1, stretch: r.chunk / send.Type().Size(), staged: r.keepsOrder(op)}
	steps := (send.Len() + l.stretch - 1) / l.stretch
	r.step += uint64(steps)
	for i := range steps + gatherAfter {
		if i < steps {
			if err := r.fillShare(l, i); err != nil {
				return err
			}
		}
		if i == 0 {
			if err := r.meetAll(l.first); err != nil {
				return err
			}
		}
		if k := i - reduceAfter; k >= 0 && k < steps {
			if err := r.reduceShare(l, k); err != nil {
				return err
			}
		}
		if k := i - gatherAfter; k >= 0 {
			if err := r.gatherShares(l, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounds returns the elements of member j's share of step i, and the first of the
// step. Shares begin at whole lines of the cache.
func (l *share) bounds(i, j, members int) (base, lo, hi int) {
	base = i * l.stretch
	n := min(l.stretch, l.send.Len()-base)
	line := 64 / l.send.Type().Size()
	each := ((n+members-1)/members + line - 1) / line * line
	return base, base + min(j*each, n), base + min((j+1)*each, n)
}

// at returns where elements lo to hi-1 of the vector are in the slot of a step that
// begins with element base.
func (l *share) at(h *head, base, lo, hi int) []byte {
	size := l.send.Type().Size()
	return payload(h, headSize, (lo-base)*size, (hi-lo)*size)
}

func (r *Room) fillShare(l *share, i int) error {
	s := l.first + uint64(i)
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	if h.call[0] = 0; i == 0 {
		r.sign(h)
	}
	base, lo, hi := l.bounds(i, r.me, r.size())
	end := min(base+l.stretch, l.send.Len())
	if l.staged {
		lo = hi
	}
	copy(l.at(h, base, base, lo), l.send.Slice(base, lo).HostSlice())
	copy(l.at(h, base, hi, end), l.send.Slice(hi, end).HostSlice())
	r.store(&h.step, s)
	return nil
}

func (r *Room) reduceShare(l *share, i int) error {
	s := l.first + uint64(i)
	base, lo, hi := l.bounds(i, r.me, r.size())
	dst := l.recv.Slice(lo, hi)
	for j := range r.blocks {
		h := r.slot(j, s)
		if j != r.me {
			if err := r.await(&h.step, s, j); err != nil {
				return err
			}
		} else if !l.staged {
			r.srcs[j] = l.send.Slice(lo, hi)
			continue
		}
		r.srcs[j] = mem.HostBytes(dst.Type(), dst.Len(), l.at(h, base, lo, hi))
	}
	f := flow{op: l.op, hi: r.size()}
	if err := r.combine(&f, dst); err != nil {
		return err
	}
	if err := l.op.Finish(dst, r.size()); err != nil {
		return err
	}
	copy(l.at(r.slot(r.me, s), base, lo, hi), dst.HostSlice())
	r.store(&r.lines(r.me).made, s)
	return nil
}

func (r *Room) gatherShares(l *share, i int) error {
	s := l.first + uint64(i)
	for d := 1; d < r.size(); d++ {
		j := (r.me + d) % r.size()
		if err := r.await(&r.lines(j).made, s, j); err != nil {
			return err
		}
		base, lo, hi := l.bounds(i, j, r.size())
		copy(l.recv.Slice(lo, hi).HostSlice(), l.at(r.slot(j, s), base, lo, hi))
	}
	r.hasRead(s)
	return nil
}
