package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gompi/cudaops/topo"
	"gompi/mpirun/internal/ctl"
)

// An advice is a fault to mend, or a hint.
type advice struct {
	bad    bool // jobs on these hosts fail
	who    string
	what   string
	remedy string
}

const (
	// clockTolerance is the largest difference of clocks at which logs of several hosts can still be
	// put in order.
	clockTolerance = time.Second
	// slowLogin is the longest time of a login without a complaint.
	slowLogin = 3 * time.Second
	// smallShm is the size of /dev/shm in containers by default.
	smallShm = 64 << 20
	// smallMemlock is too little for the buffers of RDMA and of GPUs.
	smallMemlock = 1 << 30
	// spareFiles is the files that a rank opens besides its connections.
	spareFiles = 64
	// slowPart: a connection below this part of the usual rate is slow.
	slowPart = 0.25
)

// advise returns the advice about the findings.
func advise(ps []*host, ports [2]int) []advice {
	var all []advice
	ranks := 0
	for _, p := range examined(ps) {
		ranks += max(p.entry.Slots, len(p.hello.Cores))
	}
	for _, p := range ps {
		if p.trouble != nil {
			all = append(all, cannotUse(p))
		}
		if p.findings != nil {
			all = append(all, ofHost(p, ranks)...)
			all = append(all, ofGPUs(p)...)
			if len(ps) > 1 && len(p.findings.Addresses) == 0 && p.findings.Trouble == "" {
				all = append(all, advice{true, p.entry.Name, "has no address that other hosts could reach",
					"give an interface an address that is neither loopback nor link-local; with -iface, name one that has it"})
			}
		}
	}
	all = append(all, ofPairs(ps, ports)...)
	all = append(all, ofAll(examined(ps))...)
	slices.SortStableFunc(all, func(a, b advice) int { // failures come first
		switch {
		case a.bad == b.bad:
			return 0
		case a.bad:
			return -1
		}
		return 1
	})
	return all
}

// cannotUse is the advice about a host without findings.
func cannotUse(p *host) advice {
	a := advice{bad: true, who: p.entry.Name, what: p.trouble.Error()}
	mentions := func(what string) bool { return strings.Contains(a.what, what) }
	switch {
	case mentions("Permission denied"):
		a.remedy = fmt.Sprintf("%q must work without asking: put your public key there, as ssh-copy-id does", p.byHand)
	case mentions("its key is not the one that is known"):
		a.remedy = "jobs do not run there until the key in known_hosts is the host's"
	case mentions("MaxStartups"):
		a.remedy = fmt.Sprintf("see the log of its sshd, and try by hand: %s", p.byHand)
	case mentions("Host key verification failed"):
		a.remedy = "log in once by hand, to accept its key: " + p.byHand
	case mentions("resolve"):
		a.remedy = "mend the name in the hostfile, or put it into /etc/hosts or ~/.ssh/config"
	case mentions("refused"):
		a.remedy = "start sshd there, or name its port: \"port=2222\" in the hostfile, or -rsh \"ssh -p 2222\""
	case mentions("timed out"), mentions("No route"), mentions("no agent after"):
		a.remedy = "is it up, and may this host connect to its port 22? (security group, firewall)"
	case mentions("version"):
		a.remedy = "install this gompirun there at the same path, or leave out -launch-agent, and it is sent"
	case mentions("not found"), mentions("No such file"):
		a.remedy = "name a gompirun there: -launch-agent /path/to/gompirun"
	default:
		a.remedy = "try by hand: " + p.byHand
	}
	return a
}

