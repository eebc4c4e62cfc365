package sockets

import (
	"net"
	"net/netip"
	"testing"
)

func TestFilter(t *testing.T) {
	for _, tc := range []struct {
		filter, name, addr string
		want               bool
	}{
		{"", "eth0", "10.0.0.1", true},
		{"eth0", "eth0", "10.0.0.1", true},
		{"eth0", "eth1", "10.0.0.1", false},
		{"eth0,ib0", "ib0", "10.0.0.1", true},
		{"10.0.0.0/8", "eth1", "10.9.0.1", true},
		{"10.0.0.0/8", "eth1", "11.9.0.1", false},
		{"10.0.0.1", "eth1", "10.0.0.1", true},
		{"10.0.0.1", "eth1", "10.0.0.2", false},
		{"^docker0", "docker0", "172.17.0.1", false},
		{"^docker0", "eth0", "10.0.0.1", true},
		{"eth0, ^10.0.0.0/8", "eth0", "10.0.0.1", false},
		{"eth0,^10.0.0.0/8", "eth0", "192.168.0.1", true},
		{"fd00::/8", "eth0", "fd00::1", true},
		{"fd00::/8", "eth0", "10.0.0.1", false},
	} {
		f, err := ParseFilter(tc.filter)
		if err != nil {
			t.Errorf("ParseFilter(%q): %v", tc.filter, err)
			continue
		}
		if got := f.Admits(tc.name, netip.MustParseAddr(tc.addr)); got != tc.want {
			t.Errorf("%q admits %s of %s: %v, want %v", tc.filter, tc.addr, tc.name, got, tc.want)
		}
	}
	for _, s := range []string{"10.0.0.0/33", "^", "^^eth0", "a b", "10.0.0.0/8/8", "1:2"} {
		if _, err := ParseFilter(s); err == nil {
			t.Errorf("ParseFilter(%q) succeeded", s)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("eth0,10.0.0.0/8,^docker0")
	f.Fuzz(func(t *testing.T, s string) {
		if flt, err := ParseFilter(s); err == nil {
			flt.Admits("eth0", netip.MustParseAddr("10.0.0.1"))
		}
	})
}

// The address of a socket on a link has the interface as its zone. The address of the interface has
// none.
func TestInterfaceOfAnAddressWithAZone(t *testing.T) {
	ifs, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, i := range ifs {
		addrs, _ := i.Addrs()
		for _, own := range addrs {
			p, err := netip.ParsePrefix(own.String())
			if err != nil || !p.Addr().IsLinkLocalUnicast() || !p.Addr().Is6() {
				continue
			}
			found++
			if got := InterfaceOf(p.Addr().WithZone(i.Name)); got != i.Name {
				t.Errorf("%s%%%s is of interface %q", p.Addr(), i.Name, got)
			}
		}
	}
	if found == 0 {
		t.Skip("no interface has an IPv6 link-local address")
	}
}
