package shm

import (
	"gompi/internal/world"
	"gompi/transport"
)

// Detach implements transport.Detacher. A ring has two users, its writer and its reader. So this
// rank is the last user of those between it and the dead one. Those between two dead ranks have no
// user left to free them: a rank that gives up the second of the two sees that the first is dead,
// and does. Rings of a living rank that has not learned of the death are left to that rank.
//
// A page that two rings share stays.
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

// releaseRing frees the ring from one rank to another, of which no user is left.
func (t *Transport) releaseRing(to, from world.LocalRank) {
	_ = t.Release(t.ringAt(to, from), stride(len(t.Ranks))) // memory that stays is bounded by the area
}
