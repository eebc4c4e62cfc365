package agent

import (
	"bytes"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/program"
)

// A preparation is under way until the ranks are started.
type preparation struct {
	program.Preparation // not for the loop while a step is under way
	underWay            bool
	since               time.Time // beginning of the current step; zero without one, or if reported
	input               [][]byte  // received before the ranks were started
}

// prepare runs a step of the preparation in the background. After the last step the ranks are
// started.
func (a *agent) prepare(step func() (want *ctl.Want, rank int, err error)) {
	a.preparation.underWay, a.preparation.since = true, time.Now()
	a.loop.Aside(func() func() {
		want, rank, err := step()
		return func() { a.prepared(want, rank, err) }
	})
}

// stepTime is the duration of a step after which the user is notified.
const stepTime = 5 * time.Second

// slowAt returns when the current step will be slow, zero without a step.
func (p *preparation) slowAt() time.Time {
	if p.since.IsZero() {
		return p.since
	}
	return p.since.Add(stepTime)
}

// reportSlow reports a slow step, once.
func (a *agent) reportSlow(now time.Time) {
	if t := a.preparation.slowAt(); t.IsZero() || now.Before(t) {
		return
	}
	a.preparation.since = time.Time{}
	a.note("ranks are not started yet: for %v programs, folders and files have been looked at, as those of %q. "+
		"Are they large, or does a file system not answer?",
		stepTime, a.launch.Programs[a.launch.Ranks[0].Program].Argv[0])
}

// prepared sends the request want, or else starts the ranks. A non-nil err is the reason why a
// rank cannot be started.
func (a *agent) prepared(want *ctl.Want, rank int, err error) {
	a.preparation.since = time.Time{}
	if a.end.ordered {
		return
	}
	if want != nil && err == nil {
		a.report(want)
		return
	}
	for _, w := range a.preparation.Warnings {
		a.note("%s", w)
	}
	a.preparation.underWay = false
	a.begin(rank, err)
	for _, data := range a.preparation.input {
		a.input(data)
	}
	a.preparation.input = nil
}

// take takes a piece of a fetched file.
func (a *agent) take(data []byte) {
	if !a.preparation.underWay || a.end.ordered {
		return
	}
	data = bytes.Clone(data)
	a.prepare(func() (*ctl.Want, int, error) { return a.preparation.Take(data) })
}
