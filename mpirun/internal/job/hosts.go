package job

import (
	"fmt"
	"net/netip"
	"slices"

	"gompi/hostfile"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/cmdline"
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
	gpus, cpus := len(host.GPUs), 0
	for _, core := range host.Cores {
		cpus += len(core)
	}
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
