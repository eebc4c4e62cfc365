package mpirun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// A survey asks all agents what their ranks are in and tells it together: on
// QUIT, at the time limit, and when ranks wait for long. The ranks take no part
// in it; the agents read what they are in from the hosts' segments.

// surveyTime is how long agents may take to answer.
const surveyTime = 2 * time.Second

// stall is what the launcher knows of ranks that wait for long, and of the
// survey under way.
type stall struct {
	waiting map[*link]bool // hosts with ranks that wait
	longest time.Duration
	pause   time.Duration    // until the next report, if they still wait
	again   <-chan time.Time // when that is

	answers map[*link]*ctl.Doing // nil when no survey is under way
	asked   []*link
	late    <-chan time.Time
}

// survey asks, unless that is being done already.
func (j *job) survey() {
	if j.answers != nil {
		return
	}
	j.answers, j.asked, j.late = map[*link]*ctl.Doing{}, nil, time.After(surveyTime)
	for _, l := range j.links {
		if len(l.ranks) > 0 && !l.drained {
			l.send(&ctl.Ask{})
			j.asked = append(j.asked, l)
		}
	}
	j.concludeSurvey(false)
}

func (j *job) answered(l *link, m *ctl.Doing) {
	if j.answers != nil {
		j.answers[l] = m
		j.concludeSurvey(false)
	}
}

// concludeSurvey tells what has come when everybody has answered or is gone, or
// now.
func (j *job) concludeSurvey(now bool) {
	if j.answers == nil {
		return
	}
	silent := []string{}
	for _, l := range j.asked {
		if j.answers[l] == nil && !l.drained {
			silent = append(silent, l.host)
		}
	}
	if len(silent) > 0 && !now {
		return
	}
	lines, missing := surveyLines(j.asked, j.answers)
	for _, line := range lines {
		j.notef("%s", line)
	}
	j.sayDetails()
	j.askStacks(missing)
	for _, host := range silent {
		j.notef("%s: the agent does not answer", host)
	}
	j.answers, j.asked, j.late = nil, nil, nil
}

// stalled notes that ranks of a host wait for long, or no more.
func (j *job) stalled(l *link, m *ctl.Stalled) {
	j.longest = max(j.longest, m.Since)
	if !m.On {
		delete(j.waiting, l)
		if len(j.waiting) == 0 && j.cause == nil {
			j.notef("the ranks go on, after having waited for about %v", j.longest.Round(100*time.Millisecond))
			j.longest, j.again = 0, nil
		}
		return
	}
	if j.waiting == nil {
		j.waiting = map[*link]bool{}
	}
	j.waiting[l] = true
	if j.again == nil {
		j.pause = j.spec.Stall.Warning
		j.warn()
	}
}

// warn tells who waits for whom, and again later, at growing intervals.
func (j *job) warn() {
	if j.spec.Quiet {
		return
	}
	j.pause *= 2
	j.again = time.After(j.pause)
	j.survey()
}

// A doing is what some ranks are in alike.
type doing struct {
	text  string
	hosts []string
	ranks []int
	since time.Duration
}

// mostStacks is how many ranks are asked for their stacks, or told of in detail, at once.
const mostStacks = 8

// askStacks asks where in their programs ranks are, of which others wait, if the
// user wants to know.
func (j *job) askStacks(ranks []int) {
	if !j.spec.Stall.Stacks || len(ranks) == 0 {
		return
	}
	j.broadcast(&ctl.Ask{Stacks: ranks[:min(len(ranks), mostStacks)]})
}

func (j *job) sayStacks(l *link, m *ctl.Stacks) {
	j.notef("%s: rank %d stands in%s", l.host, m.Rank, indented(m.Text))
}

// indented returns the lines of text, each on a line of its own and marked as said by
// another.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "\n  | %s", strings.TrimRight(line, "\n"))
	}
	return b.String()
}

// sayDetails tells more of programs that do not use gompi, but not of too many.
func (j *job) sayDetails() {
	left := mostStacks
	for _, l := range j.asked {
		if j.answers[l] == nil {
			continue
		}
		for _, r := range j.answers[l].Ranks {
			if first, rest, _ := strings.Cut(r.Details, "\n"); first != "" && left > 0 {
				left--
				j.notef("%s: rank %d: %s%s", l.host, r.Rank, first, indented(rest))
			}
		}
	}
}

// surveyLines tells what ranks are in: first which collectives lack somebody,
// then all ranks, those that are in the same in one line. It also returns the
// ranks that are missing somewhere, or else those that are in no call.
func surveyLines(links []*link, answers map[*link]*ctl.Doing) (lines []string, missing []int) {
	var all []ctl.RankDoing
	var groups []*doing
	index := map[string]*doing{}
	for _, l := range links {
		if answers[l] == nil {
			continue
		}
		for _, r := range answers[l].Ranks {
			all = append(all, r)
			text := r.Text
			if r.Site != "" {
				text += " at " + r.Site
			}
			g := index[text]
			if g == nil {
				g = &doing{text: text}
				index[text], groups = g, append(groups, g)
			}
			g.ranks, g.since = append(g.ranks, r.Rank), max(g.since, r.Since)
			if !slices.Contains(g.hosts, l.host) {
				g.hosts = append(g.hosts, l.host)
			}
		}
	}
	lines, missing = gaps(all)
	if len(missing) == 0 {
		for _, r := range all {
			if r.Since == 0 {
				missing = append(missing, r.Rank)
			}
		}
	}
	for _, g := range groups {
		slices.Sort(g.ranks)
		line := fmt.Sprintf("%s: rank %s %s", hostsText(g.hosts), plan.Ranges(g.ranks), g.text)
		if g.since > 0 {
			line += fmt.Sprintf(" for %v", g.since.Round(100*time.Millisecond))
		}
		lines = append(lines, line)
	}
	return lines, missing
}

// gaps tells of each collective that ranks are in who has arrived and who has
// not. Of other communicators than the world only members are known that had a
// collective on it lately.
func gaps(all []ctl.RankDoing) (lines []string, anywhere []int) {
	var in []ctl.Mark
	texts := map[ctl.Mark]string{}
	for _, r := range all {
		if r.In.Seq > 0 && texts[r.In] == "" {
			in, texts[r.In] = append(in, r.In), strings.TrimPrefix(r.Text, "is in ")
		}
	}
	slices.SortFunc(in, func(a, b ctl.Mark) int { return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Seq, b.Seq)) })
	for _, m := range in {
		var here, missing []int
		for _, r := range all {
			i := slices.IndexFunc(r.Marks, func(k ctl.Mark) bool { return k.Comm == m.Comm })
			switch {
			case r.In == m:
				here = append(here, r.Rank)
			case i >= 0 && r.Marks[i].Seq >= m.Seq: // it has been through
			case i >= 0 || m.Comm == 0:
				missing = append(missing, r.Rank)
			}
		}
		if len(missing) > 0 {
			slices.Sort(here)
			slices.Sort(missing)
			anywhere = append(anywhere, missing...)
			lines = append(lines, fmt.Sprintf("%s: arrived: rank %s; missing: rank %s", texts[m], plan.Ranges(here), plan.Ranges(missing)))
		}
	}
	slices.Sort(anywhere)
	return lines, slices.Compact(anywhere)
}

// hostsText names hosts, if there are few.
func hostsText(hosts []string) string {
	if len(hosts) > 4 {
		return fmt.Sprintf("%d hosts", len(hosts))
	}
	return strings.Join(hosts, ", ")
}
