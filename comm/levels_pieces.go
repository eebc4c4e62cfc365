package comm

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
)

// pieceBytes is how much of a vector goes between hosts at a time, of each carrier's
// share or in all: while it does, the next piece is combined inside each host, and the
// one before handed out (2x2, allreduce of 8 MiB at 1 Gbit/s, where the wire alone takes
// 67 ms: whole 106 ms, in pieces of 256 and 512 KiB 70, of 1 MiB 77; without a network:
// whole 9.0 ms, in pieces of 64 KiB, 256 KiB and 1 MiB 8.4, 6.2 and 5.4).
const pieceBytes = 512 << 10

// openFrom is the bytes from which on vectors from Alloc are open in their hosts (2x2,
// copied and open: allreduce of 64 KiB 52 and 52 us, of 256 KiB 160 and 110, of 1 MiB
// 606 and 414, of 16 MiB 14.5 and 9.6 ms; bcast of 64 KiB 27 and 33 us, of 1 MiB 237 and
// 206, of 64 MiB 23.7 and 21.0 ms; reduce of 1 MiB 317 and 258 us).
const openFrom = 256 << 10

// A vector is one that a collective combines or copies.
type vector struct {
	send, recv Buffer // what a host has combined is in recv, too
	op         call.Op
	home       int // the root's host
	speaker    int // for this one
	form       *form
	in, out    act  // the form's, or those for open vectors
	open       bool // the members of this host see each other's
	piece      int  // elements of one
	pieces     int
	over       int // the piece that is under way between hosts
	lo         int // the first element of the piece of an act
}

// An act does something with a piece of a vector.
type act func(l *levels, send, recv Buffer) error

// A form is what becomes of each piece of a vector: in each host, then between hosts,
// done by those who go there, then in each host again. It may need nothing done.
type form struct {
	shared        bool // carriers go, each with its share, and not who speaks
	in, over, out act
	openIn        act // in and out where vectors are open
	openOut       act
}

var (
	bcast           = form{over: (*levels).speakBcast, out: (*levels).tell, openIn: (*levels).show, openOut: (*levels).fetch}
	reduce          = form{in: (*levels).combine, over: (*levels).speakReduce, openIn: (*levels).fold}
	allreduceSpoken = form{in: (*levels).combine, over: (*levels).speakAllreduce, out: (*levels).tell,
		openIn: (*levels).fold, openOut: (*levels).fetch}
	allreduceShared = form{shared: true, in: (*levels).combineShares, over: (*levels).carryAllreduce, out: (*levels).gatherShares,
		openIn: (*levels).foldShare, openOut: (*levels).fetchShares}
)

// take makes a vector the one to be done.
func (l *levels) take(root int, send, recv Buffer, op call.Op) {
	l.now = vector{send: send, recv: recv, op: op, home: l.seats[root].host, speaker: l.speak(root)}
}

// inPieces does with the vector what f says.
func (l *levels) inPieces(f *form) error {
	v := &l.now
	goes, by := l.me.member == v.speaker, l.spoken
	v.form, v.piece = f, pieceBytes/v.send.Type().Size()
	if f.shared {
		goes, by = l.carries(), l.carried
		v.piece *= l.carriers
	}
	v.pieces = max((v.send.Len()+v.piece-1)/v.piece, 1)
	if err := l.open(f, goes); err != nil {
		return err
	}
	if err := l.pass(v.in, 0); err != nil {
		return err
	}
	for v.over = range v.pieces {
		if err := l.goOver(goes, by); err != nil {
			return err
		}
	}
	if err := l.pass(v.out, v.pieces-1); err != nil || !v.open {
		return err
	}
	return l.room.Shut()
}

// open opens the vector to the other members of this host, if it pays and all see what
// they need of it: the operands that others combine, and what those bring who go.
func (l *levels) open(f *form, goes bool) (err error) {
	v := &l.now
	v.in, v.out = f.in, f.out
	if l.lent == 0 || l.room == nil || v.send.Size() < openFrom || !v.op.Commutes() {
		return nil
	}
	var send, recv Buffer
	if f.in != nil && (f.shared || !goes) {
		send = v.send
	}
	if f.out != nil && goes {
		recv = v.recv
	}
	if v.open, err = l.room.Open(send, recv, v.send.Size(), v.pieces); !v.open {
		return err
	}
	v.in, v.out = f.openIn, f.openOut
	return nil
}

