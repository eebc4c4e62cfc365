package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/hostfile"
)

// A Rankfile names the host and the cores of each rank of a job, as Open MPI's rankfiles do.
type Rankfile struct {
	name  string
	ranks []rankLine
}

// A rankLine is a line: rank 1=node02 slot=0:2-3. A relative host, +n1, is a position in the list
// of hosts.
type rankLine struct {
	rank int
	line int    // in the file
	host string // "" if relative
	nth  int    // in the list of hosts
	slot string // as written; "" for no binding
}

// ParseRankfile reads the file called name. Comments begin with #. Each rank from 0 on must have
// a line.
func ParseRankfile(name string, text []byte) (*Rankfile, error) {
	if err := hostfile.CheckText(text); err != nil {
		return nil, fmt.Errorf("%s: %w: want lines as in: rank 0=node01 slot=0-3", name, err)
	}
	f := &Rankfile{name: name}
	at := 0
	for line := range strings.Lines(string(text)) {
		at++
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		r, err := parseRankLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", name, at, strings.TrimSpace(line), err)
		}
		r.line = at
		f.ranks = append(f.ranks, r)
	}
	slices.SortFunc(f.ranks, func(a, b rankLine) int { return cmp.Or(a.rank-b.rank, a.line-b.line) })
	for i, r := range f.ranks {
		if r.rank != i {
			return nil, fmt.Errorf("%s:%d: rank %d: want each rank from 0 to %d once", name, r.line, r.rank,
				len(f.ranks)-1)
		}
	}
	if len(f.ranks) == 0 {
		return nil, fmt.Errorf("%s: want lines as in: rank 0=node01 slot=0-3", name)
	}
	return f, nil
}

