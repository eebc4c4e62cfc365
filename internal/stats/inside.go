package stats

// counters.inside says how many calls that are timed are under way, in its low threadBits, and, if
// there are any, since when there are, in units of 1<<clockBits ns, in the others. Both are one
// word, so that the call that ends last reads the beginning that belongs to its count: nothing else
// is ordered by it, and other threads that begin or end meanwhile repeat their exchange.
//
// The time in calls is the sum of the periods in which there are some. C does the same: counted.c.
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

// exit notes that a call ends that began at begin, stands for so many others of its length, and
// counts for nothing if those are -1.
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

// openFor returns for how long calls are under way at a time.
func (c *counters) openFor(now int64) int64 {
	was := c.inside.Load()
	if was&threads == 0 {
		return 0
	}
	return max(0, int64(units(now)-was&^threads)>>threadBits<<clockBits)
}
