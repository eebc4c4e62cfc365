package boot

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A ticket is what a rank needs to reach rank 0, and to prove that it belongs to
// its job. It has the characters, and the length, that a PMI server takes as a
// value.
type ticket struct {
	secret [32]byte
	port   int
	addrs  []netip.Addr
}

const (
	ticketWord = "gompi1"
	maxAddrs   = 16
)

func (t *ticket) String() string {
	addrs := make([]string, len(t.addrs))
	for i, a := range t.addrs {
		addrs[i] = a.String()
	}
	return strings.Join([]string{
		ticketWord, base64.RawURLEncoding.EncodeToString(t.secret[:]), strconv.Itoa(t.port), strings.Join(addrs, ","),
	}, "/")
}

// parseTicket reads what String wrote.
func parseTicket(s string) (*ticket, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 || parts[0] != ticketWord {
		return nil, fmt.Errorf("%.40q tells no way to rank 0: want %s/SECRET/PORT/ADDRESSES", s, ticketWord)
	}
	t := &ticket{}
	secret, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(secret) != len(t.secret) {
		return nil, fmt.Errorf("the way to rank 0 has no secret of %d bytes", len(t.secret))
	}
	copy(t.secret[:], secret)
	if t.port, err = strconv.Atoi(parts[2]); err != nil || t.port < 1 || t.port > 65535 {
		return nil, fmt.Errorf("port %.20q of rank 0: want 1 to 65535", parts[2])
	}
	addrs := strings.Split(parts[3], ",")
	if len(addrs) > maxAddrs {
		return nil, fmt.Errorf("%d addresses of rank 0: want at most %d", len(addrs), maxAddrs)
	}
	for _, a := range addrs {
		addr, err := netip.ParseAddr(a)
		if err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("address %.60q of rank 0: want an IP address", a)
		}
		t.addrs = append(t.addrs, addr)
	}
	return t, nil
}

// endpoints returns where rank 0 may be reached.
func (t *ticket) endpoints() []string {
	list := make([]string, len(t.addrs))
	for i, a := range t.addrs {
		list[i] = netip.AddrPortFrom(a, uint16(t.port)).String()
	}
	return list
}

// ownAddrs returns this host's addresses, loopback first: who connects tries all
// of them, and believes only whom it has checked.
func ownAddrs(local bool) []netip.Addr {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	list := []netip.Addr{loopback}
	if local {
		return list
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return list // of this host alone can it be reached
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || len(list) == maxAddrs {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap().IsGlobalUnicast() {
			list = append(list, ip.Unmap())
		}
	}
	return list
}
