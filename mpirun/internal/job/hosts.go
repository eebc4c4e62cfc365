package job

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gompi/cudaops/topo"
	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/launchenv"
	"gompi/mpirun/internal/plan"
)

// planHosts adds each agent's findings to its host. Agents on one machine, under several names,
// share its cores: each host gets a part, if there is a core for each.
func planHosts(hosts []hostfile.Host, found []*host) []plan.Host {
	sharers := map[string]int{}
	for _, f := range found {
		sharers[f.hello.Machine]++
	}
	taken := map[string]int{}
	out := make([]plan.Host, len(hosts))
	for i, h := range hosts {
		hello := found[i].hello
		k, n := taken[hello.Machine], sharers[hello.Machine]
		taken[hello.Machine]++
		cores := hello.Cores
		if c := len(cores); n <= c {
			cores = cores[k*c/n : (k+1)*c/n]
		}
		out[i] = plan.Host{
			Name: h.Name, Via: found[i].reached(), Slots: h.Slots, MaxSlots: h.MaxSlots,
			Cores: cores, Numa: hello.Numa, L3: hello.L3, Packages: hello.Packages, Quota: share(hello.Quota, n),
		}
	}
	return out
}

// size sets the slots of each host by -nproc-per-node.
func (j *Job) size(hosts []plan.Host) error {
	for i := range hosts {
		p, err := j.ranksAt(hosts[i].Name)
		if err == nil {
			err = setSlots(&hosts[i], p, j.spec.Policy.GPUs, j.Nodes != nil)
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

// setSlots sets the slots of one host by p: its GPUs divided by a rank's GPUs, its cores, or a
// number, which may differ from node to node.
func setSlots(host *plan.Host, p cmdline.PerHost, each int, differ bool) error {
	if p.Of == "" {
		if p.N > 0 && differ {
			host.Slots = p.N
		}
		return nil
	}
	gpus, cpus := len(host.GPUs), len(slices.Concat(host.Cores...))
	switch {
	case p.Of == "gpu" && gpus == 0:
		return fmt.Errorf("-nproc-per-node gpu: %s has no NVIDIA GPU that programs may use: want a number, cpu or auto", host.Name)
	case p.Of == "cpu" || gpus == 0:
		host.Slots = max(1, cpus)
	default:
		host.Slots = max(1, gpus/max(1, each))
	}
	return nil
}

// masterAddr returns the address by which all nodes reach the node of rank 0: no name, because
// hosts need not resolve the names that Slurm or the user has for each other. For a node on
// another host that is the address by which the launcher has reached the node. For the launcher's
// own host that is the launcher's address in the connection to another host. Otherwise the node's
// address nearest to the other nodes' serves, or the name of a node without addresses.
func masterAddr(nodes []*host, first int) string {
	h := nodes[first]
	if len(nodes) == 1 || !slices.ContainsFunc(nodes, func(n *host) bool { return !n.sharesLoopback() }) {
		return sockets.Loopback().String()
	}
	if !h.sharesLoopback() && isForOthers(h.hello.Address) {
		return h.hello.Address
	}
	var others []netip.Prefix
	for _, other := range nodes {
		if h.sharesLoopback() && !other.sharesLoopback() && other.relay() < 0 && isForOthers(other.hello.Launcher) {
			return other.hello.Launcher
		}
		if other != h {
			others = append(others, other.hello.Addresses...)
		}
	}
	if near := sockets.Endpoints(h.hello.Addresses, others, 0); len(near) > 0 {
		return near[0].Addr().String()
	}
	if h.started.Here {
		return h.hello.Host
	}
	return h.name
}

// isForOthers reports whether address, one end of a connection, may be valid for other hosts.
// Loopback, as used by tunnels, is not.
func isForOthers(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && !a.IsLoopback()
}

// share returns a host's part of a quota for n hosts.
func share(quota, n int) int {
	if quota == 0 {
		return 0
	}
	return max(1, quota/n)
}

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
				j.notef("%s: of the %d GPUs in %s=%s there are %d, up to the first that there is not", h.name, named,
					env.CUDADevices, list, len(units))
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
