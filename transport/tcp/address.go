package tcp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// A filter chooses the interfaces whose addresses are published.
type filter struct {
	include, exclude []pattern
}

// A pattern matches an interface by name or an address by subnet.
type pattern struct {
	name   string
	subnet netip.Prefix
}

// parseFilter reads a comma-separated list of interface names, addresses and
// subnets. With ^ before it, an item excludes. Without any including item, all
// that is not excluded is chosen.
func parseFilter(s string) (filter, error) {
	var f filter
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		bare, not := strings.CutPrefix(item, "^")
		p, err := parsePattern(bare)
		if err != nil {
			return filter{}, fmt.Errorf("interfaces %q: %q: %w", s, item, err)
		}
		if not {
			f.exclude = append(f.exclude, p)
		} else {
			f.include = append(f.include, p)
		}
	}
	return f, nil
}

func parsePattern(s string) (pattern, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return pattern{subnet: netip.PrefixFrom(a, a.BitLen())}, nil
	}
	if strings.Contains(s, "/") {
		n, err := netip.ParsePrefix(s)
		if err != nil {
			return pattern{}, fmt.Errorf("want a subnet like 10.0.0.0/8")
		}
		return pattern{subnet: n}, nil
	}
	if s == "" || strings.ContainsAny(s, " ^:") {
		return pattern{}, fmt.Errorf("want the name of an interface, an address or a subnet")
	}
	return pattern{name: s}, nil
}

func (p pattern) match(name string, a netip.Addr) bool {
	if p.name != "" {
		return p.name == name
	}
	return p.subnet.Contains(a)
}

// admits reports whether address a of the named interface is chosen.
func (f filter) admits(name string, a netip.Addr) bool {
	match := func(p pattern) bool { return p.match(name, a) }
	if slices.ContainsFunc(f.exclude, match) {
		return false
	}
	return len(f.include) == 0 || slices.ContainsFunc(f.include, match)
}

// localSubnets returns the addresses of this host that f admits, with their
// subnets. Link-local addresses mean nothing to other hosts without more
// knowledge and are left out.
func localSubnets(f filter) ([]netip.Prefix, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	var list []netip.Prefix
	for _, i := range ifs {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("cannot list the addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if s, ok := usable(a); ok && f.admits(i.Name, s.Addr()) {
				list = append(list, s)
			}
		}
	}
	if len(list) > maxAddresses {
		list = list[:maxAddresses]
	}
	return list, nil
}

func usable(a net.Addr) (netip.Prefix, bool) {
	n, ok := a.(*net.IPNet)
	if !ok {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap()
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr, bits), addr.IsGlobalUnicast()
}
