// Package ways chooses among several ways to do the same, by costs that are measured while the work
// is done. It knows no processor, and reads no clock.
package ways

import "sync/atomic"

// Most is the largest number of ways of a Chooser.
const Most = 5

// A Pace says how often a Chooser tries and times.
type Pace struct {
	Ways  int8  // the number of ways
	At    int8  // the way at first
	First int16 // the uses before the first trial
	Every int16 // one of so many uses is timed
	Warm  int16 // the uses of a way in a trial before one is timed, as for caches to fill or a disturbance to end

	Random bool // each use behind the first ones takes a way drawn by lot, equally on all ranks
}

// AtRandom makes new Choosers Random from their first use on, for tests.
var AtRandom atomic.Bool

const (
	// samples is the number of timed uses of a way in a trial. The least cost counts, since
	// disturbances only add to a cost.
	samples = 2
	// Ways that do not have the least cost get one of share uses in trials, and one of longest
	// times share while trials confirm the choice.
	share, longest = 50, 8
	// Another way is taken if it costs less than worth percent of the present way.
	worth = 90
	// A way that costs slow times as much as the best sits out trials, one that costs hopeless
	// times as much until the cost of the present way rises.
	slow, hopeless = 4, 10
	// mostOut is the number of trials in a row that a slow way sits out.
	mostOut = 15
)

// A Chooser chooses the way of each use of a kind, and takes the way of the least known cost. Some
// uses are timed, and their costs noted. Trials time the other ways, the more seldom the longer a
// choice holds. If the present way costs 1.5 times as much as it did twice in a row, a trial begins
// at once: the processors of a virtual machine move.
//
// The same uses and notes in the same order give the same choices. So ranks that note equal costs
// take equal ways. A Chooser is for one goroutine.
type Chooser struct {
	pace    Pace
	present int8
	trying  int8  // the way that a trial times, -1 without a trial
	sampled int8  // timed uses of that way
	rises   int8  // timed uses of the present way in a row that cost more than the level
	waiting bool  // a timed use has not been noted
	warmed  int32 // uses of the way before
	untimed int32 // uses before the next timed one
	until   int32 // uses before the next trial
	term    int32 // the value of until after the last trial
	drawn   uint32
	level   int64 // the usual cost of the present way
	best    [Most]int64
	out     [Most]int8 // trials that a way has yet to sit out, -1 for all
	sits    [Most]int8 // and sat out last
}

// New returns a Chooser.
func New(p Pace) Chooser {
	if AtRandom.Load() {
		p.Random, p.First = true, 0
	}
	return Chooser{pace: p, present: p.At, trying: -1, untimed: int32(p.First)}
}

// IsNew reports whether c is the zero Chooser, which chooses nothing.
func (c *Chooser) IsNew() bool { return c.pace.Ways == 0 }

// Present returns the way of uses that are not counted.
func (c *Chooser) Present() int { return int(c.present) }

// Next returns the way of a use. If timed is set, Note or Lost follows; until then further uses
// take the present way.
func (c *Chooser) Next() (way int, timed bool) {
	switch {
	case c.untimed > 0:
		c.untimed--
		return int(c.present), false
	case c.waiting:
		return int(c.present), false
	case c.pace.Random:
		c.drawn = c.drawn*1664525 + 1013904223
		c.waiting = c.drawn>>30 == 0
		return int(c.drawn>>16) % int(c.pace.Ways), c.waiting
	case c.trying < 0 && c.until > 0:
		c.untimed = min(int32(c.pace.Every), c.until) - 1
		c.until -= c.untimed + 1
		c.waiting = true
		return int(c.present), true
	case c.trying < 0:
		c.best = [Most]int64{}
		c.try(c.present)
	}
	if c.warmed < int32(c.pace.Warm) {
		c.warmed++
		return int(c.trying), false
	}
	c.waiting = true
	return int(c.trying), true
}

// Waits reports whether a timed use has not been noted.
func (c *Chooser) Waits() bool { return c.waiting }

// Lost forgets the timed use.
func (c *Chooser) Lost() { c.waiting = false }

// Note notes the cost of the timed use, at least 1: in any unit, the same for all ways and lengths.
func (c *Chooser) Note(cost int64) {
	c.waiting = false
	switch {
	case c.trying >= 0:
		c.sample(cost)
	case c.level == 0:
		c.level = cost
	case 2*cost < 3*c.level:
		c.rises, c.level = 0, c.level+(cost-c.level)/4
	default:
		c.untimed = 0
		if c.rises++; c.rises == samples {
			c.until, c.term, c.out, c.sits = 0, 0, [Most]int8{}, [Most]int8{}
		}
	}
}

// try begins to time a way.
func (c *Chooser) try(way int8) { c.trying, c.sampled, c.warmed = way, 0, 0 }

// sample notes the cost of a timed use in a trial, and continues with the next way.
func (c *Chooser) sample(cost int64) {
	best := &c.best[c.trying]
	if *best == 0 || cost < *best {
		*best = cost
	}
	if c.sampled++; c.sampled < samples && *best < slow*c.best[c.present] {
		return
	}
	next := c.trying + 1
	if c.trying == c.present {
		next = 0
	}
	for ; next < c.pace.Ways; next++ {
		if next != c.present && c.out[next] == 0 {
			c.try(next)
			return
		}
	}
	c.decide()
}

// decide ends a trial.
func (c *Chooser) decide() {
	winner := c.present
	for way := range c.pace.Ways {
		if b := c.best[way]; b > 0 && b*100 < c.best[winner]*worth {
			winner = way
		}
	}
	for way, b := range c.best {
		switch {
		case b == 0:
			if c.out[way] > 0 {
				c.out[way]--
			}
		case b >= hopeless*c.best[winner]:
			c.out[way] = -1
		case b >= slow*c.best[winner]:
			c.sits[way] = min(2*c.sits[way]+1, mostOut)
			c.out[way] = c.sits[way]
		default:
			c.sits[way] = 0
		}
	}
	least := share * (int32(c.pace.Ways) - 1) * (int32(c.pace.Warm) + samples)
	if winner != c.present {
		c.term = 0
	}
	c.term = min(max(2*c.term, least), longest*least)
	c.present, c.trying, c.until, c.rises, c.level = winner, -1, c.term, 0, c.best[winner]
}
