package ctl

import "gompi/internal/boot/wire"

// Vote passes on a rank's part in an agreement.
type Vote struct {
	Rank int
	Vote wire.Vote
}

func (m *Vote) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	m.Vote.Fields(c)
}

// Outcome notifies living ranks of the result of their agreement.
type Outcome struct{ Outcome wire.Outcome }

func (m *Outcome) fields(c *wire.Codec) { m.Outcome.Fields(c) }

// Replace orders an agent to start a process in one of its spare places, in the same way as one
// of its first ranks. The answer is LateCard, or Exited or Failed.
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

// LateCard is the card of a replacement.
type LateCard struct {
	Rank int
	Data []byte
}

func (m *LateCard) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Bytes(&m.Data, wire.MaxCard)
}

// Brief answers LateCard: the cards of all places, and the dead ranks so far.
type Brief struct {
	Rank int
	Data [][]byte
	Dead []Died
}

func (m *Brief) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Cards(&m.Data)
	wire.List(c, &m.Dead, wire.MaxRanks, func(d *Died) { d.fields(c) })
}

// NoMore notifies an agent that all ranks of the job have ended, so that none will be replaced.
// If the job has failed, Terminate has been sent earlier.
type NoMore struct{}

func (*NoMore) fields(*wire.Codec) {}
