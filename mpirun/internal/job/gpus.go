package job

import (
	"fmt"
	"slices"
	"strings"

	"gompi/cudaops/topo"
	"gompi/internal/env"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/launchenv"
	"gompi/mpirun/internal/plan"
)

// hostGPUs are the GPUs of a host.
type hostGPUs struct {
	*topo.Host
	visible string // the host's own CUDA_VISIBLE_DEVICES
	limited bool   // that variable is set
}

// readGPUs decodes an agent's answer.
func readGPUs(m *ctl.GPUs) (*hostGPUs, error) {
	h, err := topo.Parse(m.Found)
	if err != nil {
		return nil, fmt.Errorf("GPUs: %w", err)
	}
	return &hostGPUs{h, m.Visible, m.Limited}, nil
}

// wantsGPUs reports whether the plan, or its display, depends on GPUs. Finding them takes a
// moment, and seconds if the driver has to load.
func (j *Job) wantsGPUs() bool {
	return j.spec.Report.Map || j.spec.Report.Bindings || j.needsGPUs() || j.spec.PerHost.CountsGPUs() || j.nodesCountGPUs()
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
func (j *Job) reportGPUs(h *host) {
	for _, w := range h.gpus.Warnings {
		j.notef("%s: %s", h.name, w)
	}
	switch {
	case h.gpus.Trouble == "":
	case j.needsGPUs() && len(h.gpus.Devices) == 0:
		j.notef("%s: no GPU is known: %s", h.name, h.gpus.Trouble)
	default:
		j.verbosef("%s: of GPUs only what the kernel tells is known: %s", h.name, h.gpus.Trouble)
	}
}

// addGPUs adds to each host the GPUs for its ranks.
func (j *Job) addGPUs(hosts []plan.Host) error {
	for i, h := range j.hosts {
		if h.gpus == nil {
			continue
		}
		list, limited, err := j.visible(h)
		if err != nil && j.needsGPUs() {
			return err
		}
		units := h.gpus.Units()
		if limited {
			units = h.gpus.Named(list)
			if named := strings.Count(list, ",") + 1; list != "" && len(units) < named && j.needsGPUs() {
				j.notef("%s: of the %d GPUs in %s=%s there are %d, up to the first that there is not", h.name, named, env.CUDADevices, list, len(units))
			}
		}
		for _, u := range units {
			hosts[i].GPUs = append(hosts[i].GPUs, planGPU(h.gpus.Host, u))
		}
	}
	return nil
}

// visible returns the CUDA_VISIBLE_DEVICES for ranks on a host, and whether that variable is set:
// by -x, for all programs, or by the host, for example its batch system, or here.
func (j *Job) visible(h *host) (list string, limited bool, err error) {
	own, programs := j.environAt(h.name)
	var values []string
	for _, vars := range programs {
		if v, ok := launchenv.Value(vars, env.CUDADevices); ok && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	switch {
	case len(values) > 1:
		return "", false, fmt.Errorf("-x %s=%s for one program and %s for another: want one value where ranks are given GPUs", env.CUDADevices, values[0], values[1])
	case len(values) == 1:
		return values[0], true, nil
	case h.gpus.limited:
		return h.gpus.visible, true, nil
	}
	list, limited = launchenv.Value(own, env.CUDADevices)
	return list, limited, nil
}

// planGPU converts a unit for the plan.
func planGPU(h *topo.Host, u topo.Unit) plan.GPU {
	g := plan.GPU{Label: h.Label(u), Token: u.Token, Slice: u.Device < 0 || u.Slice >= 0}
	if u.Device < 0 {
		return g
	}
	d := h.Devices[u.Device]
	g.Slice = d.MIG
	g.Exclusive = d.Mode == topo.ExclusiveProcess || d.Mode == topo.ExclusiveThread
	g.CPUs, _ = plan.ParseCPUs(d.CPUs) // nil if there is no list
	return g
}
