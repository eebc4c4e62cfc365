package hier

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// A vector is one that a collective combines or copies.
type vector struct {
	send, recv mem.Buffer // what a host has combined is in recv, too
	op         call.Op
	home       int // the root's host
	leader     int // for this one
	form       *form
	in, out    act  // the form's, or those for open vectors
	open       bool // the members of this host see each other's
	piece      int  // elements of one
	pieces     int
	over       int // the piece that is under way between hosts
	lo         int // the first element of the piece of an act
}

// An act does something with a piece of a vector.
type act func(c *Comm, send, recv mem.Buffer) error

// A form is what becomes of each piece of a vector: in each host, then between hosts,
// done by those who go there, then in each host again. It may need nothing done.
type form struct {
	shared        bool // carriers go, each with its share, and not who speaks
	in, over, out act
	openIn        act // in and out where vectors are open
	openOut       act
}

var (
	bcast        = form{over: (*Comm).leadBcast, out: (*Comm).tell, openIn: (*Comm).show, openOut: (*Comm).fetch}
	reduce       = form{in: (*Comm).combine, over: (*Comm).leadReduce, openIn: (*Comm).fold}
	allreduceLed = form{in: (*Comm).combine, over: (*Comm).leadAllreduce, out: (*Comm).tell,
		openIn: (*Comm).fold, openOut: (*Comm).fetch}
	allreduceShared = form{shared: true, in: (*Comm).combineShares, over: (*Comm).carryAllreduce, out: (*Comm).gatherShares,
		openIn: (*Comm).foldShare, openOut: (*Comm).fetchShares}
)

// vector does with a vector what f says.
func (c *Comm) vector(p *path.Path, f *form, root int, send, recv mem.Buffer, op call.Op) error {
	v := &c.now
	*v = vector{send: send, recv: recv, op: op, home: c.seats[root].host, leader: c.lead(root), form: f}
	goes, by := c.me.member == v.leader, c.leaderPeers
	v.piece = p.Piece.Most / max(v.send.Type().Size(), 1)
	if f.shared {
		goes, by = c.OnRail(), c.railPeers
		v.piece *= c.rails
	}
	v.pieces = max((v.send.Len()+v.piece-1)/v.piece, 1)
	if err := c.open(p, f, goes); err != nil {
		return err
	}
	if err := c.pass(v.in, 0); err != nil {
		return err
	}
	for v.over = range v.pieces {
		if err := c.goOver(goes, by); err != nil {
			return err
		}
	}
	if err := c.pass(v.out, v.pieces-1); err != nil || !v.open {
		return err
	}
	return c.room.Shut()
}

// open opens the vector to the other members of this host, if p says so and all see what
// they need of it: the operands that others combine, and what those bring who go.
func (c *Comm) open(p *path.Path, f *form, goes bool) (err error) {
	v := &c.now
	v.in, v.out = f.in, f.out
	if p.Ask != path.SharedHeap || c.room == nil {
		return nil
	}
	var send, recv mem.Buffer
	if f.in != nil && (f.shared || !goes) {
		send = v.send
	}
	if f.out != nil && goes {
		recv = v.recv
	}
	if v.open, err = c.room.Open(send, recv, v.send.Size(), v.pieces); !v.open {
		return err
	}
	v.in, v.out = f.openIn, f.openOut
	return nil
}

// goOver has the next piece go between hosts, and does meanwhile what is to be done in
// this one.
func (c *Comm) goOver(goes bool, by *coll.Subset) error {
	if goes {
		by.Meantime = c.meantime
		if err := c.pass(c.now.form.over, c.now.over); err != nil {
			return err
		}
		if c.now.open {
			c.room.Made(c.now.over)
		}
		if by.Meantime == nil {
			return nil
		}
		by.Meantime = nil // there was nothing to wait for
	}
	return c.passNeighbours()
}

// passNeighbours does in this host what is to be done with the pieces next to the one
// that is under way.
func (c *Comm) passNeighbours() error {
	v := &c.now
	if next := v.over + 1; next < v.pieces {
		if err := c.pass(v.in, next); err != nil {
			return err
		}
	}
	if v.over == 0 {
		return nil
	}
	return c.pass(v.out, v.over-1)
}

func (c *Comm) pass(do act, piece int) error {
	if do == nil {
		return nil
	}
	v := &c.now
	lo, hi := piece*v.piece, min((piece+1)*v.piece, v.send.Len())
	v.lo = lo
	recv := v.recv
	if recv.Len() > 0 { // who only gives its operand has none
		recv = recv.Slice(lo, hi)
	}
	return do(c, v.send.Slice(lo, hi), recv)
}

// The acts of forms.

func (c *Comm) combine(send, recv mem.Buffer) error {
	return c.inner.run(new(call.Call).Reduce(c.now.leader, send, recv, c.now.op.Base()))
}

func (c *Comm) leadBcast(_, b mem.Buffer) error {
	return c.leaders.run(new(call.Call).Bcast(c.now.home, b))
}

func (c *Comm) leadReduce(_, b mem.Buffer) error {
	return c.leaders.run(new(call.Call).Reduce(c.now.home, b, b, c.now.op.Base()))
}

func (c *Comm) leadAllreduce(_, b mem.Buffer) error { return c.allreduce(&c.leaders, b) }

func (c *Comm) tell(_, b mem.Buffer) error { return c.inner.run(new(call.Call).Bcast(c.now.leader, b)) }

func (c *Comm) combineShares(send, recv mem.Buffer) error {
	return c.inner.run(new(call.Call).ReduceScatter(send, c.Share(recv), c.shares, c.now.op.Base()))
}

func (c *Comm) carryAllreduce(_, b mem.Buffer) error { return c.allreduce(&c.rail, c.Share(b)) }

func (c *Comm) gatherShares(_, b mem.Buffer) error {
	return c.inner.run(new(call.Call).Allgatherv(c.Share(b), b, c.shares, nil))
}

// show has the root's host read a piece when it goes to the others, and not before: then
// it is in the caches (2x2, bcast of 16 MiB in 5.5 ms, of which that host reads all at
// once in 8.5).
func (c *Comm) show(_, _ mem.Buffer) error {
	if c.me.host == c.now.home && c.me.member == c.now.leader {
		c.room.Made(c.now.lo / c.now.piece)
	}
	return nil
}

func (c *Comm) fold(send, recv mem.Buffer) error {
	if c.me.member != c.now.leader {
		return nil
	}
	return c.room.Fold(recv, send, c.now.lo, c.now.op.Base())
}

func (c *Comm) fetch(_, b mem.Buffer) error {
	if c.me.member == c.now.leader {
		return nil
	}
	return c.room.Fetch(c.now.leader, c.now.lo/c.now.piece, b, c.now.lo)
}

func (c *Comm) foldShare(send, recv mem.Buffer) error {
	mine, at := c.Share(recv), 0
	for _, n := range c.shares[:c.me.member] {
		at += n
	}
	return c.room.Fold(mine, c.Share(send), c.now.lo+at, c.now.op.Base())
}

func (c *Comm) fetchShares(_, b mem.Buffer) error {
	c.Share(b)
	at := 0
	for i, n := range c.shares {
		if i != c.me.member && n > 0 {
			if err := c.room.Fetch(i, c.now.lo/c.now.piece, b.Slice(at, at+n), c.now.lo+at); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

func (c *Comm) allreduce(among *group, b mem.Buffer) error {
	if err := among.run(new(call.Call).Allreduce(b, b, c.now.op.Base())); err != nil {
		return err
	}
	return c.now.op.Finish(b, c.all.Size())
}
