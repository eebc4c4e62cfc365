package round

import (
	"context"

	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/core/record"
	"gompi/internal/mem"
	"gompi/transport"
)

// Messages of a round need no tags: between two ranks they arrive in the order sent, and each
// carries the number of its round. Short messages are sent at once, within the credit at the peer.
// Both sides of a long message know that it is long: the receiver sends Ready when its buffer is
// posted, and only then the sender sends. So payload is read into place, and a rank that runs ahead
// fills no other rank's memory. Messages may be in the memory of devices, unless reduced: a short
// one is copied at once to pinned host memory; a long one is offered first (Offer) and then goes in
// chunks, like a point-to-point message.

// messages are the messages of a Round.
type messages struct {
	wait    record.Wait // for all operations that were started
	left    int         // operations not complete
	missing bool        // a member that is needed cannot be reached, which is about to break the Channel
	queues  map[int]*peerQueue
	early   []*peerQueue // queues with early calls
	used    []*message.Request
	combs   []*payload.Combine // of used Requests that reduce, kept for reuse
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

// Scratch implements coll.Peers.
func (rd *Round) Scratch(like mem.Buffer, n int) mem.Buffer {
	if n == 0 {
		return like.Slice(0, 0)
	}
	rd.progress.Lock()
	defer rd.progress.Unlock()
	b := rd.ch.Engine.Mover.Scratch.Get(n * like.ElemSize())
	rd.lent = append(rd.lent, b)
	return mem.HostLike(like, n, b)
}

// Lent returns the number of Scratch buffers in use.
func (rd *Round) Lent() int { return len(rd.lent) }

// TakeBack takes back the Scratch buffers from index first on. They must not be in use any more.
func (rd *Round) TakeBack(first int) {
	rd.progress.Lock()
	defer rd.progress.Unlock()
	rd.takeBack(first)
}

func (rd *Round) takeBack(first int) {
	for _, b := range rd.lent[first:] {
		rd.ch.Engine.Mover.Scratch.Put(b)
	}
	rd.lent = rd.lent[:first]
}

// Isend implements coll.Peers.
func (rd *Round) Isend(to int, b mem.Buffer) {
	if !b.IsHost() && b.Size() <= message.CollectiveEager {
		b = rd.load(b)
	}
	rd.progress.Lock()
	defer rd.progress.Unlock()
	l, r := rd.add(to, b, false)
	if r == nil {
		return
	}
	if rd.wait.Hint < 0 {
		rd.wait.Hint = l.p.Rank
	}
	l.out.Push(r)
	l.pump()
}

// load returns a copy in host memory of b, a short buffer of a device.
func (rd *Round) load(b mem.Buffer) mem.Buffer {
	if b.Size() == 0 { // there is nothing to wait for a device for
		return mem.HostLike(b, 0, nil)
	}
	lent, err := rd.ch.Engine.Mover.Lender.Lend(b.Space(), b.Size())
	if err != nil {
		rd.fail(err)
		return b
	}
	rd.copies = append(rd.copies, loan{b.Space(), lent})
	here := mem.HostLike(b, b.Len(), lent.HostSlice())
	if err := mem.Copy(here, b); err != nil {
		rd.fail(err)
	}
	return here
}

func (rd *Round) fail(err error) {
	rd.progress.Lock()
	defer rd.progress.Exit()
	rd.abort("failed in", err)
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
	*c = payload.Combine{Own: own, Op: op.Kind.Base(), Left: left}
	rd.receive(from, dst, c)
}

func (rd *Round) combine() *payload.Combine {
	if rd.combsN == len(rd.combs) {
		rd.combs = append(rd.combs, new(payload.Combine))
	}
	rd.combsN++
	return rd.combs[rd.combsN-1]
}

func (rd *Round) receive(from int, b mem.Buffer, c *payload.Combine) {
	rd.progress.Lock()
	defer rd.progress.Unlock()
	l, r := rd.add(from, b, true)
	if r == nil {
		return
	}
	r.Stage = payload.Posted
	r.Combine(c)
	rd.wait.Hint = l.p.Rank
	l.posted.Push(r)
	switch {
	case l.holds(rd.seq):
		if rd.agreed(l, int32(l.unexpected.Front().Tag)) {
			l.posted.Pop()
			rd.pair(l, r, l.unexpected.Pop())
		}
	case r.Size <= message.CollectiveEager:
	case b.IsHost():
		rd.sendFrame(l, transport.Ready, 0)
	default:
		for _, s := range rd.used {
			r.Follow(&s.Move)
		}
		rd.sendFrame(l, transport.Ready, wantRTS)
	}
}

// add makes a Request for b with a member, unless the round has failed. Messages that a member
// sent before leaving can still be received.
func (rd *Round) add(rank int, b mem.Buffer, receive bool) (*peerQueue, *message.Request) {
	if rd.err != nil || rd.ch.Broken() != nil || rd.missing {
		return nil, nil
	}
	rd.wait.Unready() // earlier operations may be done already
	rd.wait.Background = rd.quiet
	rd.left++
	l := rd.queue(rank)
	if err := rd.ch.Usable(l.p); err != nil && !(receive && l.holds(rd.seq)) {
		rd.missing = true // until the Channel breaks
		rd.Missing(l.p, err)
		return nil, nil
	}
	r := rd.ch.Request(l.p, b)
	rd.used = append(rd.used, r)
	return l, r
}

// Wait implements coll.Peers. If the round's context ends, the communicator breaks: the others
// count on this rank. Then Wait still waits, without a bound, for devices' copies: see Close.
func (rd *Round) Wait() error {
	err := rd.waitForAll()
	if len(rd.folds) == 0 {
		return err
	}
	if err != nil {
		rd.dropFolds()
		return err
	}
	return rd.fold()
}

func (rd *Round) waitForAll() error {
	rd.progress.Lock()
	defer rd.ch.Engine.ExitPolling()
	if rd.left > 0 {
		if err := rd.progress.Await(rd.ctx, &rd.wait.Waiter); err != nil {
			rd.abort("gave up in", err)
		}
	}
	rd.takeBackRequests()
	if rd.err == nil {
		rd.err = rd.ch.Broken()
	}
	return rd.err
}

// takeBackRequests waits for device copies on a broken Channel, and takes back finished Requests.
func (rd *Round) takeBackRequests() {
	if rd.left > 0 {
		rd.progress.Await(context.Background(), &rd.wait.Waiter) // never fails: this context never ends
	}
	for _, r := range rd.used {
		rd.ch.Engine.FreeRequest(r)
	}
	for _, l := range rd.copies {
		rd.ch.Engine.Mover.Lender.Return(l.to, l.b)
	}
	rd.used, rd.copies, rd.combsN = rd.used[:0], rd.copies[:0], 0
	rd.wait.Reset()
}

// Over implements message.Collectives.
func (rd *Round) Over(err error) {
	if rd.err == nil {
		rd.err = err
	}
	if rd.left--; rd.left == 0 {
		rd.progress.MakeReady(&rd.wait.Waiter)
	}
}

// failMessages ends everything that has not left or arrived.
func (rd *Round) failMessages(err error) {
	for _, l := range rd.queues {
		for r := l.posted.Pop(); r != nil; r = l.posted.Pop() {
			rd.ch.Engine.Finish(r, err)
		}
		for r := l.out.Pop(); r != nil; r = l.out.Pop() {
			rd.ch.Engine.Finish(r, err)
		}
		for m := l.unexpected.Pop(); m != nil; m = l.unexpected.Pop() {
			rd.ch.Engine.Drop(m)
		}
	}
	if rd.running && rd.err == nil {
		rd.err = err
	}
	if rd.missing {
		rd.missing = false
		rd.Over(err)
	}
}

// dismissMessages ends the operations that wait for a member that has left.
func (rd *Round) dismissMessages(p *peers.Peer) {
	for _, l := range rd.queues {
		if l.p == p && rd.running && l.differs {
			rd.differBefore(l.src)
			return
		}
	}
	for _, r := range rd.used {
		if r.Waits(p) {
			rd.Missing(p, errLeft)
			return
		}
	}
}
