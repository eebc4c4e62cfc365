package ctl

import "gompi/internal/boot/wire"

// Replace orders an agent to start a process in one of its spare places, in the same way as one
// of its first ranks. The answer is its card in a FromRank, or Exited or Failed.
type Replace struct {
	Rank     int // of the next free place
	Original int // the rank of Launch that it replaces
	Invite   wire.Invite
}

func (m *Replace) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Rank(&m.Original)
	m.Invite.Fields(c)
}

// Brief passes a replacement the cards of all places, and the deaths so far, undecoded.
type Brief struct {
	Rank   int
	Frames []byte // of a wire.Cards, and of a wire.Died for each death
}

func (m *Brief) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Bytes(&m.Frames, maxFrame)
}

// NoMore notifies an agent that all ranks of the job have ended, so that none will be replaced.
// If the job has failed, Terminate has been sent earlier.
type NoMore struct{}

func (*NoMore) fields(*wire.Codec) {}