// ofHost is the advice about one host, in a job of that many ranks.
func ofHost(p *host, ranks int) []advice {
	f := p.findings
	var all []advice
	add := func(bad bool, what, remedy string) {
		all = append(all, advice{bad, p.entry.Name, what, remedy})
	}
	if f.Port == 0 {
		add(true, "ranks cannot listen: "+f.Trouble, "choose ports that are free there: -port-range LO-HI")
	} else if f.Trouble != "" {
		add(true, f.Trouble, "choose interfaces that it has: -iface LIST")
	}
	if need := int64(ranks + spareFiles); f.Files != ctl.Unlimited && f.Files < need {
		remedy := fmt.Sprintf("ulimit -n %d in what starts gompirun, or \"* soft nofile 65536\" in its /etc/security/limits.conf", need)
		if f.FilesHard != ctl.Unlimited && f.FilesHard < need {
			remedy = "\"* hard nofile 65536\" in its /etc/security/limits.conf"
		}
		add(true, fmt.Sprintf("%d files may be open, and a rank of a job of %d needs %d", f.Files, ranks, need), remedy)
	}
	if p.skew.Abs() > clockTolerance+p.blur {
		add(false, fmt.Sprintf("its clock is %+.1f s from the one here", p.skew.Seconds()),
			"run chrony or another NTP client there; until then times in its logs mislead")
	}
	if p.login > slowLogin {
		add(false, "logging in took "+ms(p.login),
			"\"UseDNS no\" and \"GSSAPIAuthentication no\" in its sshd_config, or a master connection: \"ControlMaster auto\"")
	}
	if f.Shm <= smallShm {
		add(false, fmt.Sprintf("/dev/shm has %s", size(f.Shm)),
			"gompi does not need it, but NCCL and PyTorch's data loaders do: docker run --shm-size=1g, or an emptyDir with medium: Memory")
	}
	if fast := len(f.RDMA) > 0 || p.gpus != nil && len(p.gpus.Devices) > 0; fast && f.Memlock != ctl.Unlimited &&
		f.Memlock < smallMemlock {
		add(false, fmt.Sprintf("%s may be locked in memory", size(f.Memlock)),
			"RDMA and GPU buffers are locked: \"* - memlock unlimited\" in its /etc/security/limits.conf, or docker run --ulimit memlock=-1")
	}
	if f.PtraceScope > 1 {
		add(false, fmt.Sprintf("ranks may not read each other's memory: kernel.yama.ptrace_scope is %d", f.PtraceScope),
			"long messages between ordinary memory may be faster then: sysctl kernel.yama.ptrace_scope=1 (from 3 it takes a reboot)")
	}
	if len(f.RDMA) > 0 && f.UCX == "" {
		add(false, "it has RDMA devices and no UCX", "Debian and Ubuntu: apt-get install libucx0")
	}
	if m := f.MilliCPUs; m != ctl.Unlimited && m < 1000*len(p.hello.Cores) {
		add(false, fmt.Sprintf("its control group grants %.4g of %d cores", float64(m)/1000, len(p.hello.Cores)),
			fmt.Sprintf("slots=%d in the hostfile, or a larger limit", max(1, m/1000)))
	}
	if free := f.MemoryFree; f.Memory > 0 && free < f.Memory/20 {
		add(false, fmt.Sprintf("only %s of memory are free", size(free)), "see what else runs there")
	}
	return all
}

// ofGPUs is the advice about a host's GPUs.
func ofGPUs(p *host) []advice {
	var all []advice
	if p.gpus == nil {
		return nil
	}
	for _, w := range p.gpus.Warnings {
		all = append(all, advice{false, p.entry.Name, w, "ranks use its other GPUs until then"})
	}
	if p.gpus.Trouble != "" && len(p.gpus.Devices) > 0 {
		what := "of its GPUs only what the kernel tells is known: " + p.gpus.Trouble
		all = append(all, advice{false, p.entry.Name, what,
			"put gompi-topo beside gompirun there, or see what it says: without it MIG slices, modes and links are not known"})
	}
	return all
}

