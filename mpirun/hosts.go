package mpirun

import (
	"io"
	"net/netip"
	"os"
	"slices"

	"gompi/hostfile"
	"gompi/internal/route"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/remote"
)

// here is this machine, as the search for hosts sees it.
func here() allocation.Surroundings {
	return allocation.Surroundings{Getenv: os.Getenv, Read: readFile, IsLocal: remote.IsLocal}
}

func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// planInput returns where the hosts of a job come from, its hosts, and its
// programs with the hosts that each may use. What the hosts are made of is not
// known yet. warn is told what the lists were understood to mean.
func planInput(o *options, s allocation.Surroundings, warn func(string)) (*allocation.Allocation, []hostfile.Host, []plan.Program, error) {
	ask := allocation.Ask{ThisMachine: o.standalone, Hostfile: o.hostfile, Several: o.endpoint != ""}
	for _, p := range o.programs {
		if f := o.policy.Rankfile; f != nil && p.hosts == "" {
			p.hosts = f.HostList()
		}
		ask.Lists = append(ask.Lists, p.hosts)
	}
	a, shares, err := s.Find(ask, warn)
	if err != nil {
		return nil, nil, nil, err
	}
	programs := make([]plan.Program, len(o.programs))
	for i, p := range o.programs {
		programs[i] = plan.Program{Argv: p.argv, NP: p.np, Wdir: p.wdir, Env: p.env, Hosts: shares[i]}
	}
	hosts := a.List.Hosts
	if o.nodes.most > 0 {
		hosts, programs, err = o.nodes.pick(hosts, programs)
	}
	return a, hosts, programs, err
}

// planHosts adds to each host what its agent found. Agents that run on one
// machine, under several names, share its cores: each plans with its own part,
// if there is a core for each of them.
func planHosts(hosts []hostfile.Host, links []*link) []plan.Host {
	sharers := map[string]int{}
	for _, l := range links {
		sharers[l.hello.Machine]++
	}
	taken := map[string]int{}
	out := make([]plan.Host, len(hosts))
	for i, h := range hosts {
		hello := links[i].hello
		k, n := taken[hello.Machine], sharers[hello.Machine]
		taken[hello.Machine]++
		cores := hello.Cores
		if c := len(cores); n <= c {
			cores = cores[k*c/n : (k+1)*c/n]
		}
		out[i] = plan.Host{
			Name: h.Name, Via: links[i].reached(), Slots: h.Slots, MaxSlots: h.MaxSlots,
			Cores: cores, Numa: hello.Numa, Packages: hello.Packages, Quota: share(hello.Quota, n),
		}
	}
	return out
}

// masterAddr returns an address of the node of rank 0 by which all nodes reach
// it, and not a name: hosts need not resolve the names that Slurm or the user has
// for each other. It is the one by which the launcher reached it, or, if it is the
// launcher's own host, the one from which it reached another. Where neither is
// known it is that of its addresses which is nearest to the others', and its
// name if it has none.
func masterAddr(nodes []*link, first int) string {
	l := nodes[first]
	if len(nodes) == 1 || !slices.ContainsFunc(nodes, func(n *link) bool { return !n.sharesLoopback() }) {
		return "127.0.0.1"
	}
	if !l.sharesLoopback() && l.hello.Address != "" {
		return l.hello.Address
	}
	var others []netip.Prefix
	for _, other := range nodes {
		if l.sharesLoopback() && !other.sharesLoopback() && other.hello.Launcher != "" {
			return other.hello.Launcher
		}
		if other != l {
			others = append(others, other.hello.Addresses...)
		}
	}
	if near := route.Order(l.hello.Addresses, others, 0); len(near) > 0 {
		return near[0].Addr().String()
	}
	if l.agent.Here() {
		return l.hello.Host
	}
	return l.host
}

// sharesLoopback reports whether the agent has the launcher's loopback interface:
// the launcher started it, or was seen to come from there.
func (l *link) sharesLoopback() bool {
	from, err := netip.ParseAddr(l.hello.Launcher)
	return l.agent.Here() || err == nil && from.IsLoopback()
}

// workingDir returns the working directory by the name that the user has for
// it, which other hosts may have too.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// share returns the part of a quota that each of n gets, where there is one.
func share(quota, n int) int {
	if quota == 0 {
		return 0
	}
	return max(1, quota/n)
}
