package hier

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmcoll"
	"gompi/internal/mem"
)

// A pipeline takes one vector through the hierarchy in pieces, each of which is combined inside
// the hosts, goes between them, and is handed out inside them. While a piece is between hosts,
// the next is combined and the one before handed out: by those who go there in their first wait
// for a message of the piece, by the other members at once.
//
// A pipeline is the Peers of those who go between hosts, so that it sees their waits.
type pipeline struct {
	*coll.Subset // the leaders, or those on this one's rail
	c            *Comm
	stages       stages
	send, recv   mem.Buffer // what a host has combined is in recv, too
	op           call.Op
	home         int  // the root's host
	leader       int  // member of this host
	goes         bool // this one goes between hosts
	open         bool // the members of this host see each other's vectors, through window
	window       shmcoll.Window
	piece        int // elements of one
	pieces       int
	current      int  // the piece between hosts
	overlapped   bool // what there is to do inside the host meanwhile is done
}

// A stage does something with a piece of a vector.
type stage func(v *pipeline, p part) error

// A part is a piece of a pipeline's vector.
type part struct {
	number, lo int // lo is its first element
	send, recv mem.Buffer
}

// stages are what becomes of each piece: inside each host, then between hosts, done by those who
// go there, then inside each host again. Nil is nothing.
type stages struct{ in, between, out stage }

// A schedule is the stages of a collective.
type schedule struct {
	rails  bool // all on rails go between hosts, each with its share, and not the leaders
	copied stages
	open   stages // where the members of a host see each other's vectors
}

var (
	bcast = schedule{
		copied: stages{nil, (*pipeline).leadersBcast, (*pipeline).handOut},
		open:   stages{(*pipeline).release, (*pipeline).leadersBcast, (*pipeline).fetch},
	}
	reduce = schedule{
		copied: stages{(*pipeline).combine, (*pipeline).leadersReduce, nil},
		open:   stages{(*pipeline).fold, (*pipeline).leadersReduce, nil},
	}
	allreduceLed = schedule{
		copied: stages{(*pipeline).combine, (*pipeline).leadersAllreduce, (*pipeline).handOut},
		open:   stages{(*pipeline).fold, (*pipeline).leadersAllreduce, (*pipeline).fetch},
	}
	allreduceShared = schedule{
		rails:  true,
		copied: stages{(*pipeline).combineShares, (*pipeline).railAllreduce, (*pipeline).gatherShares},
		open:   stages{(*pipeline).foldShare, (*pipeline).railAllreduce, (*pipeline).fetchShares},
	}
)

// vector does with a vector what s says.
func (c *Comm) vector(p *path.Path, s *schedule, root int, send, recv mem.Buffer, op call.Op) error {
	v := &c.pipeline
	*v = pipeline{Subset: c.leaders, c: c, stages: s.copied, send: send, recv: recv, op: op,
		home: c.seats[root].host, leader: c.lead(root)}
	v.goes = c.me.member == v.leader
	v.piece = p.Piece.Most / max(send.Type().Size(), 1)
	if s.rails {
		v.Subset, v.goes = c.rail, c.OnRail()
		v.piece *= c.rails
	}
	v.pieces = max((send.Len()+v.piece-1)/v.piece, 1)
	if p.Ask == path.SharedHeap && c.room != nil {
		if err := v.openTo(s); err != nil {
			return err
		}
	}
	if err := v.run(); err != nil || !v.open {
		return err
	}
	return v.window.Close()
}

// openTo opens the vector to the other members of this host, if all see what they need of it: the
// operands that others combine, and what those bring who go between hosts.
func (v *pipeline) openTo(s *schedule) (err error) {
	var send, recv mem.Buffer
	if s.copied.in != nil && (s.rails || !v.goes) {
		send = v.send
	}
	if s.copied.out != nil && v.goes {
		recv = v.recv
	}
	if v.window, v.open, err = v.c.room.OpenWindow(send, recv, v.send.Size(), v.pieces); v.open {
		v.stages = s.open
	}
	return err
}

