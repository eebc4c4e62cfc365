// Package limits measures what a machine allows: how fast its processors, all at
// the same time, copy and add vectors of every size. With the bytes that an
// operation cannot but move follows the least time that it can take.
package limits

import (
	"math"
	"runtime"
	"sync"
	"time"

	"gompi/internal/mem"
)

// A Gauge measures the speed of memory again and again, with the same vectors.
type Gauge struct {
	workers []worker
	sizes   []int // bytes
}

// A worker is what one thread works on: elements of float32.
type worker struct{ a, b, sum []float32 }

const (
	leastBytes       = 4 << 10
	mostBytes        = 64 << 20
	allBytes         = 1 << 30  // of all vectors of a Gauge
	trialBytes       = 64 << 20 // that a trial works on
	trials           = 2        // of which the fastest counts
	fewPasses        = 2        // of a trial, at least
	manyPasses       = 1 << 10  // and at most
	elements         = 4        // bytes of one
	nonTemporalBytes = 4 << 20  // from which on non-temporal stores may be faster
	smallBytes       = 64 << 10 // below that, ranks that share processors wait for each other's turn above all
)

// New takes memory for so many threads at a time, up to 1 GiB.
func New(threads int) *Gauge {
	return newGauge(threads, sizesFor(threads))
}

// sizesFor returns the sizes to measure with so many threads, one at least.
func sizesFor(threads int) []int {
	sizes := []int{leastBytes}
	for n := 4 * leastBytes; n <= mostBytes && 3*n*threads <= allBytes; n *= 4 {
		sizes = append(sizes, n)
	}
	return sizes
}

func newGauge(threads int, sizes []int) *Gauge {
	g := &Gauge{workers: make([]worker, threads), sizes: sizes}
	most := sizes[len(sizes)-1]
	for i := range g.workers {
		for _, v := range []*[]float32{&g.workers[i].a, &g.workers[i].b, &g.workers[i].sum} {
			*v = make([]float32, most/elements)
			for j := range *v {
				(*v)[j] = 1 // a page that was never written is no memory yet
			}
		}
	}
	return g
}

// Limits are how fast memory was at one time.
type Limits struct {
	np, threads int
	crossing    float64 // us for a flag from one processor to another
	copies      curve
	sums        curve
}

// Measure takes the speeds for np ranks. crossing is how long a flag takes from
// one processor to another. It takes about half a second.
func (g *Gauge) Measure(np int, crossing time.Duration) Limits {
	l := Limits{np: np, threads: len(g.workers), crossing: crossing.Seconds() * 1e6}
	for _, bytes := range g.sizes {
		n := bytes / elements
		copies := g.fastest(bytes, func(w *worker) { copy(w.sum[:n], w.a[:n]) })
		// Reductions fail for operands that do not fit alone.
		sums := g.fastest(bytes, func(w *worker) {
			_ = mem.Host.Reduce(mem.Sum, mem.Of(w.sum[:n]), mem.Of(w.a[:n]), mem.Of(w.b[:n]))
		})
		if bytes >= nonTemporalBytes {
			copies = min(copies, g.fastest(bytes, func(w *worker) { mem.CopyNonTemporal(mem.Of(w.sum[:n]).HostSlice(), mem.Of(w.a[:n]).HostSlice()) }))
			sums = min(sums, g.fastest(bytes, func(w *worker) {
				_ = mem.ReduceNonTemporal(mem.Sum, []mem.Buffer{mem.Of(w.sum[:n])}, mem.Buffer{}, mem.Of(w.a[:n]), mem.Of(w.b[:n]))
			}))
		}
		l.copies.add(bytes, copies)
		l.sums.add(bytes, sums)
	}
	return l
}

// fastest returns the microseconds of one pass when all workers make passes.
func (g *Gauge) fastest(bytes int, pass func(*worker)) float64 {
	passes := min(max(trialBytes/bytes, fewPasses), manyPasses)
	best := math.Inf(1)
	for range trials {
		best = min(best, g.together(passes, pass).Seconds()*1e6/float64(passes))
	}
	return best
}

