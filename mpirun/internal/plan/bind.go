package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// bind chooses the CPUs of the ranks of one host.
func (p *Plan) bind(node int) {
	ranks, host := p.Local[node], &p.Hosts[node]
	n, c := len(ranks), len(host.Cores)
	how := p.Policy.BindTo
	if n == 0 || c == 0 || how == BindNone || how == BindAuto && n > c {
		return
	}
	cores := byDomain(host)
	for i, rank := range ranks {
		// The first core of rank i's fair share; with it goes everything up
		// to the share of rank i+1.
		from, to := i*c/n, (i+1)*c/n
		switch how {
		case BindCore:
			from, to = i%c, i%c+1
		case BindNuma:
			from, to = domainSpan(cores, from)
		}
		p.Ranks[rank].CPUs = threads(cores[from:to])
	}
}

// unbound names the hosts where the binding asked for cannot be had.
func (p *Plan) unbound() string {
	if p.Policy.BindTo != BindCore && p.Policy.BindTo != BindNuma {
		return ""
	}
	names := hostList(len(p.Hosts), func(i int) string {
		if len(p.Local[i]) == 0 || len(p.Hosts[i].Cores) > 0 {
			return ""
		}
		return p.Hosts[i].Name
	})
	if names == "" {
		return ""
	}
	return fmt.Sprintf("-bind-to %s binds nothing where the cores are not known: %s", p.Policy.BindTo, names)
}

// doubled names the hosts where a core has several ranks bound to it.
func (p *Plan) doubled() string {
	if p.Policy.BindTo != BindCore {
		return ""
	}
	names := hostList(len(p.Hosts), func(i int) string {
		n, c := len(p.Local[i]), len(p.Hosts[i].Cores)
		if c == 0 || n <= c {
			return ""
		}
		return fmt.Sprintf("%s has %s on %s", p.Hosts[i].Name, count(n, "rank"), count(c, "core"))
	})
	if names == "" {
		return ""
	}
	return "-bind-to core makes ranks take turns, which -bind-to none does not: " + names
}

// A core is one core of a host with the memory domain it is in.
type core struct {
	domain  int
	threads []int
}

// byDomain returns the cores of h so that those of one memory domain are
// neighbours: a share then seldom spans two.
func byDomain(h *Host) []core {
	domainOf := make(map[int]int)
	for d, cpus := range h.Numa {
		for _, cpu := range cpus {
			domainOf[cpu] = d
		}
	}
	cores := make([]core, 0, len(h.Cores))
	for _, t := range h.Cores {
		t = slices.Sorted(slices.Values(t))
		c := core{threads: t}
		if len(t) > 0 {
			c.domain = domainOf[t[0]]
		}
		cores = append(cores, c)
	}
	slices.SortStableFunc(cores, func(a, b core) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), slices.Compare(a.threads, b.threads))
	})
	return cores
}

// domainSpan returns the range of cores in the domain of cores[i].
func domainSpan(cores []core, i int) (from, to int) {
	d := cores[i].domain
	from = slices.IndexFunc(cores, func(c core) bool { return c.domain == d })
	to = from
	for to < len(cores) && cores[to].domain == d {
		to++
	}
	return from, to
}

// threads returns the hardware threads of cores, ascending.
func threads(cores []core) []int {
	var cpus []int
	for _, c := range cores {
		cpus = append(cpus, c.threads...)
	}
	slices.Sort(cpus)
	return cpus
}