func (v *pipeline) run() error {
	if err := v.do(v.stages.in, 0); err != nil {
		return err
	}
	for v.current = range v.pieces {
		v.overlapped = false
		if v.goes {
			if err := v.do(v.stages.between, v.current); err != nil {
				return err
			}
			if v.open {
				v.window.Made(v.current)
			}
		}
		if err := v.overlap(); err != nil { // unless a Wait has done so
			return err
		}
	}
	return v.do(v.stages.out, v.pieces-1)
}

// Wait implements coll.Peers. All work inside the host is done in the first Wait for a piece: the
// other members of the host wait for it already, and an algorithm may have no second one.
func (v *pipeline) Wait() error {
	err := v.overlap()
	if waited := v.Subset.Wait(); err == nil {
		err = waited
	}
	return err
}

// overlap does once what is to be done inside the host while the current piece is between hosts.
func (v *pipeline) overlap() error {
	if v.overlapped {
		return nil
	}
	v.overlapped = true
	if next := v.current + 1; next < v.pieces {
		if err := v.do(v.stages.in, next); err != nil {
			return err
		}
	}
	if v.current == 0 {
		return nil
	}
	return v.do(v.stages.out, v.current-1)
}

func (v *pipeline) do(do stage, number int) error {
	if do == nil {
		return nil
	}
	lo, hi := number*v.piece, min((number+1)*v.piece, v.send.Len())
	p := part{number: number, lo: lo, send: v.send.Slice(lo, hi), recv: v.recv}
	if v.recv.Len() > 0 { // who only gives its operand has none
		p.recv = v.recv.Slice(lo, hi)
	}
	return do(v, p)
}

// The stages.

func (v *pipeline) combine(p part) error {
	return v.c.inside(new(call.Call).Reduce(v.leader, p.send, p.recv, v.op.Base()))
}

func (v *pipeline) leadersBcast(p part) error {
	return v.c.between(v, new(call.Call).Bcast(v.home, p.recv))
}

func (v *pipeline) leadersReduce(p part) error {
	return v.c.between(v, new(call.Call).Reduce(v.home, p.recv, p.recv, v.op.Base()))
}

func (v *pipeline) leadersAllreduce(p part) error { return v.allreduce(p.recv) }

func (v *pipeline) handOut(p part) error {
	return v.c.inside(new(call.Call).Bcast(v.leader, p.recv))
}

func (v *pipeline) combineShares(p part) error {
	mine, counts := v.c.Share(p.recv)
	return v.c.inside(new(call.Call).ReduceScatter(p.send, mine, counts, v.op.Base()))
}

func (v *pipeline) railAllreduce(p part) error {
	mine, _ := v.c.Share(p.recv)
	return v.allreduce(mine)
}

func (v *pipeline) gatherShares(p part) error {
	mine, counts := v.c.Share(p.recv)
	return v.c.inside(new(call.Call).Allgatherv(mine, p.recv, counts, nil))
}

// release has the root's host read a piece when it goes to the others, and not before: then it is
// in the caches (2x2, bcast of 16 MiB in 5.5 ms, of which that host reads all at once in 8.5).
func (v *pipeline) release(p part) error {
	if v.goes && v.c.me.host == v.home {
		v.window.Made(p.number)
	}
	return nil
}

func (v *pipeline) fold(p part) error {
	if !v.goes {
		return nil
	}
	return v.window.Fold(p.recv, p.send, p.lo, v.op.Base())
}

func (v *pipeline) fetch(p part) error {
	if v.goes {
		return nil
	}
	return v.window.Fetch(v.leader, p.number, p.recv, p.lo)
}

func (v *pipeline) foldShare(p part) error {
	operand, _ := v.c.Share(p.send)
	mine, counts := v.c.Share(p.recv)
	at := p.lo
	for _, n := range counts[:v.c.me.member] {
		at += n
	}
	return v.window.Fold(mine, operand, at, v.op.Base())
}

func (v *pipeline) fetchShares(p part) error {
	_, counts := v.c.Share(p.recv)
	at := 0
	for i, n := range counts {
		if i != v.c.me.member && n > 0 {
			if err := v.window.Fetch(i, p.number, p.recv.Slice(at, at+n), p.lo+at); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

func (v *pipeline) allreduce(b mem.Buffer) error {
	if err := v.c.between(v, new(call.Call).Allreduce(b, b, v.op.Base())); err != nil {
		return err
	}
	return v.op.Finish(b, v.c.all.Size())
}
