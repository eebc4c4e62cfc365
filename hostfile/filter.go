package hostfile

import (
	"fmt"
	"strings"
)

// A Share is a host of a list, with the usable part.
type Share struct {
	Host  int // position in List.Hosts
	Slots int // at most this many of its slots; 0: all of them
}

// Filter returns the hosts of l that only allows, in the order of l, as -H does for a hostfile. A
// host that only names without a count gives all its slots, unless l came from ParseList, too:
// there it is one slot in both. Exclusions of only apply; if only has nothing else, all other
// hosts are allowed. A host that l lacks is an error.
func (l List) Filter(only List) ([]Share, error) {
	byName, groups := l.groups()
	limit := make([]int, len(l.Hosts))
	allowed := make([]bool, len(l.Hosts))
	for _, h := range only.Hosts {
		found := false
		if g, ok := byName.Find(h.Name); ok {
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
			return nil, fmt.Errorf("host %q is not among the %d known hosts: want one of them, as %q", h, len(l.Hosts),
				l.example())
		}
	}
	excluded := NewIndex()
	for i, name := range only.Excluded {
		excluded.Add(name, i)
	}
	var shares []Share
	for i, h := range l.Hosts {
		_, out := excluded.Find(h.Name)
		if !out && (allowed[i] || len(only.Hosts) == 0) {
			shares = append(shares, Share{i, limit[i]})
		}
	}
	if len(shares) == 0 {
		return nil, fmt.Errorf("all of the %d known hosts are excluded", len(l.Hosts))
	}
	return shares, nil
}

// Within returns the part of l that is in known, and the names of the other hosts.
func (l List) Within(known List) (List, []string) {
	byName, _ := known.groups()
	inside := l
	inside.Hosts = nil
	var outside []string
	for _, h := range l.Hosts {
		if _, ok := byName.Find(h.Name); ok {
			inside.Hosts = append(inside.Hosts, h)
		} else {
			outside = append(outside, h.Name)
		}
	}
	return inside, outside
}

// Choose returns the hosts of l that only allows, by the rules of Filter, with their reduced
// slots.
func (l List) Choose(only List) (List, error) {
	shares, err := l.Filter(only)
	if err != nil {
		return List{}, err
	}
	out := l
	out.Hosts = nil
	for _, s := range shares {
		h := l.Hosts[s.Host]
		if s.Slots > 0 && (h.Slots == 0 || s.Slots < h.Slots) {
			h.Slots, h.Bare = s.Slots, false
		}
		out.Hosts = append(out.Hosts, h)
	}
	return out, nil
}

// Names returns the names of the hosts, or, if there are many, of the first ones.
func (l List) Names() string {
	const most = 8
	var names []string
	for _, h := range l.Hosts[:min(most, len(l.Hosts))] {
		names = append(names, h.Name)
	}
	if extra := len(l.Hosts) - most; extra > 0 {
		names = append(names, fmt.Sprintf("and %d more", extra))
	}
	return strings.Join(names, ", ")
}

// groups indexes the hosts of l by name; one name may be several hosts, at different ports.
func (l List) groups() (*Index, [][]int) {
	byName := NewIndex()
	var groups [][]int
	for i, h := range l.Hosts {
		g, ok := byName.Find(h.Name)
		if !ok {
			g = len(groups)
			groups = append(groups, nil)
		}
		byName.Add(h.Name, g)
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
