package job

import (
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/report"
)

// openStats opens the files of -stats and -trace, in the first run.
func (j *Job) openStats() (err error) {
	if j.spec.Stats.On() && j.statistics == nil {
		j.statistics, err = report.Open(&j.spec.Stats, &j.spec.Programs[0], len(j.plan.Ranks))
	}
	return err
}

// gotFigures takes a rank's figures.
func (j *Job) gotFigures(h *host, m *ctl.Figures) {
	if j.statistics == nil {
		return
	}
	m.Begun, m.Left = h.pulse.clock.Ours(m.Begun), h.pulse.clock.Ours(m.Left)
	m.Rank = j.recover.Original(m.Rank)
	for i := range m.Peers {
		m.Peers[i].Rank = j.recover.Original(m.Peers[i].Rank)
	}
	j.statistics.Add(h.Name(), &m.Figures, m.Copies)
}

// gotEvents takes some calls of the rank with the latest figures.
func (j *Job) gotEvents(h *host, m *ctl.Events) {
	if j.statistics == nil {
		return
	}
	for i := range m.Events {
		e := &m.Events[i]
		e.Begin = h.pulse.clock.Ours(e.Begin)
		if e.Peer >= 0 {
			e.Peer = j.recover.Original(e.Peer)
		}
	}
	j.statistics.AddEvents(j.recover.Original(m.Rank), m.Events)
}

// writeStats writes the requested files after the last run.
func (j *Job) writeStats() error {
	if j.statistics == nil || j.attempt.next != nil {
		return nil
	}
	return j.statistics.Close(j.end.cause != nil, j.system.Width, j.out.Log)
}