// goOver has the next piece go between hosts, and does meanwhile what is to be done in
// this one.
func (l *levels) goOver(goes bool, by *coll.Subset) error {
	if goes {
		by.Meantime = l.meantime
		if err := l.pass(l.now.form.over, l.now.over); err != nil {
			return err
		}
		if l.now.open {
			l.room.Made(l.now.over)
		}
		if by.Meantime == nil {
			return nil
		}
		by.Meantime = nil // there was nothing to wait for
	}
	return l.passNeighbours()
}

// passNeighbours does in this host what is to be done with the pieces next to the one
// that is under way.
func (l *levels) passNeighbours() error {
	v := &l.now
	if next := v.over + 1; next < v.pieces {
		if err := l.pass(v.in, next); err != nil {
			return err
		}
	}
	if v.over == 0 {
		return nil
	}
	return l.pass(v.out, v.over-1)
}

func (l *levels) pass(do act, piece int) error {
	if do == nil {
		return nil
	}
	v := &l.now
	lo, hi := piece*v.piece, min((piece+1)*v.piece, v.send.Len())
	v.lo = lo
	recv := v.recv
	if recv.Len() > 0 { // who only gives its operand has none
		recv = recv.Slice(lo, hi)
	}
	return do(l, v.send.Slice(lo, hi), recv)
}

// The acts of forms.

func (l *levels) combine(send, recv Buffer) error {
	return l.inner.Reduce(l.now.speaker, send, recv, l.now.op.Base())
}

func (l *levels) speakBcast(_, b Buffer) error { return l.speakers.Bcast(l.now.home, b) }

func (l *levels) speakReduce(_, b Buffer) error {
	return l.speakers.Reduce(l.now.home, b, b, l.now.op.Base())
}

func (l *levels) speakAllreduce(_, b Buffer) error { return l.allreduce(&l.speakers, b) }

func (l *levels) tell(_, b Buffer) error { return l.inner.Bcast(l.now.speaker, b) }

func (l *levels) combineShares(send, recv Buffer) error {
	return l.inner.ReduceScatter(send, l.share(recv), l.shares, l.now.op.Base())
}

func (l *levels) carryAllreduce(_, b Buffer) error { return l.allreduce(&l.lane, l.share(b)) }

func (l *levels) gatherShares(_, b Buffer) error {
	return l.inner.Allgatherv(l.share(b), b, l.shares, nil)
}

// show has the root's host read a piece when it goes to the others, and not before: then
// it is in the caches (2x2, bcast of 16 MiB in 5.5 ms, of which that host reads all at
// once in 8.5).
func (l *levels) show(_, _ Buffer) error {
	if l.me.host == l.now.home && l.me.member == l.now.speaker {
		l.room.Made(l.now.lo / l.now.piece)
	}
	return nil
}

func (l *levels) fold(send, recv Buffer) error {
	if l.me.member != l.now.speaker {
		return nil
	}
	return l.room.Fold(recv, send, l.now.lo, l.now.op.Base())
}

func (l *levels) fetch(_, b Buffer) error {
	if l.me.member == l.now.speaker {
		return nil
	}
	return l.room.Fetch(l.now.speaker, l.now.lo/l.now.piece, b, l.now.lo)
}

func (l *levels) foldShare(send, recv Buffer) error {
	mine, at := l.share(recv), 0
	for _, n := range l.shares[:l.me.member] {
		at += n
	}
	return l.room.Fold(mine, l.share(send), l.now.lo+at, l.now.op.Base())
}

func (l *levels) fetchShares(_, b Buffer) error {
	l.share(b)
	at := 0
	for i, n := range l.shares {
		if i != l.me.member && n > 0 {
			if err := l.room.Fetch(i, l.now.lo/l.now.piece, b.Slice(at, at+n), l.now.lo+at); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

func (l *levels) allreduce(among *messages, b Buffer) error {
	if err := among.Allreduce(b, b, l.now.op.Base()); err != nil {
		return err
	}
	return l.now.op.Finish(b, l.p.Size())
}
