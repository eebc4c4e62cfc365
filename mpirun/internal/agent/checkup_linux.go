package agent

import (
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/program"
)

// examine reports this host's findings to gompirun doctor.
func (a *agent) examine(m *ctl.Examine) {
	received := time.Now()
	if a.check == nil {
		a.check = hostinfo.BeginCheck(m) // until the process ends
	}
	f := a.check.Findings()
	f.MPI = program.MPINames(program.MPIFolder())
	f.Received, f.Sent = received.UnixNano(), time.Now().UnixNano()
	a.report(f)
}

// reach tries to reach another host. It blocks the agent, which has no ranks during a checkup.
func (a *agent) reach(m *ctl.Reach) {
	if a.check == nil {
		a.report(&ctl.Reached{Peer: m.Peer, Trouble: "asked before it was examined"})
		return
	}
	a.report(a.check.Reach(m))
}