// together returns how long the slowest worker took for its passes.
func (g *Gauge) together(passes int, pass func(*worker)) time.Duration {
	took := make([]time.Duration, len(g.workers))
	var ready, done sync.WaitGroup
	ready.Add(len(g.workers))
	for i := range g.workers {
		done.Go(func() { // ends after its passes
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			pass(&g.workers[i])
			ready.Done()
			ready.Wait()
			start := time.Now()
			for range passes {
				pass(&g.workers[i])
			}
			took[i] = time.Since(start)
		})
	}
	done.Wait()
	slowest := took[0]
	for _, t := range took {
		slowest = max(slowest, t)
	}
	return slowest
}

// work is what no implementation of an operation of np ranks can avoid: to read
// each input and to write each result once, in blocks of the size that is measured.
type work struct {
	reads, writes int
	adds          bool
	alone         bool // by one processor, the receiver
}

// Known reports whether there is a limit for op.
func Known(op string) bool {
	_, ok := workOf(op, 2)
	return ok
}

func workOf(op string, np int) (work, bool) {
	w, ok := map[string]work{
		"latency":       {reads: 1, writes: 1, alone: true},
		"bw":            {reads: 1, writes: 1},
		"barrier":       {},
		"bcast":         {reads: 1, writes: np - 1},
		"reduce":        {reads: np, writes: 1, adds: true},
		"allreduce":     {reads: np, writes: np, adds: true},
		"iallreduce":    {reads: np, writes: np, adds: true},
		"allgather":     {reads: np, writes: np * np},
		"reducescatter": {reads: np * np, writes: np, adds: true},
		"alltoall":      {reads: np * np, writes: np * np},
		"gather":        {reads: np, writes: np},
		"scatter":       {reads: np, writes: np},
		"scan":          {reads: np, writes: np, adds: true},
	}[op]
	return w, ok
}

// Time returns the least microseconds that op takes with blocks of so many bytes:
// a flag crosses once, and all threads together move what has to be moved. ok is
// false if nothing can be said: of other operations, and of small ones of ranks
// that have to take turns.
func (l Limits) Time(op string, bytes int) (us float64, ok bool) {
	w, ok := workOf(op, l.np)
	oversubscribed := l.np > l.threads
	if !ok || l.np < 2 || l.threads < 2 || oversubscribed && bytes < smallBytes {
		return 0, false
	}
	moved, threads := float64((w.reads+w.writes)*bytes), float64(l.threads)
	if w.alone {
		threads = 1
	}
	if w.adds {
		us = l.sums.at(moved / 3 / threads) // a sum reads two vectors and writes one
	} else {
		us = l.copies.at(moved / 2 / threads)
	}
	if !oversubscribed {
		us += l.crossing
	}
	return us, true
}

// A curve is a time for each size, ascending.
type curve struct{ bytes, us []float64 }

func (c *curve) add(bytes int, us float64) {
	c.bytes, c.us = append(c.bytes, float64(bytes)), append(c.us, us)
}

// at returns the time for any size: between two that were measured by a straight
// line over logarithms, outside at the speed of the nearest.
func (c *curve) at(bytes float64) float64 {
	last := len(c.bytes) - 1
	switch {
	case last < 0:
		return 0
	case bytes <= c.bytes[0]:
		return c.us[0] * bytes / c.bytes[0]
	case bytes >= c.bytes[last]:
		return c.us[last] * bytes / c.bytes[last]
	}
	i := 1
	for c.bytes[i] < bytes {
		i++
	}
	share := math.Log(bytes/c.bytes[i-1]) / math.Log(c.bytes[i]/c.bytes[i-1])
	return c.us[i-1] * math.Pow(c.us[i]/c.us[i-1], share)
}
