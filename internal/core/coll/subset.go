package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A Subset is some ranks of a communicator as Peers of their own: the i-th is Ranks[i] there. Its
// messages are of the communicator's call, so they arrive between two ranks in the order sent.
type Subset struct {
	Peers
	Ranks []int
	Me    int // this rank's number in the Subset
}

// Rank implements Peers.
func (s *Subset) Rank() int { return s.Me }

// Size implements Peers.
func (s *Subset) Size() int { return len(s.Ranks) }

// Isend implements Peers.
func (s *Subset) Isend(to int, b mem.Buffer) { s.Peers.Isend(s.Ranks[to], b) }

// Irecv implements Peers.
func (s *Subset) Irecv(from int, b mem.Buffer) { s.Peers.Irecv(s.Ranks[from], b) }

// IrecvReduce implements Peers.
func (s *Subset) IrecvReduce(from int, dst, own mem.Buffer, op call.Op, left bool) {
	s.Peers.IrecvReduce(s.Ranks[from], dst, own, op, left)
}
