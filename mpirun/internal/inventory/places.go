package inventory

import (
	"fmt"
	"net/netip"
	"slices"

	"gompi/hostfile"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/plan"
)

// PlanHosts adds each agent's findings to its host. Agents on one machine, under several names,
// share its cores: each host gets a part, if there is a core for each.
func PlanHosts(hosts []hostfile.Host, found []*Entry) []plan.Host {
	sharers := map[string]int{}
	for _, f := range found {
		sharers[f.Hello.Machine]++
	}
	taken := map[string]int{}
	out := make([]plan.Host, len(hosts))
	for i, h := range hosts {
		hello := found[i].Hello
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

// SetSlots sets the slots of one host by p: its GPUs divided by a rank's GPUs, its cores, or a
// number, which may differ from node to node.
func SetSlots(host *plan.Host, p cmdline.PerHost, each int, differ bool) error {
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

// MasterAddr returns the address by which all nodes reach the node of rank 0: no name, because
// hosts need not resolve the names that Slurm or the user has for each other. For a node on
// another host that is the address by which the launcher has reached the node. For the launcher's
// own host that is the launcher's address in the connection to another host. Otherwise the node's
// address nearest to the other nodes' serves, or the name of a node without addresses.
func MasterAddr(nodes []*Entry, first int) string {
	h := nodes[first]
	if len(nodes) == 1 || !slices.ContainsFunc(nodes, func(n *Entry) bool { return !n.sharesLoopback() }) {
		return sockets.Loopback().String()
	}
	if !h.sharesLoopback() && isForOthers(h.Hello.Address) {
		return h.Hello.Address
	}
	var others []netip.Prefix
	for _, other := range nodes {
		if h.sharesLoopback() && !other.sharesLoopback() && other.relay() < 0 && isForOthers(other.Hello.Launcher) {
			return other.Hello.Launcher
		}
		if other != h {
			others = append(others, other.Hello.Addresses...)
		}
	}
	if near := sockets.Endpoints(h.Hello.Addresses, others, 0); len(near) > 0 {
		return near[0].Addr().String()
	}
	if h.Started.Here {
		return h.Hello.Host
	}
	return h.Host
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
