package agent

import (
	"time"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
)

// doing reads from the segment what the ranks are in. It needs no help of
// theirs: they may be stuck.
func (a *agent) doing() *ctl.Doing {
	m := &ctl.Doing{}
	for i, p := range a.ranks {
		if p.pid == 0 || p.ended {
			continue
		}
		d := ctl.RankDoing{Rank: p.Rank.Rank}
		switch a.segment.State(i) {
		case seg.Starting:
			d.Text = "has not called Init"
		case seg.Joined:
			d.Text, d.Since = latest(a.segment.Calls(i), seg.Now())
		default:
			d.Text = "has closed its communicators"
		}
		m.Ranks = append(m.Ranks, d)
	}
	return m
}

// latest describes the newest call that is not done, or else the last one.
func latest(calls []seg.Recording, now int64) (string, time.Duration) {
	for i := len(calls) - 1; i >= 0; i-- {
		c := calls[i]
		if c.Done {
			continue
		}
		if c.Start == 0 {
			return "is in " + c.String(), 0
		}
		return "is in " + c.String(), time.Duration(max(1, now-c.Start))
	}
	if len(calls) == 0 {
		return "has called nothing but Init", 0
	}
	return "is in no call, the last was " + calls[len(calls)-1].String(), 0
}
