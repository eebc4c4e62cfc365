package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// bind chooses the CPUs of a host's ranks.
func (p *Plan) bind(node int) error {
	if p.Policy.Rankfile != nil {
		return p.bindByRankfile(node)
	}
	ranks, host := p.Local[node], &p.Hosts[node]
	n, how := len(ranks), p.Policy.binding()
	if n == 0 || len(host.Cores) == 0 {
		return nil
	}
	units := p.Policy.units(host)
	if how == BindAuto && p.Policy.PE == 0 && n > len(units) {
		how = p.Policy.oversubscribed(n, len(units))
	}
	if how == BindNone {
		if p.Policy.CPUList != "" {
			for _, rank := range ranks {
				p.Ranks[rank].CPUs = allThreads(host.Cores)
			}
		}
		return nil
	}
	if how == BindGPU {
		p.bindNear(node)
		return nil
	}
	groups := group(units, domains(host, p.Policy.Order))
	members := p.Policy.deal(n, len(groups))
	for g, locals := range members {
		for j, local := range locals {
			p.Ranks[ranks[local]].CPUs = threads(p.Policy.pick(host, groups[g], how, j, len(locals)))
		}
	}
	return nil
}

// binding returns the binding, with the default for the order.
func (p *Policy) binding() BindTo {
	if p.BindTo == BindAuto && (p.Order == ByCore || p.Order == ByHWThread) {
		return BindCore
	}
	return p.BindTo
}

// oversubscribed returns the binding of n ranks, more than a host's units. If each unit gets the
// same number, each rank has one unit, because the scheduler moves ranks that wait for each other
// (four on two processors of an Intel Xeon: latency of 8 B 2.4 us, 1.5 bound, barrier 3.4 to 5.2
// and 3.3, an example of LAMMPS 2.0 s and 1.8, another beside a busy process 4.5 and 2.4).
// Otherwise the last units would have fewer ranks than they could serve, so ranks are not bound.
func (p *Policy) oversubscribed(n, units int) BindTo {
	if n%units == 0 && p.Order != ByL3 && p.Order != ByNuma && p.Order != ByPackage {
		return BindCore
	}
	return BindNone
}

// units returns the units of a host to bind to: cores, or hardware threads.
func (p *Policy) units(h *Host) []core {
	cores := byDomain(h)
	if p.BindTo != BindHWThread && (!p.HWThreads || p.BindTo == BindCore) {
		return cores
	}
	var single []core
	for _, c := range cores {
		for _, t := range c.threads {
			single = append(single, core{c.domain, []int{t}})
		}
	}
	return single
}

// deal returns the local ranks of each group: round-robin; or PerDomain consecutive ranks to each
// in turn; or, with RankByFill or Span, consecutive ranks in equal blocks.
func (p *Policy) deal(n, groups int) [][]int {
	members := make([][]int, groups)
	for i := range n {
		g := i % groups
		switch {
		case p.PerDomain > 0:
			g = i / p.PerDomain % groups
		case p.inBlocks():
			g = groupInRow(i, n, groups)
		}
		members[g] = append(members[g], i)
	}
	return members
}

// groupInRow returns the group of rank i where n ranks fill groups. The first groups have one
// rank more if the number does not divide.
func groupInRow(i, n, groups int) int {
	each, more := n/groups, n%groups
	if i < more*(each+1) {
		return i / (each + 1)
	}
	return more + (i-more*(each+1))/each
}

// wide reports whether ranks are bound to a part of a host that several ranks may share.
func (b BindTo) wide() bool { return b == BindL3 || b == BindNuma || b == BindPackage }

// parts returns the hardware threads of each part of h to which a wide binding binds.
func (b BindTo) parts(h *Host) [][]int {
	switch b {
	case BindL3:
		return h.L3
	case BindNuma:
		return h.Numa
	}
	return h.Packages
}

// pick returns the cores of rank j of the n ranks that share a group of a host.
func (p *Policy) pick(h *Host, group []core, how BindTo, j, n int) []core {
	c := len(group)
	// The first core of rank j's fair share, which ends before the first core of rank j+1.
	from, to := j*c/n, (j+1)*c/n
	switch {
	case how.wide():
		return sameDomain(group, group[from], how.parts(h))
	case p.PE > 0:
		return run(group, j*p.PE, p.PE)
	case how == BindCore, how == BindHWThread:
		return run(group, j, 1)
	case n > c: // more ranks than cores in this group, but not on the host
		return group
	}
	return group[from:to]
}

// run returns n cores from position i on, wrapping around, each at most once.
func run(group []core, i, n int) []core {
	var out []core
	for k := range min(n, len(group)) {
		out = append(out, group[(i+k)%len(group)])
	}
	return out
}

