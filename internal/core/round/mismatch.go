package round

import (
	"errors"

	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/peers"
	"gompi/internal/core/shmsync"
	"gompi/transport"
)

// pastCalls is the number of finished rounds that are kept, to compare late frames with.
const pastCalls = 64

// errLeft is the error of an operation with a member that has left.
var errLeft = liveness.ErrLeft

// hasLeft returns the reason why the departure of a member breaks f. died is the end of the
// member's process, if the launcher has reported it.
func hasLeft(p *peers.Peer, died error, f call.Fingerprint) string {
	cause := "has left, but a collective waits for it: " + f.String()
	if errors.Is(p.Lost, transport.ErrRefused) {
		cause += "; " + p.Lost.Error()
	}
	if died != nil {
		cause += "; it " + died.Error()
	}
	return cause
}

// digested returns the digest of the calls up to the running or last one, as frames carry it.
func (rd *Round) digested() int32 { return int32(rd.digest >> 32) }

// agreed reports whether the calls up to the running call have the digest that a frame from l
// carries. If not, the frame must be ignored: otherwise this rank's next frames would state that it
// agrees. The sender gets this rank's calls, once, to find the difference.
func (rd *Round) agreed(l *peerQueue, digest int32) bool {
	if digest == rd.digested() {
		return true
	}
	switch {
	case rd.ch.Usable(l.p) != nil: // the peer will not answer
		rd.differBefore(l.src)
	case !l.differs:
		l.differs = true
		rd.recall(l.src)
	}
	return false
}

// recall sends a member the calls of this rank, from the oldest remembered call to the running
// call: the member has made a different call in any of these rounds.
func (rd *Round) recall(rank int) {
	l := rd.queue(rank)
	if !l.p.Reachable() {
		return
	}
	for seq := rd.seq - min(rd.seq, pastCalls) + 1; seq < rd.seq; seq++ {
		past := &rd.past[seq%pastCalls]
		l.p.SendHeader(transport.Header{Kind: transport.Call, Comm: rd.ch.ID, Seq: seq, A: past.A, B: past.B})
	}
	rd.sendFrame(l, transport.Call, aRecall)
}

// checkFrame compares the call of a frame with this rank's call. The result is false if they
// differ, and for a frame of a finished round.
func (rd *Round) checkFrame(m *message.Kept) bool {
	switch {
	case m.Seq > rd.seq:
		rd.remember(m)
		return true
	case m.Seq == rd.seq && rd.running:
		return rd.check(m.Src, m.Seq, callOf(m))
	case rd.seq-m.Seq < pastCalls:
		if rd.check(m.Src, m.Seq, callOf(m)) && m.Kind == transport.Coll {
			rd.disagree(m, call.Block{}, block(m))
		}
	}
	return false
}

// remember keeps the call of a round that has not begun here, once per rank. A rank that only
// sends, such as the root of several Bcasts, may be many rounds ahead.
func (rd *Round) remember(m *message.Kept) {
	l := rd.queue(m.Src)
	if m.Seq <= l.newest {
		return
	}
	l.newest = m.Seq
	if l.early.Len() == 0 {
		rd.early = append(rd.early, l)
	}
	l.early.Push(earlyCall{m.Seq, callOf(m)})
}

// compareEarly compares the call with the calls of this round that other members made first.
func (rd *Round) compareEarly() {
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
}

// callAt returns the call of the running round, or of a past round.
func (rd *Round) callAt(seq uint64) shmsync.EncodedCall {
	if seq == rd.seq && rd.running {
		return rd.call
	}
	return rd.past[seq%pastCalls]
}

// check breaks the Channel if another rank's call differs from this rank's.
func (rd *Round) check(src int, seq uint64, theirs shmsync.EncodedCall) bool {
	mine := rd.callAt(seq)
	if mine == theirs {
		return true
	}
	rd.mismatch(&liveness.MismatchError{
		Seq: seq, Rank: rd.ch.Rank(), Peer: src, Call: call.OfWords(mine.A, mine.B),
		PeerCall: call.OfWords(theirs.A, theirs.B),
	})
	return false
}

// disagree breaks the Channel because of m, of the same call but with another block than expected.
func (rd *Round) disagree(m *message.Kept, mine, theirs call.Block) {
	rd.mismatch(rd.differOn(m.Seq, m.Src, call.OfWords(m.A, m.B), mine, theirs))
}

// mismatch breaks the Channel because of m.
func (rd *Round) mismatch(m *liveness.MismatchError) { rd.ch.BreakUp(rd.reason(m)) }

func (rd *Round) reason(m *liveness.MismatchError) liveness.Reason {
	return liveness.Reason{Rank: rd.ch.World(rd.ch.Rank()), Mismatch: m}
}

// differOn returns the error where two ranks made the same call f.
func (rd *Round) differOn(seq uint64, src int, f call.Fingerprint, mine, theirs call.Block) *liveness.MismatchError {
	return &liveness.MismatchError{Seq: seq, Rank: rd.ch.Rank(), Peer: src, Call: f, PeerCall: f, Block: mine,
		PeerBlock: theirs}
}

// differBefore breaks the Channel because src made a different call before the running or last
// call. A better reason may come from a rank that knows the call: src may have left because of that
// rank's revocation, which the launcher forwards.
func (rd *Round) differBefore(src int) {
	f := rd.callAt(rd.seq)
	why := rd.reason(rd.differOn(rd.seq, src, call.OfWords(f.A, f.B), call.Block{}, call.Block{}))
	rd.ch.BreakSoon(func() bool { return false }, func() liveness.Reason { return why })
}

// DisagreeOn breaks the Channel: src sends another block than this rank expects, as their words
// state (see call.Transfer.Lengths).
func (rd *Round) DisagreeOn(src, mine, theirs int) error {
	f := rd.fingerprint()
	return rd.breakWith(rd.reason(rd.differOn(rd.seq, src, f, f.Block(mine), f.Block(theirs))))
}

// breakWith breaks the Channel, and returns the reason.
func (rd *Round) breakWith(why liveness.Reason) error {
	rd.progress.Lock()
	defer rd.progress.Exit()
	rd.ch.BreakUp(why)
	return rd.ch.Broken()
}
