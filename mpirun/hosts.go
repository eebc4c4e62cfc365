package mpirun

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"gompi/hostfile"
	"gompi/internal/route"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/cmdline"
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
func planInput(spec *cmdline.Spec, s allocation.Surroundings, warn func(string)) (*allocation.Allocation, []hostfile.Host, []plan.Program, error) {
	ask := allocation.Ask{ThisMachine: spec.Standalone, Hostfile: spec.Hostfile, Several: spec.Rendezvous.Endpoint != ""}
	for _, p := range spec.Programs {
		if f := spec.Policy.Rankfile; f != nil && p.Hosts == "" {
			p.Hosts = f.HostList()
		}
		ask.Lists = append(ask.Lists, p.Hosts)
	}
	a, shares, err := s.Find(ask, warn)
	if err != nil {
		return nil, nil, nil, err
	}
	programs := make([]plan.Program, len(spec.Programs))
	for i, p := range spec.Programs {
		programs[i] = plan.Program{Name: p.Name(), NP: p.NP, Hosts: shares[i]}
	}
	hosts := a.List.Hosts
	if spec.Nodes.Most > 0 {
		hosts, programs, err = pick(spec.Nodes, hosts, programs)
	}
	return a, hosts, programs, err
}

// pick returns the first hosts that programs may use, as many as r, of -nnodes, allows,
// and the programs with what they may use of those.
func pick(r cmdline.NodeRange, hosts []hostfile.Host, programs []plan.Program) ([]hostfile.Host, []plan.Program, error) {
	usable := make([]bool, len(hosts))
	for _, p := range programs {
		for i := range hosts {
			named := func(s hostfile.Share) bool { return s.Host == i }
			usable[i] = usable[i] || len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts, named)
		}
	}
	picked := 0
	hosts, programs, err := restrict(hosts, programs, func(host int) bool {
		if !usable[host] || picked == r.Most {
			return false
		}
		picked++
		return true
	})
	if err == nil && picked < r.Least {
		err = fmt.Errorf("hosts known: %d: want more in -hostfile or -H", picked)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("-nnodes %v: %w", r, err)
	}
	return hosts, programs, nil
}

// restrict returns the hosts that are to be kept, and the programs with what
// they may use of those. keep is asked about each host in turn.
func restrict(hosts []hostfile.Host, programs []plan.Program, keep func(host int) bool) ([]hostfile.Host, []plan.Program, error) {
	var kept []hostfile.Host
	at := map[int]int{}
	for i, h := range hosts {
		if keep(i) {
			at[i] = len(kept)
			kept = append(kept, h)
		}
	}
	programs = slices.Clone(programs)
	for i := range programs {
		p := &programs[i]
		var shares []hostfile.Share
		for _, s := range p.Hosts {
			if host, ok := at[s.Host]; ok {
				s.Host = host
				shares = append(shares, s)
			}
		}
		if len(shares) == 0 && len(p.Hosts) > 0 {
			return nil, nil, fmt.Errorf("no host is left for %q", p.Name)
		}
		p.Hosts = shares
	}
	return kept, programs, nil
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

// size makes the slots of each host what -nproc-per-node counts there.
func (j *job) size(hosts []plan.Host) error {
	for i := range hosts {
		p, err := j.meeting.count(hosts[i].Name, j.spec.PerHost)
		if err == nil {
			err = setSlots(&hosts[i], p, j.spec.Policy.GPUs, j.meeting != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setSlots makes the slots of one host what p counts there, GPUs by the number that
// each rank gets, and also a plain number if nodes may differ in that.
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