// ofPairs is the advice about connections.
func ofPairs(ps []*host, ports [2]int) []advice {
	allow := "a firewall? Allow TCP between the hosts"
	if ports[0] == 0 {
		allow += "; with -port-range 47000-47999 only those ports need be open"
	} else {
		allow += fmt.Sprintf(", ports %d-%d", ports[0], ports[1])
	}
	var all []advice
	usual := usualRate(ps)
	for _, p := range ps {
		var unreached []string
		why := ""
		for k, r := range p.reached {
			switch {
			case r == nil:
			case r.Trouble != "":
				unreached = append(unreached, ps[k].entry.Name)
				why = r.Trouble
			default:
				all = append(all, ofConnection(p, ps[k], r, usual)...)
			}
		}
		if len(unreached) > 0 {
			remedy := allow
			if strings.Contains(why, "no route") || strings.Contains(why, "unreachable") ||
				strings.Contains(why, "invalid argument") {
				remedy = "it has no way there: see \"ip route get ADDRESS\" on it, or choose another network: -iface LIST"
			}
			all = append(all, advice{true, p.entry.Name,
				fmt.Sprintf("does not reach %s: %s", strings.Join(unreached, ", "), why), remedy})
		}
	}
	return all
}

// ofConnection is the advice about one working connection.
func ofConnection(p, to *host, r *ctl.Reached, usual float64) []advice {
	used := speedOf(p, r.Interface)
	best := ctl.Interface{}
	for _, i := range p.findings.Interfaces {
		if i.Megabits > best.Megabits && len(i.Addresses) > 0 {
			best = i
		}
	}
	switch {
	case used > 0 && best.Megabits > used:
		what := fmt.Sprintf("reaches %s through %s (%s), and has %s (%s)", to.entry.Name, r.Interface, speed(used),
			best.Name, speed(best.Megabits))
		return []advice{{false, p.entry.Name, what, "if the other hosts are on it: -iface " + best.Name}}
	case rate(r) < slowPart*usual:
		what := fmt.Sprintf("sends %.2f GB/s to %s; usual here are %.2f", rate(r), to.entry.Name, usual)
		return []advice{{false, p.entry.Name, what,
			"see what else uses the network, and at what speed its link is (ethtool)"}}
	}
	return nil
}

func speedOf(p *host, name string) int {
	for _, i := range p.findings.Interfaces {
		if i.Name == name {
			return i.Megabits
		}
	}
	return 0
}

// usualRate is the median rate of all connections, 0 if there are too few.
func usualRate(ps []*host) float64 {
	var rates []float64
	for _, p := range ps {
		for _, r := range p.reached {
			if r != nil && r.Trouble == "" {
				rates = append(rates, rate(r))
			}
		}
	}
	if len(rates) < 6 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// ofAll is the advice about hosts, all examined, that differ, or are the same.
func ofAll(ps []*host) []advice {
	var all []advice
	for i, p := range ps {
		for _, q := range ps[:i] {
			if sameHost(p, q) {
				what := fmt.Sprintf("is the same machine as %s", q.entry.Name)
				all = append(all, advice{false, p.entry.Name, what,
					"one line of the hostfile with all its slots lets its ranks share memory"})
				break
			}
		}
	}
	const remedy = "install one version on all, where the PATH of gompirun's shell leads"
	withTorch := slices.DeleteFunc(slices.Clone(ps), func(p *host) bool { return p.findings.Python.Torch == "" })
	return slices.Concat(all,
		ofVersions(ps, "GPU drivers", "install one version on all, at least the one that your CUDA needs",
			func(p *host) string { return cmp.Or(p.gpus, &topo.Host{}).Driver }),
		ofVersions(ps, "versions of torch", remedy,
			func(p *host) string { return cmp.Or(p.findings.Python.Torch, "none") }),
		ofVersions(withTorch, "versions of Python", remedy, func(p *host) string { return p.findings.Python.Version }),
		ofVersions(withTorch, "versions of gompi_torch", remedy,
			func(p *host) string { return cmp.Or(p.findings.Python.GompiTorch, "none") }))
}

// ofVersions is the advice about hosts with different versions of something; "" does not count.
func ofVersions(ps []*host, what, remedy string, of func(*host) string) []advice {
	on := map[string][]string{}
	for _, p := range ps {
		on[of(p)] = append(on[of(p)], p.entry.Name)
	}
	delete(on, "")
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(on)) {
		parts = append(parts, fmt.Sprintf("%s on %s", version, strings.Join(on[version], ", ")))
	}
	if len(parts) < 2 {
		return nil
	}
	return []advice{{false, what, "they differ: " + strings.Join(parts, "; "), remedy}}
}
