package shm

import (
	"gompi/internal/world"
	"gompi/transport"
)

// Detach implements transport.Detacher. A ring has two users, its writer and its reader. So this
// rank is the last user of the rings between itself and the dead rank. Rings between two dead ranks
// are freed by each rank that detaches the second of the two and finds the first dead. Rings of a
// living rank that has not learned of the death are left to that rank.
//
// A page shared by two rings stays.
func (t *Transport) Detach(rank world.Rank) {
	dead := t.local(rank)
	if t.closed || dead < 0 || dead == t.Local || t.State(dead) == Alive {
		return
	}
	t.lose(t.peer(dead), transport.ErrCut)
	if t.Release == nil {
		return
	}
	for i := range world.LocalRank(len(t.Ranks)) {
		if i == t.Local || i != dead && t.State(i) != Alive {
			t.releaseRing(dead, i)
			t.releaseRing(i, dead)
		}
	}
}

// releaseRing frees the ring from one rank to another, which has no user left.
func (t *Transport) releaseRing(to, from world.LocalRank) {
	_ = t.Release(t.ringAt(to, from), stride(len(t.Ranks))) // memory that stays is bounded by the area
}
