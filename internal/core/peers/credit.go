package peers

import "gompi/internal/mem"

// Limits of eager messages. They are the same on all ranks.
const (
	// Budget is the most credit that a rank has at a peer for eager messages, as Cost counts
	// them: separately for point-to-point messages, where it is less in large jobs, and for the
	// collectives of each communicator. With a common Budget of all communicators, a peer that
	// calls their collectives in another order would wait forever.
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

// A Credit bounds the memory of eager messages between two ranks at their receiver, while no
// receive matches them.
//
//c:struct gompi_credit
type Credit struct {
	out  int // the cost of sent messages for which the peer has not returned credit
	owed int // credit that is to be returned to the peer
}

// Covers reports whether a message of a cost may be sent, where limit is all the credit there is.
func (c *Credit) Covers(cost, limit int) bool { return c.out+cost <= limit }

// Spend counts a message that is sent.
func (c *Credit) Spend(cost int) { c.out += cost }

// Regain notes credit that the peer has returned, at most as much as was spent.
func (c *Credit) Regain(cost uint64) { c.out -= int(min(cost, uint64(c.out))) }

// Owe counts a message of the peer whose memory was released here, and returns the credit owed.
func (c *Credit) Owe(cost int) int {
	c.owed += cost
	return c.owed
}

// Return returns the credit owed, which is sent to the peer now.
func (c *Credit) Return() uint64 {
	n := c.owed
	c.owed = 0
	return uint64(n)
}

// Unexpected counts the point-to-point messages of a peer that are kept here without a receive,
// and this rank's messages that the peer keeps.
type Unexpected struct {
	Messages int
	Cost     int
	Reported int // Messages when the peer was last notified that there is no memory for more
	AtPeer   int // messages that the peer keeps, as reported to this rank
}