// domains returns the hardware threads of each cache, NUMA node or package over which order deals
// ranks, if ranks may use any of them. With fewer than two the result is a single nil part: the
// host.
func domains(h *Host, order Order) [][]int {
	var parts [][]int
	switch order {
	case ByL3:
		parts = h.L3
	case ByNuma:
		parts = h.Numa
	case ByPackage:
		parts = h.Packages
	}
	var usable [][]int
	all := allThreads(h.Cores)
	for _, part := range parts {
		if slices.ContainsFunc(part, func(t int) bool { _, ok := slices.BinarySearch(all, t); return ok }) {
			usable = append(usable, part)
		}
	}
	if len(usable) < 2 {
		return [][]int{nil}
	}
	return usable
}

// group returns the cores of each part. Cores in no part go to the first.
func group(cores []core, parts [][]int) [][]core {
	groups := make([][]core, len(parts))
	at := index(parts)
	for _, c := range cores {
		g := at[c.threads[0]]
		groups[g] = append(groups[g], c)
	}
	// Every part has a usable thread, perhaps as the second of a core whose first is in another
	// part.
	for g := range groups {
		if len(groups[g]) == 0 {
			groups[g] = cores
		}
	}
	return groups
}

// sameDomain returns the cores of group in c's domain.
func sameDomain(group []core, c core, parts [][]int) []core {
	at := index(parts)
	return slices.DeleteFunc(slices.Clone(group), func(o core) bool { return at[o.threads[0]] != at[c.threads[0]] })
}

// index returns the part of each hardware thread.
func index(parts [][]int) map[int]int {
	at := make(map[int]int)
	for i, part := range parts {
		for _, t := range part {
			at[t] = i
		}
	}
	return at
}

// unbound names the hosts where the requested binding is impossible.
func (p *Plan) unbound() string {
	asked := "-bind-to " + p.Policy.BindTo.String()
	switch how := p.Policy.binding(); {
	case p.Policy.CPUList != "":
		asked = "-cpu-list " + p.Policy.CPUList
	case how == BindNone, how == BindAuto && p.Policy.PE == 0:
		return ""
	case p.Policy.BindTo == BindAuto:
		asked = "-map-by " + p.Policy.mapText()
	}
	return about(asked+" binds nothing where the cores are not known: ", hostList(len(p.Hosts), func(i int) string {
		if len(p.Local[i]) == 0 || len(p.Hosts[i].Cores) > 0 {
			return ""
		}
		return p.Hosts[i].Name
	}), "")
}

// mapText spells the part of -map-by that implies a binding.
func (p *Policy) mapText() string {
	if p.PE > 0 {
		return fmt.Sprintf("%s:PE=%d", p.Order, p.PE)
	}
	return p.Order.String()
}

// doubled names the hosts where ranks share a core although the policy gives each its own.
func (p *Plan) doubled() string {
	how, each := p.Policy.binding(), max(1, p.Policy.PE)
	if how == BindNone || how == BindAuto && p.Policy.PE == 0 || how.wide() || how == BindGPU {
		return ""
	}
	what := "core"
	if how == BindHWThread || p.Policy.HWThreads && how != BindCore {
		what = "hardware thread"
	}
	names := hostList(len(p.Hosts), func(i int) string {
		h, n := &p.Hosts[i], len(p.Local[i])
		if n == 0 || len(h.Cores) == 0 || !p.sharesUnits(i) {
			return ""
		}
		wanted := ""
		if each > 1 {
			wanted = fmt.Sprintf(" that want %d each", each)
		}
		return fmt.Sprintf("%s has %s%s on %s", h.Name, count(n, "rank"), wanted, count(len(p.Policy.units(h)), what))
	})
	asked := "-bind-to " + how.String()
	if p.Policy.BindTo == BindAuto {
		asked = "-map-by " + p.Policy.mapText()
	}
	return about(asked+" makes ranks take turns, which -bind-to none does not: ", names, "")
}

// sharesUnits reports whether two ranks of a host are bound to the same CPU.
func (p *Plan) sharesUnits(node int) bool {
	seen := map[int]bool{}
	for _, rank := range p.Local[node] {
		for _, cpu := range p.Ranks[rank].CPUs {
			if seen[cpu] {
				return true
			}
			seen[cpu] = true
		}
	}
	return false
}

// A core is a core of a host, with its memory domain.
type core struct {
	domain  int
	threads []int
}

// byDomain returns the cores of h with the cores of each memory domain together, so that few
// shares span two.
func byDomain(h *Host) []core {
	domainOf := index(h.Numa)
	cores := make([]core, 0, len(h.Cores))
	for _, t := range h.Cores {
		if len(t) > 0 {
			t = slices.Sorted(slices.Values(t))
			cores = append(cores, core{domainOf[t[0]], t})
		}
	}
	slices.SortStableFunc(cores, func(a, b core) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), slices.Compare(a.threads, b.threads))
	})
	return cores
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
