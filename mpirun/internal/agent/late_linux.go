package agent

import "gompi/mpirun/internal/ctl"

// turnAway reports a program that came in the place of a rank whose process had already ended:
// something had put the program into the background without waiting for it.
func (a *agent) turnAway(p *process) {
	if p.late {
		return
	}
	p.late = true
	a.report(&ctl.Failed{
		Rank: p.Rank.Rank, Code: 1,
		Text: "its program began after the process that gompirun had started was over, and was turned away: have what starts it wait for it (setsid -w; no & behind it)",
	})
}

// turnAwayLate reports the late programs that learned from the segment.
func (a *agent) turnAwayLate() {
	for _, p := range a.ranks {
		if a.segment != nil && a.segment.CameLate(p.local()) {
			a.turnAway(p)
		}
	}
}
