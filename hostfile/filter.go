package hostfile

import "fmt"

// A Share is a host of a list and how much of it may be used.
type Share struct {
	Host  int // position in List.Hosts
	Slots int // at most this many of its slots; 0: all of them
}

// Filter returns the hosts of l that only allows, in the order of l, as -H
// does when a hostfile says what there is. A host that only names without a
// count gives all its slots, unless l came from ParseList, too: there it is
// one slot in both. Exclusions of only apply; if only has nothing else, all
// other hosts are allowed. A host that l does not have is an error.
func (l List) Filter(only List) ([]Share, error) {
	byName, groups := l.groups()
	limit := make([]int, len(l.Hosts))
	allowed := make([]bool, len(l.Hosts))
	for _, h := range only.Hosts {
		found := false
		if g, ok := byName.find(h.Name); ok {
			for _, i := range groups[g] {
				if h.Port != 0 && h.Port != l.Hosts[i].Port {
					continue
				}
				found, allowed[i] = true, true
				if !h.Bare || l.inline {
					limit[i] = h.Slots
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("host %q is not among the %d known hosts: want one of them, as %q", h, len(l.Hosts), l.example())
		}
	}
	excluded := newIndex()
	for i, name := range only.Excluded {
		excluded.add(name, i)
	}
	var shares []Share
	for i, h := range l.Hosts {
		_, out := excluded.find(h.Name)
		if !out && (allowed[i] || len(only.Hosts) == 0) {
			shares = append(shares, Share{i, limit[i]})
		}
	}
	if len(shares) == 0 {
		return nil, fmt.Errorf("all of the %d known hosts are excluded", len(l.Hosts))
	}
	return shares, nil
}

// groups indexes the hosts of l by name; one name may be several hosts, at
// different ports.
func (l List) groups() (*index, [][]int) {
	byName := newIndex()
	var groups [][]int
	for i, h := range l.Hosts {
		g, ok := byName.find(h.Name)
		if !ok {
			g = len(groups)
			groups = append(groups, nil)
		}
		byName.add(h.Name, g)
		groups[g] = append(groups[g], i)
	}
	return byName, groups
}

func (l List) example() string {
	if len(l.Hosts) == 0 {
		return ""
	}
	return l.Hosts[0].Name
}
