package round

import (
	"gompi/internal/core/lease"
	"gompi/internal/core/shmsync"
	"gompi/internal/world"
)

// This file lends C a Round all of whose collectives go through shared memory (package lease).
// Calls come from a single goroutine at a time, like all calls that begin and end a round.

// mostLooks is the number of C's looks at another member's flag, about a microsecond, before it
// calls Go, which makes progress of other operations and sleeps.
const mostLooks = 1024

// MayLend reports whether C may do short collectives: there are few members, and none has to sleep
// for another to run, except in tests.
func (rd *Round) MayLend(l *lease.Lease) bool {
	return rd.byFlags && rd.ch.Size() <= lease.Members && !rd.team.Gate().Steps &&
		(rd.progress.Spins() || l.Record().Mix != 0)
}

// Lend lends C the communicator with number slot. locals are the members' local ranks.
func (rd *Round) Lend(l *lease.Lease, slot int, locals func() []world.LocalRank, most lease.Most) {
	t := rd.loan.Load()
	if t == nil || t.Slot() != slot {
		ring, next := rd.ch.Flight().Lend()
		t = l.Team(slot, &lease.Loan{
			Me: rd.ch.Rank(), Looks: mostLooks, Comm: rd.ch.ID, Recorder: ring, Next: next,
			Blocks: rd.team.Blocks(), Uses: rd.team.Uses(), Locals: locals(), Rings: rd.team.Rings(),
		})
		rd.loan.Store(t)
	}
	t.Lend(lease.Cursors{
		Cursors: rd.team.Cursors(), Digest: rd.digest, Seq: rd.seq, Call: [2]uint64{rd.call.A, rd.call.B},
	}, most)
	if rd.ch.BrokenWord().Load() { // perhaps since Fail looked for t
		t.Break()
	}
}

// Recall takes the loan back.
func (rd *Round) Recall() {
	if rd.loan.Load() != nil {
		rd.recallLoan()
	}
}

func (rd *Round) recallLoan() {
	c, ok := rd.loan.Load().TakeBack()
	if !ok {
		return
	}
	rd.seq, rd.digest, rd.call = c.Seq, c.Digest, shmsync.EncodedCall{A: c.Call[0], B: c.Call[1]}
	rd.team.Advance(c.Cursors, &rd.call, rd.digest)
}

// Unlend ends the use of the slot, which passes to another communicator.
func (rd *Round) Unlend() {
	rd.Recall()
	rd.loan.Store(nil)
}
