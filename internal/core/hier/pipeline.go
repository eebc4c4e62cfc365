package hier

import (
	"gompi/internal/core/call"
	"gompi/internal/core/coll"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// A pipeline does a collective of a single vector in chunks. Each chunk is combined inside the
// hosts, goes between them, and is handed out inside them. While a chunk is between hosts, the next
// chunk is combined and the previous chunk handed out: a leader does that in its first Wait for a
// message of the chunk, the other members at once. Where the Path has a chain of hosts, each chunk
// is between them for two steps: a leader sends the chunk on while it receives the next
// (coll/chain.go). A pipeline is the coll.Peers of the algorithm between hosts, so that it sees the
// Waits.
type pipeline struct {
	*coll.Subset // the leaders, or the ranks on this rank's rail
	c            *Collectives
	stages       stages
	step         func(v *pipeline) error // nil: stages.between
	send, recv   mem.Buffer              // recv also holds a host's combined data
	op           call.Op
	home         int  // the root's host
	leader       int  // member of this host
	exchanges    bool // this rank exchanges messages with other hosts
	open         bool // the members of this host see each other's vectors, through window
	window       Window
	chunk        int // elements of a chunk
	chunks       int
	late         int  // steps after its first in which a chunk is still between hosts
	current      int  // the step, and the chunk for which this is the first step
	overlapped   bool // the work inside the host during the current step is done
}

// A stage is a step of a chunk.
type stage func(v *pipeline, p part) error

// A part is a chunk of a pipeline's vector.
type part struct {
	number, lo int // lo is its first element
	send, recv mem.Buffer
}

// stages are the steps of each chunk: inside the hosts, between hosts, by leaders or rails, and
// inside the hosts again. A nil stage does nothing.
type stages struct{ in, between, out stage }

// A schedule is the stages of a collective.
type schedule struct {
	// the ranks of all rails exchange messages, each of its share, instead of the leaders
	rails  bool
	chain  func(v *pipeline) error // instead of the stage between, where the Path has a chain of hosts
	copied stages
	open   stages // instead of copied, where the members of a host see each other's vectors
}

var (
	bcast = schedule{
		chain:  (*pipeline).bcastStep,
		copied: stages{nil, (*pipeline).leadersBcast, (*pipeline).handOut},
		open:   stages{(*pipeline).release, (*pipeline).leadersBcast, (*pipeline).fetch},
	}
	reduce = schedule{
		chain:  (*pipeline).reduceStep,
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

// vector does the collective of schedule s.
func (c *Collectives) vector(p *path.Path, s *schedule, root int, send, recv mem.Buffer, op call.Op) error {
	v := &c.pipeline
	*v = pipeline{Subset: c.leaders, c: c, stages: s.copied, send: send, recv: recv, op: op,
		home: c.positions[root].host, leader: c.setLeaders(root)}
	v.exchanges = c.me.member == v.leader
	v.chunk = p.Chunk.Most
	if p.Hosts == path.Chain {
		v.step, v.late = s.chain, 1
		v.chunk = p.Chunk.Of(send.Size(), 1)
	}
	v.chunk = max(v.chunk/max(send.ElemSize(), 1), 1)
	if s.rails {
		v.Subset, v.exchanges = c.rail, c.onRail()
		v.chunk *= c.rails
	}
	v.chunks = max((send.Len()+v.chunk-1)/v.chunk, 1)
	if p.Ask == path.SharedHeap && c.shared != nil {
		if err := v.openTo(s); err != nil {
			return err
		}
	}
	if err := v.run(); err != nil || !v.open {
		return err
	}
	return v.window.Close()
}

// openTo opens the vectors to the other members of this host, if these can access them: the
// operands that other members combine, and the results that leaders receive.
func (v *pipeline) openTo(s *schedule) (err error) {
	var send, recv mem.Buffer
	if s.copied.in != nil && (s.rails || !v.exchanges) {
		send = v.send
	}
	if s.copied.out != nil && v.exchanges {
		recv = v.recv
	}
	if v.window, v.open, err = v.c.shared.OpenWindow(send, recv, v.send.Size(), v.chunks); v.open {
		v.stages = s.open
	}
	return err
}

func (v *pipeline) run() error {
	if err := v.do(v.stages.in, 0); err != nil {
		return err
	}
	for v.current = range v.chunks + v.late {
		v.overlapped = false
		if v.exchanges {
			if err := v.betweenHosts(); err != nil {
				return err
			}
			if done := v.current - v.late; v.open && done >= 0 {
				v.window.Made(done)
			}
		}
		if err := v.overlap(); err != nil { // unless a Wait has done so
			return err
		}
	}
	return v.do(v.stages.out, v.chunks-1)
}

func (v *pipeline) betweenHosts() error {
	if v.step != nil {
		return v.step(v)
	}
	return v.do(v.stages.between, v.current)
}

// Wait implements coll.Peers. The first Wait for a chunk does all work inside the host, since the
// other members wait for it, and the algorithm might not call Wait again.
func (v *pipeline) Wait() error {
	err := v.overlap()
	if waited := v.Subset.Wait(); err == nil {
		err = waited
	}
	return err
}

// overlap does, once, the work inside the host for which there is time during the current step.
func (v *pipeline) overlap() error {
	if v.overlapped {
		return nil
	}
	v.overlapped = true
	if next := v.current + 1; next < v.chunks {
		if err := v.do(v.stages.in, next); err != nil {
			return err
		}
	}
	if done := v.current - v.late - 1; done >= 0 {
		return v.do(v.stages.out, done)
	}
	return nil
}

func (v *pipeline) do(do stage, number int) error {
	if do == nil {
		return nil
	}
	return do(v, v.part(number))
}

func (v *pipeline) part(number int) part {
	lo, hi := number*v.chunk, min((number+1)*v.chunk, v.send.Len())
	p := part{number: number, lo: lo, send: v.send.Slice(lo, hi), recv: v.recv}
	if v.recv.Len() > 0 { // a rank that only sends has none
		p.recv = v.recv.Slice(lo, hi)
	}
	return p
}

// The steps of chains.

func (v *pipeline) bcastStep() error {
	return coll.BcastStep(v, v.home, v.current, v.chunks, v.result)
}

func (v *pipeline) reduceStep() error {
	return coll.ReduceStep(v, v.home, v.current, v.chunks, v.result, v.result, v.op.Base())
}

func (v *pipeline) result(number int) mem.Buffer { return v.part(number).recv }

// The stages.

func (v *pipeline) combine(p part) error {
	return v.c.inside(v.c.fresh().Reduce(v.leader, p.send, p.recv, v.op.Base()))
}

func (v *pipeline) leadersBcast(p part) error {
	return v.c.between(v, new(call.Call).Bcast(v.home, p.recv))
}

func (v *pipeline) leadersReduce(p part) error {
	return v.c.between(v, new(call.Call).Reduce(v.home, p.recv, p.recv, v.op.Base()))
}

func (v *pipeline) leadersAllreduce(p part) error {
	if err := v.c.between(v, new(call.Call).Allreduce(p.recv, p.recv, v.op.Base())); err != nil {
		return err
	}
	return v.op.Finish(p.recv, v.c.all.Size())
}

func (v *pipeline) handOut(p part) error {
	return v.c.inside(v.c.fresh().Bcast(v.leader, p.recv))
}

func (v *pipeline) combineShares(p part) error {
	mine, counts := v.c.share(p.recv)
	return v.c.inside(v.c.fresh().ReduceScatter(p.send, mine, counts, v.op.Base()))
}

func (v *pipeline) railAllreduce(p part) error {
	mine, _ := v.c.share(p.recv)
	if err := v.c.railed(v, new(call.Call).Allreduce(mine, mine, v.op.Base())); err != nil {
		return err
	}
	return v.op.Finish(mine, v.c.all.Size())
}

func (v *pipeline) gatherShares(p part) error {
	mine, counts := v.c.share(p.recv)
	return v.c.inside(v.c.fresh().Allgatherv(mine, p.recv, counts, nil))
}

// release lets the members of the root's host read a chunk only when it is sent to the other hosts,
// while it is in the caches (2x2, bcast of 16 MiB: 5.5 ms; 8.5 if they read all at once).
func (v *pipeline) release(p part) error {
	if v.exchanges && v.c.me.host == v.home {
		v.window.Made(p.number)
	}
	return nil
}

func (v *pipeline) fold(p part) error {
	if !v.exchanges {
		return nil
	}
	return v.window.Fold(p.recv, p.send, p.lo, v.op.Base())
}

func (v *pipeline) fetch(p part) error {
	if v.exchanges {
		return nil
	}
	return v.window.Fetch(v.leader, p.number, p.recv, p.lo)
}

func (v *pipeline) foldShare(p part) error {
	operand, _ := v.c.share(p.send)
	mine, counts := v.c.share(p.recv)
	at := p.lo
	for _, n := range counts[:v.c.me.member] {
		at += n
	}
	return v.window.Fold(mine, operand, at, v.op.Base())
}

func (v *pipeline) fetchShares(p part) error {
	_, counts := v.c.share(p.recv)
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
