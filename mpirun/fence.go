package mpirun

import "gompi/mpirun/internal/ctl"

// fences is how far the barrier of PMI-1 clients has come. A host says once that
// all its ranks are in it, and waits then.
type fences struct {
	came int
	puts []string // keys and values in turn
}

// fence notes that all ranks of a host are in the barrier. The last host
// releases everybody, with what all have put.
func (j *job) fence(m *ctl.Fence) {
	j.fences.puts = append(j.fences.puts, m.Puts...)
	j.fences.came++
	if j.fences.came == j.nodes {
		j.broadcast(&ctl.Fenced{Puts: j.fences.puts})
		j.fences = fences{}
	}
}
