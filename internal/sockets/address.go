package sockets

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Ranks of a host publish its addresses, and other ranks try them in an order. gompirun doctor uses
// the same functions, and so predicts the behavior of ranks.

// MaxAddresses bounds the published addresses of a host.
const MaxAddresses = 16

// A Filter chooses the interfaces whose addresses are published.
type Filter struct {
	include, exclude []pattern
}

// A pattern matches an interface by name or an address by subnet.
type pattern struct {
	name   string
	subnet netip.Prefix
}

// ParseFilter reads a comma-separated list of interface names, addresses and subnets. An item after
// ^ excludes. Without any including item, everything is chosen that is not excluded.
func ParseFilter(s string) (Filter, error) {
	var f Filter
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		bare, not := strings.CutPrefix(item, "^")
		p, err := parsePattern(bare)
		if err != nil {
			return Filter{}, fmt.Errorf("interfaces %q: %q: %w", s, item, err)
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

// Admits reports whether address a of the named interface is chosen.
func (f Filter) Admits(name string, a netip.Addr) bool {
	match := func(p pattern) bool { return p.match(name, a) }
	if slices.ContainsFunc(f.exclude, match) {
		return false
	}
	return len(f.include) == 0 || slices.ContainsFunc(f.include, match)
}

// LocalAddresses returns the addresses of this host that f admits, with their subnets. Link-local addresses
// are left out: other hosts cannot use them without further knowledge.
func LocalAddresses(f Filter) ([]netip.Prefix, error) {
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
			if s, ok := usable(a); ok && f.Admits(i.Name, s.Addr()) {
				list = append(list, s)
			}
		}
	}
	return list[:min(len(list), MaxAddresses)], nil
}

// InterfaceOf returns the name of this host's interface with an address, "" for none or loopback.
// Addresses of interfaces have no zone; addresses of sockets may.
func InterfaceOf(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	ifs, _ := net.Interfaces()
	for _, i := range ifs {
		addrs, _ := i.Addrs()
		for _, own := range addrs {
			if p, err := netip.ParsePrefix(own.String()); err == nil && p.Addr() == a && i.Flags&net.FlagLoopback == 0 {
				return i.Name
			}
		}
	}
	return ""
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

// Endpoints returns the endpoints of a rank that listens on port, in the order of attempts. theirs are
// its published addresses, with their subnets, not masked; own are the caller's. Addresses in a
// subnet of the caller come first, longest prefix first. An address that the caller has, too, comes
// last: the address belongs to a bridge that every host has, so that another process answers there,
// or to this host under another name.
func Endpoints(theirs, own []netip.Prefix, port uint16) []netip.AddrPort {
	theirs = slices.Clone(theirs)
	slices.SortStableFunc(theirs, func(a, b netip.Prefix) int {
		return worth(b, own) - worth(a, own)
	})
	list := make([]netip.AddrPort, len(theirs))
	for i, s := range theirs {
		list[i] = netip.AddrPortFrom(s.Addr(), port)
	}
	return list
}

// Network names the network that this process sees. No other host, and no other network namespace
// of this host, has the same name. Loopback addresses are useful only within a network. If the
// system has no such name, the host's name replaces it.
func Network() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil {
		var space string
		if space, err = os.Readlink("/proc/self/ns/net"); err == nil {
			return string(bytes.TrimSpace(boot)) + " " + space
		}
	}
	name, _ := os.Hostname() // "" is a name, too
	return name
}

// Loopback returns the loopback address of this host: ::1 if there is none of IPv4.
func Loopback() netip.Addr {
	v4, v6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	all, _ := net.InterfaceAddrs() // without any, the later error with v4 tells the cause
	only6 := false
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsLoopback() {
			if n.IP.To4() != nil {
				return v4
			}
			only6 = true
		}
	}
	if only6 {
		return v6
	}
	return v4
}

// worth returns the length of the longest prefix that s shares with one of own as the same subnet,
// 0 if none, and -1 if it is one of them.
func worth(s netip.Prefix, own []netip.Prefix) int {
	best := 0
	for _, o := range own {
		switch {
		case o.Addr() == s.Addr():
			return -1
		case o.Bits() == s.Bits() && o.Masked() == s.Masked():
			best = max(best, s.Bits())
		}
	}
	return best
}
