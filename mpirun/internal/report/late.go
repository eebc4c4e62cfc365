package report

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gompi/internal/calls"
	"gompi/internal/stats"
)

// Who was late. The data of each verdict:
//
//	Late, Verdict, Where   of each rank the time in calls that may wait for others: first without the
//	                       longest call at each place, then with it and with the time from the rank's
//	                       end to the last rank's end; the places and messages of each rank
//	a Site's Latest        of a collective the time of each rank, first without its longest call
//	a Site's Wait          of a collective the mean call of the rank that spent least, otherwise the
//	                       fastest call
//
// Time before the end of Init counts nowhere: a rank joins the job there.

// serves reports whether a site is the wait of a service thread, not of the program: torch's
// store on rank 0, and others over gompi for C, wait there for requests.
func serves(s *stats.Site) bool { return s.Place == "" && s.Op == stats.Probe.String() }

// Times of ranks differ if the difference exceeds both a part of the job's time and some seconds.
// The noise of other processes on the hosts stays below that in sums over many calls; single
// calls also vary by the start of processes and their first reads.
func differ(least, most, elapsed float64) bool     { return most-least > max(0.05*elapsed, 0.02) }
func differOnce(least, most, elapsed float64) bool { return most-least > max(0.05*elapsed, 0.1) }

// steady leaves out the longest call at a place, which may be the wait for a rank's single
// action, such as reading a file, or for a host that was held up.
func steady(s *stats.Site) int64 { return max(0, s.Time-s.Slowest) }

func total(s *stats.Site) int64 { return s.Time }

// A measure selects the times by which ranks are compared.
type measure struct {
	of      func(*stats.Site) int64 // counted nanoseconds at a place
	ends    bool                    // count the time after a rank's end, too
	differs func(least, most, elapsed float64) bool
}

var (
	often = measure{of: steady, differs: differ}
	once  = measure{of: total, ends: true, differs: differOnce}
)

// afterEnd stands for the time from a rank's end to the last rank's end, as a place.
var afterEnd = name{}

// waits returns the places where the rank may have waited for others, with seconds, and their
// sum. Simultaneous calls of several threads count once in the sum.
func (c *Collector) waits(r *rank, by measure) (places map[name]float64, sum float64) {
	places = map[name]float64{}
	works := 0.0
	for n, s := range r.sites {
		switch {
		case serves(&s):
		case alone.MatchString(n.op):
			works += seconds(s.Time)
		default:
			places[n] = seconds(by.of(&s))
			sum += places[n]
		}
	}
	sum = min(sum, max(0, seconds(r.busy)-works))
	if by.ends {
		for run, left := range r.left {
			places[afterEnd] += seconds(c.ends[run] - left)
		}
		sum += places[afterEnd]
	}
	return places, sum
}

// alone are functions that wait for a disk, but for no other rank.
var alone = regexp.MustCompile(`^MPI_File_(i?(read|write)(_at|_shared)?(_c)?|seek|delete|preallocate)$`)

// late returns the ranks that the others have waited for in most calls or, if there are none, in
// few calls; the verdict in words; and the place where the others have waited longest.
func (c *Collector) late(elapsed float64) (who []int, verdict, where string) {
	switch len(c.ranks) {
	case 0:
		return nil, "no rank has used gompi: there is nothing to count", ""
	case 1:
		return nil, "there is no other rank to wait for", ""
	}
	again := c.compare(often, elapsed)
	if again.late != nil {
		return again.late, again.verdict(elapsed),
			"most of it " + again.where.String() + "; the longest call at each place is left out"
	}
	x := c.compare(once, elapsed)
	switch where = "most of it " + x.where.String(); {
	case x.late == nil && again.unlike:
		return nil, again.verdict(elapsed), ""
	case x.late == nil:
		return nil, x.verdict(elapsed), ""
	case x.where == afterEnd:
		return x.late, x.verdict(elapsed), where
	}
	return x.late, x.verdict(elapsed), where + ", in few calls"
}

// A comparison is the result of a measure.
type comparison struct {
	late        []int // nil if none is
	least, most float64
	first, last int     // ranks with the least and the most time
	others      float64 // average time of the ranks that are not late
	unlike      bool    // most ranks have waited little
	where       name    // place where the others have waited longest
}

