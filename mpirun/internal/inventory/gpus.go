package inventory

import (
	"fmt"
	"slices"
	"strings"

	"gompi/cudaops/topo"
	"gompi/internal/env"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/program"
)

// GPUs are the GPUs of a host.
type GPUs struct {
	*topo.Host
	visible string // the host's own CUDA_VISIBLE_DEVICES
	limited bool   // that variable is set
}

// readGPUs decodes an agent's answer.
func readGPUs(m *ctl.GPUs) (*GPUs, error) {
	h, err := topo.Parse(m.Found)
	if err != nil {
		return nil, fmt.Errorf("GPUs: %w", err)
	}
	return &GPUs{h, m.Visible, m.Limited}, nil
}

// PlanGPUs returns the GPUs for ranks on the host, whose environment is own, and of which the
// programs have more variables. Needed states that the job does not run without them.
func (e *Entry) PlanGPUs(own []string, programs [][]string, needed bool, note func(format string, args ...any)) (
	found []plan.GPU, err error) {
	if e.GPUs == nil {
		return nil, nil
	}
	list, limited, err := e.visible(own, programs)
	if err != nil && needed {
		return nil, err
	}
	units := e.GPUs.Units()
	if limited {
		units = e.GPUs.Named(list)
		if named := strings.Count(list, ",") + 1; list != "" && len(units) < named && needed {
			note("%s: of the %d GPUs in %s=%s there are %d, up to the first that there is not", e.Host, named,
				env.CUDADevices, list, len(units))
		}
	}
	for _, u := range units {
		found = append(found, planGPU(e.GPUs.Host, u))
	}
	return found, nil
}

// visible returns the CUDA_VISIBLE_DEVICES for ranks on a host, and whether that variable is set:
// by -x, for all programs, or by the host, for example its batch system, or here.
func (e *Entry) visible(own []string, programs [][]string) (list string, limited bool, err error) {
	var values []string
	for _, vars := range programs {
		if v, ok := program.EnvValue(vars, env.CUDADevices); ok && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	switch {
	case len(values) > 1:
		return "", false, fmt.Errorf("-x %s=%s for one program and %s for another: want one value where ranks are given GPUs", env.CUDADevices, values[0], values[1])
	case len(values) == 1:
		return values[0], true, nil
	case e.GPUs.limited:
		return e.GPUs.visible, true, nil
	}
	list, limited = program.EnvValue(own, env.CUDADevices)
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
