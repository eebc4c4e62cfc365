package ctl

import (
	"math"

	"gompi/internal/boot/wire"
	"gompi/internal/stats"
)

// Figures are a rank's counters of its calls, sent when its host's work is done. Times are of the
// host's clock, in nanoseconds since 1970.
type Figures struct {
	stats.Figures
	Copies int64 // bytes that one processor of the host copies in a second
}

func (m *Figures) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	for _, n := range []*int64{&m.Begun, &m.Left, &m.Busy, &m.Uncounted, &m.Dropped, &m.Copies} {
		wire.Int(c, n, math.MinInt64, math.MaxInt64)
	}
	c.Bools(&m.Ended)
	wire.List(c, &m.Sites, stats.Sites, func(s *stats.Site) {
		c.String(&s.Op, MaxText)
		c.String(&s.Place, MaxText)
		counts(c, &s.Counts)
	})
	wire.List(c, &m.Peers, wire.MaxRanks, func(p *stats.Peer) {
		c.Rank(&p.Rank)
		wire.Uint(c, &p.Messages, math.MaxUint64)
		wire.Uint(c, &p.Bytes, math.MaxUint64)
	})
}

func counts(c *wire.Codec, m *stats.Counts) {
	for i := range m.Numbers() {
		wire.Int(c, &m.Numbers()[i], math.MinInt64, math.MaxInt64)
	}
}

// MaxEvents bounds the events of a message.
const MaxEvents = 4096

// Events are some of the calls of a rank whose Figures have been sent.
type Events struct {
	Rank   int
	Events []stats.Event
}

func (m *Events) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.List(c, &m.Events, MaxEvents, func(e *stats.Event) {
		wire.Int(c, &e.Begin, math.MinInt64, math.MaxInt64)
		wire.Int(c, &e.Duration, math.MinInt64, math.MaxInt64)
		wire.Int(c, &e.Site, 0, stats.Sites)
		wire.Int(c, &e.Peer, -1, wire.MaxRanks)
		wire.Int(c, &e.Tag, math.MinInt32, math.MaxInt32)
		wire.Uint(c, &e.Bytes, math.MaxUint64)
	})
}