// compare compares the ranks. A rank that computes longer arrives last at common calls and waits
// least there: the late rank is the rank with the least waiting. Ranks nearer to the least time
// than to the most count as late, too. A rank that takes no part in the calls where the others
// wait delays nobody: it is left out, and the others are compared again.
func (c *Collector) compare(by measure, elapsed float64) (x comparison) {
	in, places := map[int]float64{}, map[int]map[name]float64{}
	for i, r := range c.ranks {
		places[i], in[i] = c.waits(r, by)
	}
	for {
		ranks := slices.SortedFunc(maps.Keys(in),
			func(a, b int) int { return cmp.Or(cmp.Compare(in[a], in[b]), cmp.Compare(a, b)) })
		x = comparison{first: ranks[0], last: ranks[len(ranks)-1]}
		x.least, x.most = in[x.first], in[x.last]
		if !by.differs(x.least, x.most, elapsed) {
			return x
		}
		for _, i := range ranks {
			if in[i]-x.least < (x.most-x.least)/3 {
				x.late = append(x.late, i)
			} else {
				x.others += in[i]
			}
		}
		x.others /= float64(len(ranks) - len(x.late))
		x.where = longest(places, ranks, x.late)
		before := len(in)
		for _, i := range x.late {
			if !c.takesPart(i, x.where.op) {
				delete(in, i)
			}
		}
		if len(in) < before {
			continue // the rank that waited most is never left out
		}
		if 2*len(x.late) > len(ranks) {
			x.late, x.unlike = nil, true
		}
		slices.Sort(x.late)
		return x
	}
}

// longest returns the place where the others have waited longest for the late ranks.
func longest(places map[int]map[name]float64, ranks, late []int) name {
	excess := map[name]float64{}
	for _, i := range ranks {
		part := 1 / float64(len(ranks)-len(late))
		if slices.Contains(late, i) {
			part = -1 / float64(len(late))
		}
		for n, t := range places[i] {
			excess[n] += part * t
		}
	}
	return slices.MaxFunc(slices.Collect(maps.Keys(excess)), func(a, b name) int {
		return cmp.Or(cmp.Compare(excess[a], excess[b]), cmp.Compare(a.op, b.op), cmp.Compare(a.place, b.place))
	})
}

// takesPart reports whether ranks in op may wait for the rank. It must call the same collective op
// or, for other ops, any operation that is not collective; or it was ended earlier.
func (c *Collector) takesPart(rank int, op string) bool {
	if op == afterEnd.op || c.ranks[rank].ended {
		return true
	}
	for n, s := range c.ranks[rank].sites {
		if collective(op) && plain(n.op) == plain(op) || !collective(op) && !collective(n.op) && !serves(&s) {
			return true
		}
	}
	return false
}

func (x *comparison) verdict(elapsed float64) string {
	switch {
	case x.unlike:
		return fmt.Sprintf("most ranks have waited little: rank %d was in calls for %s, and rank %d for %s, longest",
			x.first, duration(x.least), x.last, duration(x.most))
	case x.late == nil:
		return fmt.Sprintf("the ranks are balanced: they were in calls for %s to %s", duration(x.least),
			duration(x.most))
	case x.where == afterEnd:
		return fmt.Sprintf("%s late: in calls for %s, the others in calls, and then at their end, for %s on average, of %s",
			rankNames(x.late), duration(x.least), duration(x.others), duration(elapsed))
	}
	return fmt.Sprintf("%s late: in calls for %s, the others for %s on average, of %s",
		rankNames(x.late), duration(x.least), duration(x.others), duration(elapsed))
}

// String returns the place, as "in allreduce at main.go:94".
func (n name) String() string {
	switch {
	case n == afterEnd:
		return "after the others had left the job"
	case n.place == "":
		return "in " + n.op
	}
	return "in " + n.op + " at " + n.place
}

// rankNames names some ranks as the subject of a sentence: "rank 3 was".
func rankNames(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d was", ranks[0])
	}
	return "ranks " + strings.ReplaceAll(strings.Trim(fmt.Sprint(ranks), "[]"), " ", ", ") + " were"
}

// plain returns the common part of comm's and MPI's names of a function: "reducescatter".
func plain(op string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(op), "mpi_"), "_c"), "_", "")
}

// collective reports whether all ranks of a communicator call op together, and wait.
func collective(op string) bool {
	op = plain(op)
	named := func(k calls.Kind) bool { return op == plain(k.String()) }
	return slices.ContainsFunc(calls.Collectives, named) || together.MatchString(op)
}

// together are functions of MPI alone that all ranks of an object call together, in plain's form.
var together = regexp.MustCompile(`^(finalize|comm(dup|create|split|free|disconnect|agree|shrink).*|intercomm(create|merge).*|(cart|graph|distgraph)(create|sub).*` +
	`|win(create|allocate|free|fence).*|file(open|close|sync|read.*(all|ordered)|write.*(all|ordered)))$`)
