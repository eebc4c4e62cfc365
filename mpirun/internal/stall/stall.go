// Package stall reports the calls of a job's ranks when there is no progress: on QUIT, at the
// time limit, and when ranks wait for long. The ranks take no part: the agents read their calls
// from the hosts' segments.
package stall

import (
	"fmt"
	"strings"
	"time"

	"gompi/mpirun/internal/ctl"
)

// mostStacks is the most ranks that are asked for stacks, or reported in detail, at once.
const mostStacks = 8

// An Agent is the agent of a host with ranks. It must be usable as a map key.
type Agent interface {
	Name() string
	Send(ctl.Message) // does not block
	Kept() string     // reason why the agent cannot answer, "" if unknown
}

// A Watch tracks hosts with ranks that wait for long, and collects the calls of all ranks. One
// goroutine uses a Watch. That goroutine sets the exported fields first, and calls Conclude when
// Late fires and Warn when Repeat fires.
type Watch struct {
	Warning time.Duration  // how long a rank waits before a warning is printed
	Quiet   bool           // print no warnings
	Stacks  bool           // get the stacks of ranks that others wait for
	Agents  func() []Agent // agents that can answer
	Log     func(format string, args ...any)

	// Named returns the user's number of a process: a replacement has the number of the rank whose
	// place it took.
	Named func(rank int) int

	Round                   // the current survey, if any
	Repeat <-chan time.Time // when to report ranks that still wait
	RunOn  <-chan time.Time // fires once when others have run on for long after a rank's end

	ended []int // ranks that have ended well, by their users' numbers

	waiting map[Agent]bool // hosts with ranks that wait
	longest time.Duration
	pause   time.Duration // until the next report, if they still wait
}

// Survey asks all agents for the calls of their ranks, unless a survey is under way. The answers
// are reported together.
func (w *Watch) Survey() {
	if !w.UnderWay() && w.Ask(w.Agents(), &ctl.Ask{}) {
		w.Conclude()
	}
}

// Answered notes h's answer.
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

// Conclude ends a survey under way, and reports the answers received.
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

// notYet is the time for which a collective has to lack ranks before Lines lists it: during
// progress collectives lack some ranks at any moment.
const notYet = time.Second

// Lines describes the calls of the ranks in a round, like a report.
func (w *Watch) Lines(r *Round) []string {
	lines, _ := w.summary(r, notYet)
	return append(lines, r.silent()...)
}

// Waiting reports whether ranks wait for longer than Warning.
func (w *Watch) Waiting() bool { return len(w.waiting) > 0 }

// Ended notes that a rank has ended well. RunOn fires once if other ranks still run after the
// time of a stall warning: the user wants to know their calls.
func (w *Watch) Ended(rank int) {
	w.ended = append(w.ended, w.Named(rank))
	if len(w.ended) == 1 && w.Warning > 0 && !w.Quiet {
		w.RunOn = time.After(w.Warning)
	}
}

// Stalled notes that ranks of h wait for long, or no more. ending states that the job is about to
// end, so that its progress is no news.
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

// Warn reports which ranks wait for which, and sets Repeat for the next report. Intervals grow.
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

// Stack reports a rank's stacks, from its agent.
func (w *Watch) Stack(h Agent, m *ctl.Stacks) {
	w.Log("%s: rank %d stands in%s", h.Name(), w.Named(m.Rank), indented(m.Text))
}

// indented returns the lines of text, each marked as a quotation and on a line of its own.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "\n  | %s", strings.TrimRight(line, "\n"))
	}
	return b.String()
}

// logDetails reports details of programs without gompi, for a limited number of ranks.
func (w *Watch) logDetails() {
	left := mostStacks
	w.Each(func(h Agent, m *ctl.Doing) {
		for _, r := range m.Ranks {
			if first, rest, _ := strings.Cut(r.Details, "\n"); first != "" && left > 0 {
				left--
				w.Log("%s: rank %d: %s%s", h.Name(), w.Named(r.Rank), first, indented(rest))
			}
		}
	})
}
