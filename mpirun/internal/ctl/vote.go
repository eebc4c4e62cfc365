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

// Outcome tells ranks that live what they have agreed on.
type Outcome struct{ Outcome wire.Outcome }

func (m *Outcome) fields(c *wire.Codec) { m.Outcome.Fields(c) }
