package job

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/report"
)

// What -stats and -trace write. It is the same of all runs of a job that is started again: what the
// ranks have counted is added up, and written when the last has ended.
type statistics struct {
	*report.Collector          // nil if nothing is wanted
	stats             *os.File // nil: to stderr
	trace             *os.File // nil for none
}

// openStats opens the files that are to be written, before the job is started: a name that cannot
// be one is better known then.
func (j *Job) openStats() (err error) {
	want := &j.spec.Stats
	if !want.On() || j.statistics.Collector != nil {
		return nil
	}
	j.statistics.Collector = report.New(j.spec.Programs[0].Name(), len(j.plan.Ranks))
	if want.File != "" {
		j.statistics.stats, err = os.Create(want.File)
	}
	if err == nil && want.Trace != "" {
		j.statistics.trace, err = os.Create(want.Trace)
	}
	if err != nil {
		return fmt.Errorf("-stats and -trace: %w", err)
	}
	return nil
}

// gotFigures takes what a rank has counted.
func (j *Job) gotFigures(h *host, m *ctl.Figures) {
	if j.statistics.Collector == nil {
		return
	}
	m.Rank = j.recover.original(m.Rank)
	for i := range m.Peers {
		m.Peers[i].Rank = j.recover.original(m.Peers[i].Rank)
	}
	j.statistics.Add(h.name, &m.Figures, m.Copies)
}

// gotEvents takes some of the calls of the rank whose figures came last.
func (j *Job) gotEvents(h *host, m *ctl.Events) {
	if j.statistics.Collector == nil {
		return
	}
	for i := range m.Events {
		e := &m.Events[i]
		e.Begin = h.pulse.ours(e.Begin)
		if e.Peer >= 0 {
			e.Peer = j.recover.original(e.Peer)
		}
	}
	j.statistics.AddEvents(j.recover.original(m.Rank), m.Events)
}

// writeStats writes what was asked for, when no other run follows.
func (j *Job) writeStats() {
	s := &j.statistics
	if s.Collector == nil || j.attempt.next != nil {
		return
	}
	var err error
	if j.spec.Stats.Table {
		sum := s.Summary()
		if s.stats == nil {
			var b strings.Builder
			err = sum.Write(&b, "")
			j.out.Log(strings.TrimRight(b.String(), "\n"))
		} else {
			err = errors.Join(sum.Write(s.stats, j.spec.Stats.File), s.stats.Close())
		}
	}
	if s.trace != nil {
		err = errors.Join(err, s.WriteTrace(s.trace), s.trace.Close())
	}
	if err != nil {
		j.notef("-stats and -trace: %v", err)
	}
}
