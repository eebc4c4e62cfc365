package job

import (
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
)

// fences is the state of the barrier of PMI-1 clients. A host reports once that all its ranks are
// in the barrier, and then waits.
type fences struct {
	arrived int
	puts    []string // keys and values in turn
}

// fence notes that all ranks of a host are in the barrier. The last host releases all, with the
// values put by all ranks.
func (j *Job) fence(m *ctl.Fence) {
	j.fences.puts = append(j.fences.puts, m.Puts...)
	j.fences.arrived++
	j.refuseMixture()
	if j.fences.arrived == j.nodes {
		j.broadcast(&ctl.Fenced{Puts: j.fences.puts})
		j.fences = fences{}
	}
}

// refuseMixture ends a job in which ranks of some hosts wire up over PMI-1 and ranks of others
// like gompi programs. Agents check the ranks of one host.
func (j *Job) refuseMixture() {
	if j.fences.arrived > 0 && j.cardHosts > 0 {
		j.endFor(&failure.Cause{
			Status: StatusFailed,
			Text:   "some ranks are of gompi and some of another MPI library: they wait for each other in vain",
		})
	}
}
