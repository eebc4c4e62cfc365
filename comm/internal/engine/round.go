package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/liveness"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/transport"
)

// A Round is the collective that runs on a Channel, one at a time: its number, its call, and
// its messages. It implements coll.Peers.
//
// Messages of a round need no tags: between two ranks they arrive in the order sent, and each
// carries the number of its round. Short messages are sent at once, within the credit at the
// peer. Both sides of a long message know that it is long. Its receiver sends Ready when it has
// a buffer for it, and only then the sender sends. So payload is read straight into place, and a
// rank that runs ahead fills no other rank's memory.
//
// Messages may be in the memory of devices, except those that are reduced. A short one is copied
// at once to pinned host memory. A long one is offered first (Offer) and then goes in chunks, as
// a point-to-point message does.
type Round struct {
	ch      *Channel
	seq     uint64
	call    call.Fingerprint
	ticket  seg.Ticket // of the call in the flight recorder
	running bool
	left    int  // operations not complete
	missing bool // a member that is needed cannot be reached, which is about to break the Channel
	err     error
	waiter  *waiter
	quiet   bool
	ctx     context.Context
	queues  map[int]*peerQueue
	early   []*peerQueue                // those with early calls
	past    [pastCalls]call.Fingerprint // by seq
	digest  uint64                      // of all calls up to the running or last one
	parting parting
	used    []*Request
	combs   []*combine // of used requests that reduce, kept for reuse
	combsN  int
	folds   []fold // since the last Wait
	lent    [][]byte
	copies  []loan // of short messages from devices, until they have left
}

// A loan is memory that a Lender has lent for a Space.
type loan struct {
	to mem.Space
	b  mem.Buffer
}

var _ coll.Peers = (*Round)(nil)

// Begin starts the next round. It compares f, its call, with the calls of this round that have
// arrived from other members. ticket is its place in the flight recorder.
func (rd *Round) Begin(ctx context.Context, f call.Fingerprint, ticket seg.Ticket, quiet bool) error {
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Unlock()
	if rd.ch.err != nil {
		return rd.ch.err
	}
	rd.seq++
	rd.call, rd.running, rd.err, rd.ctx, rd.quiet, rd.ticket = f, true, nil, ctx, quiet, ticket
	rd.digestAlso(&rd.call)
	keep := rd.early[:0]
	for _, l := range rd.early {
		if c := l.early.Front(); c.seq == rd.seq {
			l.early.Pop()
			rd.check(l.src, c.seq, c.call)
		}
		if l.early.Len() > 0 {
			keep = append(keep, l)
		}
	}
	rd.early = keep
	return rd.ch.err
}

// End finishes the round. None of its operations is under way any more: its algorithm has waited
// for all of them, or the round has failed and they were withdrawn.
func (rd *Round) End() error {
	e := rd.ch.e
	e.progress.Lock()
	defer e.exitPolling()
	rd.past[rd.seq%pastCalls] = rd.call
	rd.settle()
	rd.running = false
	rd.takeBack(0)
	return rd.err
}

// Fail breaks the Channel because the algorithm has failed on this rank: others count
// on it.
func (rd *Round) Fail(err error) {
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	rd.abort("failed in", err)
}

func (rd *Round) abort(what string, err error) {
	if rd.err == nil {
		rd.err = err
	}
	rd.ch.breakUp(liveness.Reason{Rank: rd.ch.e.cfg.Rank, Cause: fmt.Sprintf("%s %v: %v", what, rd.call, err)})
}

// Seq returns the number of the running or last round.
func (rd *Round) Seq() uint64 { return rd.seq }

// Rank implements coll.Peers.
func (rd *Round) Rank() int { return rd.ch.rank }

// Size implements coll.Peers.
func (rd *Round) Size() int { return rd.ch.size }

// Scratch implements coll.Peers.
func (rd *Round) Scratch(like mem.Buffer, n int) mem.Buffer {
	if n == 0 {
		return like.Slice(0, 0)
	}
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Unlock()
	b := e.scratch.Get(n * like.Type().Size())
	rd.lent = append(rd.lent, b)
	return mem.HostBytes(like.Type(), n, b)
}

