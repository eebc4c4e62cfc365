package job

import "gompi/mpirun/internal/ctl"

// fences is how far the barrier of PMI-1 clients has come. A host says once that
// all its ranks are in it, and waits then.
type fences struct {
	came int
	puts []string // keys and values in turn
}

// fence notes that all ranks of a host are in the barrier. The last host
// releases everybody, with what all have put.
func (j *Job) fence(m *ctl.Fence) {
	j.fences.puts = append(j.fences.puts, m.Puts...)
	j.fences.came++
	j.refuseMixture()
	if j.fences.came == j.nodes {
		j.broadcast(&ctl.Fenced{Puts: j.fences.puts})
		j.fences = fences{}
	}
}

// refuseMixture ends a job in which the ranks of some hosts meet over PMI-1 and
// those of others as gompi's do. Agents see to it that those of one host agree.
func (j *Job) refuseMixture() {
	if j.fences.came > 0 && j.came > 0 {
		j.endFor(&cause{status: StatusFailed, text: "some ranks are of gompi and some of another MPI library: they wait for each other in vain"})
	}
}
