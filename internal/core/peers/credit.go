package peers

import "gompi/internal/mem"

// Limits of eager messages. They are the same on all ranks.
const (
	// Budget is the most credit that a rank has at one peer for eager messages, as Cost counts
	// them: one for point-to-point messages, which is less in large jobs, and one for the
	// collectives of each communicator. Were there one for all communicators, a peer that calls
	// their collectives in another order would wait forever.
	Budget = 4 << 20

	// recordSize is about how many bytes an unexpected message takes besides its payload.
	//
	//c:const GOMPI_COST_
	recordSize = 256
)

// Cost is the memory that an unexpected message with a payload of n bytes takes.
func Cost(n int) int {
	if n == 0 {
		return recordSize
	}
	return recordSize + 1<<mem.SizeClass(n)
}

// A Credit bounds the memory that eager messages between two ranks take at their receiver, if it
// has no receive for them.
//
//c:struct gompi_credit
type Credit struct {
	out  int // the cost of those sent for which the peer has not returned credit
	owed int // credit that is to be returned to the peer
}

// Covers reports whether a message of a cost may be sent, where limit is all the credit there is.
func (c *Credit) Covers(cost, limit int) bool { return c.out+cost <= limit }

// Spend counts a message that is sent.
func (c *Credit) Spend(cost int) { c.out += cost }

// Regain notes credit that the peer has returned. It cannot return more than was spent.
func (c *Credit) Regain(cost uint64) { c.out -= int(min(cost, uint64(c.out))) }

// Owe counts a message of the peer's that is no longer held here. It returns what is owed.
func (c *Credit) Owe(cost int) int {
	c.owed += cost
	return c.owed
}

// Return returns what is owed, which is sent to the peer now.
func (c *Credit) Return() uint64 {
	n := c.owed
	c.owed = 0
	return uint64(n)
}

// Unexpected counts the point-to-point messages of a peer that are kept here without a receive, and
// those of this rank that the peer keeps.
type Unexpected struct {
	Messages int
	Cost     int
	Reported int // what Messages was when the peer was last notified that there is no memory for more
	AtPeer   int // how many the peer keeps, as it has reported to this rank
}