// Lent returns how many Scratch buffers are lent.
func (rd *Round) Lent() int { return len(rd.lent) }

// TakeBack takes back all Scratch buffers but the first so many. They must not be in use any
// more.
func (rd *Round) TakeBack(first int) {
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Unlock()
	rd.takeBack(first)
}

func (rd *Round) takeBack(first int) {
	for _, b := range rd.lent[first:] {
		rd.ch.e.scratch.Put(b)
	}
	rd.lent = rd.lent[:first]
}

// Isend implements coll.Peers.
func (rd *Round) Isend(to int, b mem.Buffer) {
	if !b.IsHost() && b.Size() <= roundEager {
		b = rd.load(b)
	}
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Unlock()
	l, r := rd.add(to, b, false)
	if r == nil {
		return
	}
	r.size = b.Size()
	if rd.waiter != nil && rd.waiter.Hint < 0 {
		rd.waiter.Hint = l.p.rank
	}
	r.stage = queued
	l.out.Push(r)
	l.pump()
}

// load returns a copy in host memory of b, which is a device's and short.
func (rd *Round) load(b mem.Buffer) mem.Buffer {
	if b.Size() == 0 { // there is nothing to wait for a device for
		return mem.HostBytes(b.Type(), 0, nil)
	}
	lent, err := rd.ch.e.cfg.Lender.Lend(b.Space(), b.Size())
	if err != nil {
		rd.Fail(err)
		return b
	}
	rd.copies = append(rd.copies, loan{b.Space(), lent})
	here := mem.HostBytes(b.Type(), b.Len(), lent.HostSlice())
	if err := mem.Copy(here, b); err != nil {
		rd.Fail(err)
	}
	return here
}

// Irecv implements coll.Peers.
func (rd *Round) Irecv(from int, b mem.Buffer) {
	rd.receive(from, b, nil)
}

// IrecvReduce implements coll.Peers.
func (rd *Round) IrecvReduce(from int, dst, own mem.Buffer, op call.Op, left bool) {
	if op.Kind == mem.Custom {
		rd.receiveToFold(from, fold{dst: dst, own: own, op: op, left: left})
		return
	}
	c := rd.combine()
	*c = combine{own: own, op: op.Kind.Base(), left: left}
	rd.receive(from, dst, c)
}

func (rd *Round) receive(from int, b mem.Buffer, c *combine) {
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Unlock()
	l, r := rd.add(from, b, true)
	if r == nil {
		return
	}
	r.stage, r.combine, r.size = posted, c, b.Size()
	rd.waiter.Hint = l.p.rank
	l.posted.Push(r)
	switch {
	case l.holds(rd.seq):
		if rd.agreed(l, int32(l.unexpected.Front().tag)) {
			l.posted.Pop()
			rd.pair(r, l.unexpected.Pop())
		}
	case r.size <= roundEager:
	case b.IsHost():
		rd.say(l, transport.Ready, 0)
	default:
		rd.follow(r)
		rd.say(l, transport.Ready, wantRTS)
	}
}

// follow makes r, if it receives into the buffer of a send to the same member, store each chunk
// only after the send has loaded it.
func (rd *Round) follow(r *Request) {
	for _, s := range rd.used {
		if s != r && s.peer == r.peer && s.stage != complete && mem.Same(s.buf, r.buf) {
			r.before, s.after = s, r
		}
	}
}

// add makes a request for b with a member, unless the round has failed. Messages that a member
// has sent before it left can still be received.
func (rd *Round) add(rank int, b mem.Buffer, receive bool) (*peerQueue, *Request) {
	if rd.err != nil || rd.ch.err != nil || rd.missing {
		return nil, nil
	}
	if rd.waiter == nil {
		rd.waiter = rd.ch.e.newWaiter()
		rd.waiter.round, rd.waiter.Background = rd, rd.quiet
	}
	rd.waiter.Unready() // what was started before may be done already
	l := rd.queue(rank)
	if err := rd.ch.usable(l.p); err != nil && !(receive && l.holds(rd.seq)) {
		rd.missing = true
		rd.left++ // until the Channel breaks
		rd.ch.miss(l.p, err, rd.call)
		return nil, nil
	}
	r := rd.ch.e.newRequest()
	r.begin(rd.ch, queued, b, l.p.rank, 0)
	r.round = rd
	rd.used = append(rd.used, r)
	rd.left++
	return l, r
}

