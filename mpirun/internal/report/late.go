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

// Who was late. What each verdict looks at:
//
//	Late, Verdict, Where   of each rank the time in calls that may wait for others, first without the
//	                       longest call at each place, else with it and with the time from the rank's
//	                       end to the end of the last; which places and messages it has
//	a Site's Latest        of a collective the time of each rank, first without its longest call
//	a Site's Wait          of a collective the mean of a call on the rank that spent least, of all else
//	                       the fastest call
//
// None looks at what precedes Init's end: a rank is not in the job before.

// serves reports whether a site is where a thread waits that serves others, not the program:
// torch's store on rank 0, and others over gompi for C, wait so for what they are asked.
func serves(s *stats.Site) bool { return s.Place == "" && s.Op == stats.Probe.String() }

// A difference between the times of ranks is one if it is larger than a part of the time of the
// job, and than some seconds: what else runs on the hosts makes as much, call by call, and in a
// single call the start of processes, and what each of them reads first.
func differ(least, most, elapsed float64) bool     { return most-least > max(0.05*elapsed, 0.02) }
func differOnce(least, most, elapsed float64) bool { return most-least > max(0.05*elapsed, 0.1) }

// steady leaves out the longest call at a place: for that may be the wait for what one rank does
// once, such as to read a file, or what held a host up.
func steady(s *stats.Site) int64 { return max(0, s.Time-s.Slowest) }

func total(s *stats.Site) int64 { return s.Time }

// A measure is by what ranks are compared.
type measure struct {
	of      func(*stats.Site) int64 // how much of the time at a place, in nanoseconds
	ends    bool                    // what follows a rank's end, too
	differs func(least, most, elapsed float64) bool
}

var (
	often = measure{of: steady, differs: differ}
	once  = measure{of: total, ends: true, differs: differOnce}
)

// afterEnd names the time from a rank's end to that of the last, among its places.
var afterEnd = name{}

// waits returns where the rank may have waited for others, and for how long, in seconds; and the
// sum, of which calls of several threads at once count once.
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

// alone are functions that wait for no other rank, but for a disk.
var alone = regexp.MustCompile(`^MPI_File_(i?(read|write)(_at|_shared)?(_c)?|seek|delete|preallocate)$`)

// late returns the ranks that the others have waited for, again and again: or, if there are none,
// those that they have waited for in few calls. And it says so, and where they have.
func (c *Collector) late(elapsed float64) (who []int, verdict, where string) {
	switch len(c.ranks) {
	case 0:
		return nil, "no rank has used gompi: there is nothing to count", ""
	case 1:
		return nil, "there is no other rank to wait for", ""
	}
	again := c.compare(often, elapsed)
	if again.late != nil {
		return again.late, again.verdict(elapsed), "most of it " + again.where.String() + "; the longest call at each place is left out"
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

// A comparison is what a measure shows.
type comparison struct {
	late        []int // nil if none is
	least, most float64
	first, last int     // the ranks with these
	others      float64 // of those that are not late, on average
	unlike      bool    // most ranks have waited little
	where       name    // the others have waited longest
}

// compare compares the ranks. One that computes for longer comes late to what all do together, and
// waits least there: so the late rank is the one that has waited for the least time. With it are
// counted late all that are nearer to it than to the one that waited most. One that takes no part
// where the others wait is nobody's to wait for: it is left out, and the others are compared.
func (c *Collector) compare(by measure, elapsed float64) (x comparison) {
	in, places := map[int]float64{}, map[int]map[name]float64{}
	for i, r := range c.ranks {
		places[i], in[i] = c.waits(r, by)
	}
	for {
		ranks := slices.SortedFunc(maps.Keys(in), func(a, b int) int { return cmp.Or(cmp.Compare(in[a], in[b]), cmp.Compare(a, b)) })
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
			continue // at least the rank that waited most is left
		}
		if 2*len(x.late) > len(ranks) {
			x.late, x.unlike = nil, true
		}
		slices.Sort(x.late)
		return x
	}
}

// longest returns at which place the others have waited longest for the ranks that are late.
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

// takesPart reports whether others that wait in op may wait for a rank: it calls op, too, if that
// is collective, or else anything that is not; or it was ended, and had not come to it.
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
		return fmt.Sprintf("the ranks are balanced: they were in calls for %s to %s", duration(x.least), duration(x.most))
	case x.where == afterEnd:
		return fmt.Sprintf("%s late: in calls for %s, the others in calls, and then at their end, for %s on average, of %s",
			rankNames(x.late), duration(x.least), duration(x.others), duration(elapsed))
	}
	return fmt.Sprintf("%s late: in calls for %s, the others for %s on average, of %s",
		rankNames(x.late), duration(x.least), duration(x.others), duration(elapsed))
}

// String says where: "in allreduce at main.go:94".
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
	var names []string
	for _, r := range ranks {
		names = append(names, fmt.Sprint(r))
	}
	return "ranks " + strings.Join(names, ", ") + " were"
}

// plain returns what is the same of the names of a function of comm and of MPI: "reducescatter".
func plain(op string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(op), "mpi_"), "_c"), "_", "")
}

// collective reports whether all ranks of a communicator call op together, and wait.
func collective(op string) bool {
	op = plain(op)
	named := func(k calls.Kind) bool { return op == plain(k.String()) }
	return slices.ContainsFunc(calls.Collectives, named) || together.MatchString(op)
}

// together are functions of MPI alone that all ranks of an object call together, as plain has them.
var together = regexp.MustCompile(`^(finalize|comm(dup|create|split|free|disconnect|agree|shrink).*|intercomm(create|merge).*|(cart|graph|distgraph)(create|sub).*` +
	`|win(create|allocate|free|fence).*|file(open|close|sync|read.*(all|ordered)|write.*(all|ordered)))$`)
