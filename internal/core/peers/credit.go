package peers

import (
	"gompi/internal/mem"
	"gompi/transport"
)

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

	// leastCredit is the credit for point-to-point messages in the largest jobs: three messages of
	// 64 KiB.
	leastCredit = 256 << 10
	// MaxKept is the most memory that the unexpected messages of a peer take here.
	MaxKept = 64 << 20
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

// A Room is the memory for the unexpected messages of all peers.
type Room struct {
	Credit   int        // of each peer for point-to-point messages
	Released int        // cost of messages that are kept no more
	most     func() int // the memory beyond the peers' credit; nil if only the bound for each peer applies
	kept     int        // cost of unexpected messages
}

// NewRoom returns the Room of a rank in a job of ranks. The credits of all ranks together are at
// most MaxKept, unless leastCredit each is more.
func NewRoom(ranks int, most func() int) Room {
	return Room{Credit: min(Budget, max(MaxKept/ranks, leastCredit)), most: most}
}

// Has reports whether there is memory for a message of n bytes beyond the memory for p's credit.
func (r *Room) Has(p *Peer, n int) bool {
	return p.Unexpected.Cost+Cost(n) <= MaxKept-r.Credit && (r.most == nil || r.kept+Cost(n) <= r.most())
}

// Keep counts the memory that an unexpected message of n bytes takes.
func (r *Room) Keep(p *Peer, n int) {
	p.Unexpected.Messages++
	p.Unexpected.Cost += Cost(n)
	r.kept += Cost(n)
}

// Release undoes Keep.
func (r *Room) Release(p *Peer, n int) {
	p.Unexpected.Messages--
	p.Unexpected.Cost -= Cost(n)
	r.kept -= Cost(n)
	r.Released += Cost(n)
}

// ReturnCredit notes that the memory of an eager message of n bytes from p was released. It sends
// the credit once a quarter of p's credit is owed.
func (r *Room) ReturnCredit(p *Peer, n int) {
	if p.Credit.Owe(Cost(n)) >= r.Credit/4 && p.Reachable() {
		p.SendHeader(transport.Header{Kind: transport.Credit, A: p.Credit.Return()})
	}
}