// miss breaks the Channel because a member that a collective needs cannot be reached: other
// members may wait for messages that this rank will not send.
func (ch *Channel) miss(p *peer, err error, f call.Fingerprint) {
	if !errors.Is(err, liveness.ErrLeft) {
		ch.breakUp(liveness.Reason{Rank: p.rank, Cause: "cannot be reached: " + err.Error()})
		return
	}
	died := func() error { return ch.e.live.Died(p.rank) }
	ch.breakSoon(func() bool { return died() != nil }, func() liveness.Reason {
		cause := "has left, but a collective waits for it: " + f.String()
		if errors.Is(p.lost, transport.ErrRefused) {
			cause += "; " + p.lost.Error()
		}
		if how := died(); how != nil {
			cause += "; it " + how.Error()
		}
		return liveness.Reason{Rank: p.rank, Cause: cause}
	})
}

func (rd *Round) queue(rank int) *peerQueue {
	l := rd.queues[rank]
	if l == nil {
		if rd.queues == nil {
			rd.queues = map[int]*peerQueue{}
		}
		l = &peerQueue{rd: rd, src: rank, p: rd.ch.e.peer(rd.ch.World(rank))}
		rd.queues[rank] = l
	}
	return l
}

func (rd *Round) combine() *combine {
	if rd.combsN == len(rd.combs) {
		rd.combs = append(rd.combs, new(combine))
	}
	rd.combsN++
	return rd.combs[rd.combsN-1]
}

// Wait implements coll.Peers. If the round's context ends, the communicator
// breaks: the others count on this rank. Then it still waits for the copies that
// devices are making, without a bound: see Close.
func (rd *Round) Wait() error {
	err := rd.wait()
	if len(rd.folds) == 0 {
		return err
	}
	if err != nil {
		rd.dropFolds()
		return err
	}
	return rd.fold()
}

func (rd *Round) wait() error {
	e := rd.ch.e
	e.progress.Lock()
	defer e.exitPolling()
	if rd.left > 0 {
		if err := e.progress.Await(rd.ctx, &rd.waiter.Waiter); err != nil {
			rd.abort("gave up in", err)
		}
	}
	rd.settle()
	if rd.err == nil {
		rd.err = rd.ch.err
	}
	return rd.err
}

// settle waits for copies of devices that are under way on a broken Channel, and takes back the
// finished requests and the waiter.
func (rd *Round) settle() {
	e := rd.ch.e
	if rd.left > 0 {
		e.progress.Await(context.Background(), &rd.waiter.Waiter) // never fails: this context never ends
	}
	for _, r := range rd.used {
		e.freeRequest(r)
	}
	for _, l := range rd.copies {
		e.cfg.Lender.Return(l.to, l.b)
	}
	rd.used, rd.copies, rd.combsN = rd.used[:0], rd.copies[:0], 0
	if rd.waiter != nil {
		e.freeWaiter(rd.waiter)
		rd.waiter = nil
	}
}

// receiver returns the receive that message m is for. If there is none, it returns nil and, if
// kept is true, has kept m for a later receive. Else m contradicts this rank's call, which
// breaks the Channel.
func (rd *Round) receiver(m *message) (r *Request, kept bool) {
	if !rd.heard(m) {
		return nil, false
	}
	l := rd.queue(m.src)
	r = l.posted.Front()
	if m.seq != rd.seq || r == nil {
		if m.size > roundEager { // nobody said to be ready for it
			rd.disagree(m, call.Block{}, m.block())
			return nil, false
		}
		if l.unexpected.Push(m); rd.ch.e.keepPaid(m) {
			l.returnCredit(m.size)
		}
		return nil, true
	}
	if !rd.agreed(l, int32(m.tag)) {
		return nil, false
	}
	l.posted.Pop()
	if !rd.fits(r, m) {
		return nil, false
	}
	l.returnCredit(m.size)
	return r, false
}

