package job

import (
	"fmt"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/plan"
)

// size sets the slots of each host by -nproc-per-node.
func (j *Job) size(hosts []plan.Host) error {
	for i := range hosts {
		p, err := j.ranksAt(hosts[i].Name)
		if err == nil {
			err = inventory.SetSlots(&hosts[i], p, j.spec.Policy.GPUs, j.Nodes != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ranksAt returns the number of ranks for a host.
func (j *Job) ranksAt(host string) (cmdline.PerHost, error) {
	if j.Nodes == nil {
		return j.spec.PerHost, nil
	}
	var p cmdline.PerHost
	ranks := j.Nodes[host].Ranks
	if ranks == "" {
		return p, nil
	}
	if err := p.Set(ranks); err != nil {
		return p, fmt.Errorf("%s: -nproc-per-node %q: %w", host, ranks, err)
	}
	return p, nil
}

// wantsGPUs reports whether the plan, or its display, depends on GPUs. Finding them takes a
// moment, and seconds if the driver has to load.
func (j *Job) wantsGPUs() bool {
	return j.spec.Report.Map || j.spec.Report.Bindings || j.needsGPUs() || j.spec.PerHost.CountsGPUs() ||
		j.nodesCountGPUs()
}

// nodesCountGPUs reports whether a node's number of ranks is its number of GPUs.
func (j *Job) nodesCountGPUs() bool {
	for _, n := range j.Nodes {
		if (cmdline.PerHost{Of: n.Ranks}).CountsGPUs() {
			return true
		}
	}
	return false
}

// needsGPUs reports whether ranks get GPUs, or are bound near them.
func (j *Job) needsGPUs() bool { return j.spec.Policy.GPUs > 0 || j.spec.Policy.BindTo == plan.BindGPU }

// reportGPUs reports why a host's GPUs are unknown or unused: always if the job needs them,
// otherwise with -v.
func (j *Job) reportGPUs(h *inventory.Entry) {
	for _, w := range h.GPUs.Warnings {
		j.notef("%s: %s", h.Name(), w)
	}
	switch {
	case h.GPUs.Trouble == "":
	case j.needsGPUs() && len(h.GPUs.Devices) == 0:
		j.notef("%s: no GPU is known: %s", h.Name(), h.GPUs.Trouble)
	default:
		j.verbosef("%s: of GPUs only what the kernel tells is known: %s", h.Name(), h.GPUs.Trouble)
	}
}

// addGPUs adds to each host the GPUs for its ranks.
func (j *Job) addGPUs(hosts []plan.Host) (err error) {
	for i, h := range j.hosts {
		own, programs := j.environAt(h.Name())
		if hosts[i].GPUs, err = h.PlanGPUs(own, programs, j.needsGPUs(), j.notef); err != nil {
			return err
		}
	}
	return nil
}
