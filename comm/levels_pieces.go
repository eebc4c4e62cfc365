package comm

import "gompi/comm/internal/coll"

// pieceBytes is how much of a vector goes between hosts at a time, of each carrier's
// share or in all: while it does, the next piece is combined inside each host, and the
// one before handed out (2x2, allreduce of 8 MiB at 1 Gbit/s, where the wire alone takes
// 67 ms: whole 106 ms, in pieces of 256 and 512 KiB 70, of 1 MiB 77; without a network:
// whole 9.0 ms, in pieces of 64 KiB, 256 KiB and 1 MiB 8.4, 6.2 and 5.4).
const pieceBytes = 512 << 10

// A vector is one that a collective combines or copies.
type vector struct {
	send, recv Buffer // what a host has combined is in recv, too
	op         coll.Op
	home       int // the root's host
	speaker    int // for this one
	form       *form
	piece      int // elements of one
	pieces     int
	over       int // the piece that is under way between hosts
}

// A form is what becomes of each piece of a vector: in each host, then between hosts,
// done by those who go there, then in each host again. It may need nothing done.
type form struct {
	shared        bool // carriers go, each with its share, and not who speaks
	in, over, out func(l *levels, send, recv Buffer) error
}

var (
	bcast           = form{false, nil, (*levels).speakBcast, (*levels).tell}
	reduce          = form{false, (*levels).combine, (*levels).speakReduce, nil}
	allreduceSpoken = form{false, (*levels).combine, (*levels).speakAllreduce, (*levels).tell}
	allreduceShared = form{true, (*levels).combineShares, (*levels).carryAllreduce, (*levels).gatherShares}
)

// take makes a vector the one to be done.
func (l *levels) take(root int, send, recv Buffer, op coll.Op) {
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
	if err := l.pass(f.in, 0); err != nil {
		return err
	}
	for v.over = range v.pieces {
		if err := l.goOver(goes, by); err != nil {
			return err
		}
	}
	return l.pass(f.out, v.pieces-1)
}

// goOver has the next piece go between hosts, and does meanwhile what is to be done in
// this one.
func (l *levels) goOver(goes bool, by *coll.Subset) error {
	if goes {
		by.Meantime = l.meantime
		if err := l.pass(l.now.form.over, l.now.over); err != nil || by.Meantime == nil {
			return err
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
		if err := l.pass(v.form.in, next); err != nil {
			return err
		}
	}
	if v.over == 0 {
		return nil
	}
	return l.pass(v.form.out, v.over-1)
}

func (l *levels) pass(part func(l *levels, send, recv Buffer) error, piece int) error {
	if part == nil {
		return nil
	}
	v := &l.now
	lo, hi := piece*v.piece, min((piece+1)*v.piece, v.send.Len())
	recv := v.recv
	if recv.Len() > 0 { // who only gives its operand has none
		recv = recv.Slice(lo, hi)
	}
	return part(l, v.send.Slice(lo, hi), recv)
}

// The parts of forms.

func (l *levels) combine(send, recv Buffer) error {
	return l.inner.Reduce(l.now.speaker, send, recv, sum(l.now.op))
}

func (l *levels) speakBcast(_, b Buffer) error { return l.speakers.Bcast(l.now.home, b) }

func (l *levels) speakReduce(_, b Buffer) error {
	return l.speakers.Reduce(l.now.home, b, b, sum(l.now.op))
}

func (l *levels) speakAllreduce(_, b Buffer) error { return l.allreduce(&l.speakers, b) }

func (l *levels) tell(_, b Buffer) error { return l.inner.Bcast(l.now.speaker, b) }

func (l *levels) combineShares(send, recv Buffer) error {
	return l.inner.ReduceScatter(send, l.share(recv), l.shares, sum(l.now.op))
}

func (l *levels) carryAllreduce(_, b Buffer) error { return l.allreduce(&l.lane, l.share(b)) }

func (l *levels) gatherShares(_, b Buffer) error {
	return l.inner.Allgatherv(l.share(b), b, l.shares, nil)
}

func (l *levels) allreduce(among *messages, b Buffer) error {
	if err := among.Allreduce(b, b, sum(l.now.op)); err != nil {
		return err
	}
	return l.now.op.Finish(b, l.p.Size())
}
