package mpirun

import (
	"cmp"
	"io"
	"os"

	"gompi/hostfile"
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
// it: the one by which the launcher did, or, if it is the launcher's own host,
// the one from which it reached another. Where neither is known it is the name
// that the user has for the host.
func masterAddr(nodes []*link, first int) string {
	l := nodes[first]
	if !l.agent.Here() {
		return cmp.Or(l.hello.Address, l.host)
	}
	alone := true
	for _, other := range nodes {
		if other.hello.Launcher != "" && !other.agent.Here() {
			return other.hello.Launcher
		}
		alone = alone && other.agent.Here()
	}
	if alone {
		return "127.0.0.1"
	}
	return l.hello.Host
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