// keep queues a message that came before the Channel was made.
func (rd *Round) keep(m *message) {
	if rd.heard(m) {
		rd.queue(m.src).unexpected.Push(m)
	} else {
		rd.ch.e.drop(m)
	}
}

// pair gives a kept message to r.
func (rd *Round) pair(r *Request, m *message) {
	switch {
	case !rd.fits(r, m):
		rd.ch.e.drop(m)
	case m.ready:
		rd.ch.consume(r, m)
	default:
		r.stage, m.taken = filling, r
	}
}

// fail ends everything that has not left or arrived.
func (rd *Round) fail(err error) {
	e := rd.ch.e
	for _, l := range rd.queues {
		for r := l.posted.Pop(); r != nil; r = l.posted.Pop() {
			e.finish(r, err)
		}
		for r := l.out.Pop(); r != nil; r = l.out.Pop() {
			e.finish(r, err)
		}
		for m := l.unexpected.Pop(); m != nil; m = l.unexpected.Pop() {
			e.drop(m)
		}
	}
	if rd.running && rd.err == nil {
		rd.err = err
	}
	if rd.missing {
		rd.missing = false
		rd.over()
	}
	e.rouse(rd.parting.waiter)
}

// over ends one of the operations that are not complete.
func (rd *Round) over() {
	if rd.left--; rd.left == 0 {
		rd.ch.e.rouse(rd.waiter)
	}
}

// dismiss ends what waits for a member that has left.
func (rd *Round) dismiss(p *peer) {
	if w := rd.parting.waiter; w != nil && w.Hint == p.rank {
		rd.ch.e.rouse(w)
	}
	if l := rd.queues[rd.ch.member(p.rank)]; rd.running && l != nil && l.differs {
		rd.differBefore(l.src)
		return
	}
	for _, r := range rd.used {
		if r.peer == p.rank && (r.stage == posted || r.stage == queued || r.stage == announced || r.stage == filling) {
			rd.ch.miss(p, liveness.ErrLeft, rd.call)
			return
		}
	}
}

// awaited yields the members for which a receive, a probe or the round waits, with true, and those
// for which a program probes in a loop. If one of these is from any source, it then yields all
// members, with false.
func (ch *Channel) awaited() iter.Seq2[int, bool] {
	return func(yield func(int, bool) bool) {
		anybody := false
		for n := range ch.q.Posted() {
			anybody = anybody || n.Source == Any
			if n.Source != Any && !yield(n.Source, true) {
				return
			}
		}
		for _, w := range ch.probes {
			anybody = anybody || w.Hint < 0
			if w.Hint >= 0 && !yield(ch.member(w.Hint), true) {
				return
			}
		}
		for src := range ch.sought {
			anybody = anybody || src == Any
			if src != Any && !yield(src, true) {
				return
			}
		}
		for i := range ch.e.slots.list {
			if r := ch.e.slots.list[i].r; r != nil && r.ch == ch && r.halfway() && !yield(ch.member(r.peer), true) {
				return
			}
		}
		for src, l := range ch.round.queues {
			if (l.posted.Front() != nil || l.out.Front() != nil) && !yield(src, true) {
				return
			}
		}
		if ch.round.parting.waiter != nil && !yield(ch.round.parting.src, true) {
			return
		}
		if ch.flagWait.waiter != nil && !yield(ch.flagWait.src, true) {
			return
		}
		for src := range ch.size {
			if anybody && !yield(src, false) {
				return
			}
		}
	}
}

// halfway reports whether r is a message that needs an answer of another rank.
func (r *Request) halfway() bool {
	return r.peer >= 0 && (r.stage == announced || r.stage == filling || r.stage == fetching)
}
