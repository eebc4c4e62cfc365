package stats

// counters.inside has the number of timed calls under way in its low threadBits. If there are any,
// the upper bits have the beginning of the period in which there were always some, in units of
// 1<<clockBits ns. As both are one word, the call that ends last reads the beginning that belongs
// to its count. No other memory is ordered by this word, and concurrent begins and ends repeat
// their exchange.
//
// The time in calls is the sum of these periods. C does the same: counted.c.
//
//c:const GOMPI_STATS_
const (
	threadBits = 16
	clockBits  = 4 // a period may last 26 days
	threads    = 1<<threadBits - 1
)

func units(now int64) uint64 { return uint64(now) >> clockBits << threadBits }

// enter notes that a call begins.
func (c *counters) enter(now int64) {
	for {
		was := c.inside.Load()
		next := was + 1
		if was&threads == 0 {
			next = units(now) | 1
		}
		if c.inside.CompareAndSwap(was, next) {
			return
		}
	}
}

// exit notes the end of a call that began at begin. The call also stands for a number of other
// calls of its length; with -1 the call itself does not count.
func (c *counters) exit(begin, now, others int64) {
	was := c.inside.Add(^uint64(0))
	if was&threads != 0 {
		return
	}
	period := max(0, int64(units(now)-was)>>threadBits<<clockBits-c.clock)
	if was == units(begin) { // the period is this call's
		period += period * others
	}
	c.busy.Add(period)
}

// openFor returns the length of the current period with calls under way.
func (c *counters) openFor(now int64) int64 {
	was := c.inside.Load()
	if was&threads == 0 {
		return 0
	}
	return max(0, int64(units(now)-was&^threads)>>threadBits<<clockBits)
}