func parseRankLine(line string) (rankLine, error) {
	bad := errors.New("want rank N=HOST slot=CORES, as in: rank 0=node01 slot=0-3")
	words := strings.Fields(strings.ReplaceAll(line, "=", " = "))
	// rank N = HOST [slot = CORES]
	if len(words) != 4 && len(words) != 7 || words[0] != "rank" || words[2] != "=" {
		return rankLine{}, bad
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || n >= MaxRanks {
		return rankLine{}, bad
	}
	r := rankLine{rank: n, host: words[3]}
	if nth, relative := strings.CutPrefix(r.host, "+n"); relative {
		if r.nth, err = strconv.Atoi(nth); err != nil || r.nth < 0 {
			return rankLine{}, bad
		}
		r.host = ""
	} else if r.host, err = hostName(r.host); err != nil {
		return rankLine{}, bad
	}
	if len(words) == 7 {
		if words[4] != "slot" || words[5] != "=" {
			return rankLine{}, bad
		}
		r.slot = words[6]
		if _, err := parseSlots(r.slot); err != nil {
			return rankLine{}, err
		}
	}
	return r, nil
}

// hostName returns the name of one host in a hostfile's form: an IPv6 address may have brackets.
func hostName(word string) (string, error) {
	list, err := hostfile.ParseList("rank", word)
	if err != nil {
		return "", err
	}
	if len(list.Hosts) != 1 || list.Hosts[0] != (hostfile.Host{Name: list.Hosts[0].Name, Slots: 1, Bare: true}) {
		return "", fmt.Errorf("%q: want the name of one host", word)
	}
	return list.Hosts[0].Name, nil
}

// A slotRange is a part of slot=: cores from first to last of a package, or of the host.
type slotRange struct{ pkg, first, last int }

// allOf stands for no package, and for all cores of a package.
const allOf = -1

// parseSlots reads 1-2, 0:0,1 (package 0, cores 0 and 1), 1:0-2 or 0:*.
func parseSlots(s string) ([]slotRange, error) {
	var out []slotRange
	pkg := allOf
	for part := range strings.SplitSeq(s, ",") {
		if p, cores, found := strings.Cut(part, ":"); found {
			n, err := strconv.ParseUint(p, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("slot=%s: want cores, as 0-3 or 0:0-1 (package 0) or 0:*", s)
			}
			pkg, part = int(n), cores
		}
		r := slotRange{pkg, allOf, allOf}
		if part != "*" {
			var ok bool
			if r.first, r.last, ok = parseRange(part); !ok {
				return nil, fmt.Errorf("slot=%s: want cores, as 0-3 or 0:0-1 (package 0) or 0:*", s)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// HostList returns the hosts of the file in the form of -H, or "" if some are positions in
// another list.
func (f *Rankfile) HostList() string {
	var names []string
	count := map[string]int{}
	for _, r := range f.ranks {
		if r.host == "" {
			return ""
		}
		if count[r.host]++; count[r.host] == 1 {
			names = append(names, r.host)
		}
	}
	for i, name := range names {
		names[i] = hostfile.Counted(name, strconv.Itoa(count[name]))
	}
	return strings.Join(names, ",")
}

// Rename sets the name of every host for which old is true.
func (f *Rankfile) Rename(old func(host string) bool, name string) {
	for i := range f.ranks {
		if r := &f.ranks[i]; r.host != "" && old(r.host) {
			r.host = name
		}
	}
}

// byRankfile places all ranks according to the file.
func (m *mapper) byRankfile() error {
	f, named := m.policy.Rankfile, hostfile.NewIndex()
	for i, h := range m.hosts {
		named.Add(h.Name, i)
	}
	for prog := range m.programs {
		p := &m.programs[prog]
		if p.NP == 0 {
			p.NP = len(f.ranks) - len(m.ranks)
		}
		if left := len(f.ranks) - len(m.ranks); p.NP > left || p.NP == 0 {
			return fmt.Errorf("%s-np %d: %s has lines for %s: want -np %d or less", programPrefix(m.programs, prog),
				p.NP, f.name, count(left, "rank"), left)
		}
		for range p.NP {
			r := f.ranks[len(m.ranks)]
			host, known := r.nth, r.nth < len(m.hosts)
			if r.host != "" {
				host, known = named.Find(r.host)
			}
			if !known {
				return fmt.Errorf("%s:%d: rank %d: no such host: want one of %s", f.name, r.line, r.rank,
					hostList(len(m.hosts), func(i int) string { return m.hosts[i].Name }))
			}
			m.ranks = append(m.ranks, Placement{Rank: len(m.ranks), Node: host, Prog: prog})
			m.load[host]++
			m.allowed[host] = true
		}
	}
	for i, h := range m.hosts {
		if m.policy.NoOversubscribe && m.load[i] > h.Slots {
			return fmt.Errorf("%s: %s on %s of %s: want no -nooversubscribe", f.name, count(m.load[i], "rank"),
				count(h.Slots, "slot"), h.Name)
		}
	}
	return nil
}

// bindByRankfile binds the ranks of a host to their cores in the file.
func (p *Plan) bindByRankfile(node int) error {
	host, f := &p.Hosts[node], p.Policy.Rankfile
	for _, rank := range p.Local[node] {
		r := f.ranks[rank]
		if r.slot == "" || len(host.Cores) == 0 {
			continue
		}
		ranges, err := parseSlots(r.slot)
		if err != nil {
			return err
		}
		var cpus []int
		for _, part := range ranges {
			cores := coresOf(host, part.pkg)
			if part.first == allOf {
				part.first, part.last = 0, len(cores)-1
			}
			if part.last >= len(cores) || len(cores) == 0 {
				what := fmt.Sprintf("%s has %s", host.Name, count(len(cores), "core"))
				if part.pkg != allOf {
					what += fmt.Sprintf(" in package %d", part.pkg)
				}
				return fmt.Errorf("%s:%d: rank %d: slot=%s: %s", f.name, r.line, rank, r.slot, what)
			}
			for _, threads := range cores[part.first : part.last+1] {
				cpus = append(cpus, threads...)
			}
		}
		slices.Sort(cpus)
		p.Ranks[rank].CPUs = slices.Compact(cpus)
	}
	return nil
}

// coresOf returns the usable cores of a package, or of the host.
func coresOf(h *Host, pkg int) [][]int {
	switch {
	case pkg == allOf, pkg == 0 && len(h.Packages) == 0:
		return h.Cores
	case pkg >= len(h.Packages):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.Cores),
		func(threads []int) bool { return !slices.Contains(h.Packages[pkg], threads[0]) })
}
