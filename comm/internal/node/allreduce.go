package node

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// allreduceShort has every member combine all operands itself. It could be a flow, but is what
// programs call most: so what is simple is done simply.
func (r *Room) allreduceShort(send, recv mem.Buffer, op call.Op) error {
	r.step++
	s, size := r.step, send.Size()
	if size <= smallSize {
		r.laySmall(s)
	} else {
		r.lay(s, size, false)
	}
	h := r.head(r.me, s)
	if r.at[s%depth].after > r.free { // as acquire, a call less
		if _, err := r.acquireLate(s); err != nil {
			return err
		}
	}
	r.sign(h)
	copy(r.payload(r.me, s, 0, size), send.HostSlice())
	r.publish(h, s)
	if r.size() == 2 && !r.keepsOrder(op) {
		return r.reducePair(s, send, recv, op)
	}
	if err := r.assemble(s); err != nil {
		return err
	}
	for j := range r.parts {
		if j == r.me && !r.keepsOrder(op) {
			r.srcs[j] = send
			continue
		}
		if j != r.me {
			if _, err := r.meet(j, s); err != nil {
				return err
			}
		}
		r.srcs[j] = mem.HostBytes(send.Type(), send.Len(), r.payload(j, s, 0, size))
	}
	r.free = s - 1 // all have begun this one: they have read what was before
	return r.combine(op, recv, 0, r.size(), false)
}

// reducePair ends a short allreduce of two: nothing goes through srcs, from which it
// would be loaded right after it was stored.
func (r *Room) reducePair(s uint64, send, recv mem.Buffer, op call.Op) error {
	peer := 1 - r.me
	if _, err := r.meet(peer, s); err != nil {
		return err
	}
	r.free = s - 1
	a, b := send, mem.HostBytes(send.Type(), send.Len(), r.payload(peer, s, 0, send.Size()))
	if peer == 0 {
		a, b = b, a
	}
	return mem.Reduce(op.Kind, recv, a, b)
}

// A share is a long allreduce. In each step the members do a stretch of the vector
// in three movements:
//
//	fill    a member stores what the others will combine
//	reduce  it combines its own share of the stretch, for which it reads what the
//	        others have stored of it, and stores the result in its place
//	gather  it reads the shares of the others
//
// So every element is stored once for the others by all but one of them, and once
// by the one that has combined it. The next steps are filled before the first is
// reduced, so that nobody waits for what others do at the same time.
type share struct {
	send, recv mem.Buffer
	op         call.Op
	first      uint64
	stretch    int // elements in a step
	staged     bool
	met, far   bool // as a flow's
	past       bool // in place, what is stored has just been read: 64 MiB 10.4 ms, past the caches 10.9
}

func (r *Room) allreduceLong(p *path.Path, send, recv mem.Buffer, op call.Op) error {
	n, size := send.Size(), send.Type().Size()
	l := &r.share
	*l = share{send: send, recv: recv, op: op, staged: r.keepsOrder(op), past: r.size()*2*n >= pastFrom && !mem.Same(send, recv)}
	p, err := r.buffer(p, &l.met)
	if err != nil {
		return err
	}
	l.far, l.stretch = p.Ask == path.LargeBuffers, max(p.Piece.Of(n)/size, 1)
	steps := (send.Len() + l.stretch - 1) / l.stretch
	l.first = r.step + 1
	r.step += uint64(steps)
	ahead := int(min(r.ahead(2*l.stretch*size, l.far), depth/4)) // twice so far from filling to gathering
	for i := range steps + 2*ahead {
		if i < steps {
			if err := r.fillShare(l, i); err != nil {
				return err
			}
		}
		if i == 0 && !l.met {
			if err := r.meetAll(l.first); err != nil {
				return err
			}
		}
		if k := i - ahead; k >= 0 && k < steps {
			if err := r.reduceShare(l, k); err != nil {
				return err
			}
		}
		if k := i - 2*ahead; k >= 0 {
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
	lo, hi = mem.Share(n, members, mem.CacheLine/l.send.Type().Size(), j)
	return base, base + lo, base + hi
}

// held returns where member j holds elements lo to hi-1 of a step that begins with
// element base.
func (r *Room) held(l *share, j int, s uint64, base, lo, hi int) []byte {
	size := l.send.Type().Size()
	return r.payload(j, s, (lo-base)*size, (hi-lo)*size)
}

func (r *Room) fillShare(l *share, i int) error {
	s := l.first + uint64(i)
	base, lo, hi := l.bounds(i, r.me, r.size())
	end := min(base+l.stretch, l.send.Len())
	r.lay(s, (end-base)*l.send.Type().Size(), l.far)
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	if h.call.A = 0; i == 0 && !l.met {
		r.sign(h)
	}
	if l.staged {
		lo = hi
	}
	r.reach.Copy(r.held(l, r.me, s, base, base, lo), l.send.Slice(base, lo).HostSlice())
	r.reach.Copy(r.held(l, r.me, s, base, hi, end), l.send.Slice(hi, end).HostSlice())
	r.publish(h, s)
	return nil
}

func (r *Room) reduceShare(l *share, i int) error {
	s := l.first + uint64(i)
	base, lo, hi := l.bounds(i, r.me, r.size())
	dst := l.recv.Slice(lo, hi)
	for j := range r.parts {
		if j != r.me {
			if err := r.await(&r.head(j, s).step, s, j); err != nil {
				return err
			}
		} else if !l.staged {
			r.srcs[j] = l.send.Slice(lo, hi)
			continue
		}
		r.srcs[j] = mem.HostBytes(dst.Type(), dst.Len(), r.held(l, j, s, base, lo, hi))
	}
	held := mem.HostBytes(dst.Type(), dst.Len(), r.held(l, r.me, s, base, lo, hi))
	if err := r.combineShare(l, dst, held); err != nil {
		return err
	}
	r.store(&r.parts[r.me].lines.made, s)
	return nil
}

func (r *Room) gatherShares(l *share, i int) error {
	s := l.first + uint64(i)
	for d := 1; d < r.size(); d++ {
		j := (r.me + d) % r.size()
		if err := r.await(&r.parts[j].lines.made, s, j); err != nil {
			return err
		}
		base, lo, hi := l.bounds(i, j, r.size())
		deliver(l.recv.Slice(lo, hi).HostSlice(), r.held(l, j, s, base, lo, hi), l.past)
	}
	r.hasRead(s)
	return nil
}
