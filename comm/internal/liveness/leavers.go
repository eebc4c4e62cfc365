package liveness

import (
	"iter"
	"maps"
)

// Leavers are the members of a communicator that close it and remain in others, and those that have
// to be told of it. A rank that waits for long sends Await, once, to the members that it waits for.
// A rank that closes the communicator sends Left to members that have sent Await, or whose frames
// show that they wait. So a communicator in which no rank waits is closed without a message.
type Leavers struct {
	left    map[int]bool // have closed it
	asked   map[int]bool // were sent Await by this rank
	inquire map[int]bool // wait for Left from this rank
}

// Include reports whether a member has left.
func (l *Leavers) Include(rank int) bool { return len(l.left) > 0 && l.left[rank] }

// Any reports whether a member has left.
func (l *Leavers) Any() bool { return len(l.left) > 0 }

// Leave notes that a member has left.
func (l *Leavers) Leave(rank int) { note(&l.left, rank) }

// Inquire notes that a member waits for this rank's Left.
func (l *Leavers) Inquire(rank int) { note(&l.inquire, rank) }

// Inquirers returns the members that wait for this rank's Left.
func (l *Leavers) Inquirers() iter.Seq[int] { return maps.Keys(l.inquire) }

// WasAsked reports whether this rank has sent Await to a member.
func (l *Leavers) WasAsked(rank int) bool { return l.asked[rank] }

// Ask notes that this rank sends Await to a member.
func (l *Leavers) Ask(rank int) { note(&l.asked, rank) }

// note adds rank to a set, and makes the set if need be.
func note(set *map[int]bool, rank int) {
	if *set == nil {
		*set = map[int]bool{}
	}
	(*set)[rank] = true
}
