// Package stall reports what the ranks of a job are in when nothing moves: on QUIT, at the time
// limit, and when ranks wait for long. The ranks take no part in it: the agents read what they are
// in from the hosts' segments.
package stall

import (
	"fmt"
	"strings"
	"time"

	"gompi/mpirun/internal/ctl"
)

// mostStacks is how many ranks are asked for their stacks, or reported in detail, at once.
const mostStacks = 8

// An Agent is that of a host with ranks. It must be usable as a map key.
type Agent interface {
	Name() string
	Send(ctl.Message) // does not block
	Kept() string     // what keeps its agent from answering, "" if that is not known
}

// A Watch tracks which hosts have ranks that wait for long, and collects what all ranks are doing.
// One goroutine uses it. It sets the exported fields first, and calls Conclude when Late fires and
// Warn when Repeat fires.
type Watch struct {
	Warning time.Duration  // how long a rank waits before a warning is printed
	Quiet   bool           // print no warnings
	Stacks  bool           // ask ranks of which others wait for their stacks
	Agents  func() []Agent // whose agents answer now
	Log     func(format string, args ...any)

	// Named returns the rank that the user knows a process by: a replacement is known by the rank
	// in whose place it is. nil if each is known by its own.
	Named func(rank int) int

	Round                   // the survey that is under way, if one is
	Repeat <-chan time.Time // when to report ranks that still wait
	RunOn  <-chan time.Time // when a rank has ended for long, and others may run on

	ended []int // ranks that have ended well, as the user knows them

	waiting map[Agent]bool // hosts with ranks that wait
	longest time.Duration
	pause   time.Duration // until the next report, if they still wait
}

// Survey asks all agents what their ranks are in, unless that is being done already. Their answers
// are reported together.
func (w *Watch) Survey() {
	if !w.UnderWay() && w.Ask(w.Agents(), &ctl.Ask{}) {
		w.Conclude()
	}
}

// Answered notes what the ranks of h are in.
func (w *Watch) Answered(h Agent, m *ctl.Doing) {
	if w.Round.Answered(h, m) {
		w.Conclude()
	}
}

// Gone notes that h will not answer.
func (w *Watch) Gone(h Agent) {
	if w.Round.Gone(h) {
		w.Conclude()
	}
}

// Conclude ends a survey, if one is under way: it reports what has arrived.
func (w *Watch) Conclude() {
	if !w.UnderWay() {
		return
	}
	lines, missing := w.summary(&w.Round, 0)
	for _, line := range lines {
		w.Log("%s", line)
	}
	w.logDetails()
	w.askStacks(missing)
	for _, line := range w.silent() {
		w.Log("%s", line)
	}
	w.Round = Round{}
}

// notYet is how long a collective may lack ranks until Lines has it: in a job that makes progress
// each lacks some at any moment.
const notYet = time.Second

// Lines describes what the ranks that a round has asked are in, as a report does.
func (w *Watch) Lines(r *Round) []string {
	lines, _ := w.summary(r, notYet)
	return append(lines, r.silent()...)
}

// Waiting reports whether ranks wait for longer than Warning.
func (w *Watch) Waiting() bool { return len(w.waiting) > 0 }

// Ended notes that a rank has ended well. If others still run when ranks would have waited for
// long, RunOn fires, once, and the user wants to know what they do.
func (w *Watch) Ended(rank int) {
	w.ended = append(w.ended, w.named(rank))
	if len(w.ended) == 1 && w.Warning > 0 && !w.Quiet {
		w.RunOn = time.After(w.Warning)
	}
}

// Stalled notes that ranks of h wait for long, or no more. ending states that the job is about to
// end, so that their continuing is no news.
func (w *Watch) Stalled(h Agent, m *ctl.Stalled, ending bool) {
	w.longest = max(w.longest, m.Since)
	if !m.On {
		delete(w.waiting, h)
		if len(w.waiting) == 0 && !ending {
			w.Log("the ranks continue, after having waited for about %v", w.longest.Round(100*time.Millisecond))
			w.longest, w.Repeat = 0, nil
		}
		return
	}
	if w.waiting == nil {
		w.waiting = map[Agent]bool{}
	}
	w.waiting[h] = true
	if w.Repeat == nil {
		w.pause = w.Warning
		w.Warn()
	}
}

// Warn reports which ranks wait for which, and sets Repeat for the next report, at growing
// intervals.
func (w *Watch) Warn() {
	if w.Quiet {
		return
	}
	w.pause *= 2
	w.Repeat = time.After(w.pause)
	w.Survey()
}

// askStacks asks for the stacks of ranks that others wait for, if the user wants them.
func (w *Watch) askStacks(ranks []int) {
	if !w.Stacks || len(ranks) == 0 {
		return
	}
	for _, h := range w.Agents() {
		h.Send(&ctl.Ask{Stacks: ranks[:min(len(ranks), mostStacks)]})
	}
}

// Stack reports an agent's answer to the question where a rank is.
func (w *Watch) Stack(h Agent, m *ctl.Stacks) {
	w.Log("%s: rank %d stands in%s", h.Name(), w.named(m.Rank), indented(m.Text))
}

// indented returns the lines of text, each on a line of its own and marked as printed by another.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "\n  | %s", strings.TrimRight(line, "\n"))
	}
	return b.String()
}

// logDetails reports more of programs that do not use gompi, but not of too many.
func (w *Watch) logDetails() {
	left := mostStacks
	w.Each(func(h Agent, m *ctl.Doing) {
		for _, r := range m.Ranks {
			if first, rest, _ := strings.Cut(r.Details, "\n"); first != "" && left > 0 {
				left--
				w.Log("%s: rank %d: %s%s", h.Name(), w.named(r.Rank), first, indented(rest))
			}
		}
	})
}
