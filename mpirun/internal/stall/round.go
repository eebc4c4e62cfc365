package stall

import (
	"cmp"
	"fmt"
	"time"

	"gompi/mpirun/internal/ctl"
)

// SurveyTime is the time for agents to answer: on a busy machine they wait for a processor.
const SurveyTime = 4 * time.Second

// A Round asks agents for the calls of their ranks, and collects the answers. The zero Round is
// not under way. One goroutine uses it, and ends the round when Late fires.
type Round struct {
	Late <-chan time.Time // fires when agents have taken too long to answer

	asked   []Agent
	open    map[Agent]bool
	answers map[Agent]*ctl.Doing // nil when no round is under way
}

// UnderWay reports whether agents have been asked.
func (r *Round) UnderWay() bool { return r.answers != nil }

// Ask begins a round. The result tells whether the round is complete because there are no agents.
func (r *Round) Ask(agents []Agent, m *ctl.Ask) (complete bool) {
	*r = Round{asked: agents, open: map[Agent]bool{}, answers: map[Agent]*ctl.Doing{}, Late: time.After(SurveyTime)}
	for _, h := range agents {
		h.Send(m)
		r.open[h] = true
	}
	return len(r.open) == 0
}

// Answered takes the answer of h, and reports whether that completes the round.
func (r *Round) Answered(h Agent, m *ctl.Doing) (complete bool) {
	if r.UnderWay() {
		r.answers[h] = m
	}
	return r.Gone(h)
}

// Gone notes that h will not answer, and reports whether that completes the round.
func (r *Round) Gone(h Agent) (complete bool) {
	delete(r.open, h)
	return r.UnderWay() && len(r.open) == 0
}

// Each calls f with the answers received, in the order of the questions.
func (r *Round) Each(f func(h Agent, m *ctl.Doing)) {
	for _, h := range r.asked {
		if m := r.answers[h]; m != nil {
			f(h, m)
		}
	}
}

// silent returns a line for each agent that has not answered.
func (r *Round) silent() (lines []string) {
	for _, h := range r.asked {
		if r.open[h] {
			lines = append(lines, fmt.Sprintf("%s: %s", h.Name(), cmp.Or(h.Kept(), "the agent does not answer")))
		}
	}
	return lines
}
