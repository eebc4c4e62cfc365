package boot

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"gompi/internal/route"
)

// A contact is what a rank needs to reach rank 0, and to prove that it belongs to
// its job. It has the characters, and the length, that a PMI server takes as a
// value.
type contact struct {
	secret  [32]byte
	network string // in which rank 0 is reached by loopback, and nowhere else
	port    int
	addrs   []netip.Addr
}

const (
	contactWord = "gompi2"
	maxAddrs    = 16
)

func (t *contact) String() string {
	addrs := make([]string, len(t.addrs))
	for i, a := range t.addrs {
		addrs[i] = a.String()
	}
	return strings.Join([]string{
		contactWord, base64.RawURLEncoding.EncodeToString(t.secret[:]), t.network, strconv.Itoa(t.port), strings.Join(addrs, ","),
	}, "/")
}

// parseTicket reads what String wrote.
func parseContact(s string) (*contact, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 || parts[0] != contactWord {
		return nil, fmt.Errorf("%.20q... does not lead to rank 0: want %s/SECRET/NETWORK/PORT/ADDRESSES", parts[0], contactWord)
	}
	t := &contact{network: parts[2]}
	secret, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(secret) != len(t.secret) {
		return nil, fmt.Errorf("the way to rank 0 has no secret of %d bytes", len(t.secret))
	}
	copy(t.secret[:], secret)
	if t.port, err = strconv.Atoi(parts[3]); err != nil || t.port < 1 || t.port > 65535 {
		return nil, fmt.Errorf("port %.20q of rank 0: want 1 to 65535", parts[3])
	}
	if parts[4] == "" {
		return t, nil
	}
	addrs := strings.Split(parts[4], ",")
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

// endpoints returns where rank 0 may be reached from this process, in groups, the best first. In
// rank 0's network namespace the first group is loopback, which stays when interfaces go. Rank 0's
// addresses follow, because cloned virtual machines may have one network name. In other namespaces
// loopback is left out, because another process would answer there.
func (t *contact) endpoints() ([][]string, error) {
	var groups [][]string
	if t.network == network() {
		groups = append(groups, []string{loopback(t.port)})
	}
	list := make([]string, len(t.addrs))
	for i, a := range t.addrs {
		list[i] = netip.AddrPortFrom(a, uint16(t.port)).String()
	}
	if len(list) > 0 {
		groups = append(groups, list)
	}
	if len(groups) == 0 {
		return nil, errors.New("rank 0 listens on loopback alone, of another host or network namespace than this process sees")
	}
	return groups, nil
}

// network is the name of the network that this process sees, as short as a contact
// wants it.
func network() string {
	sum := sha256.Sum256([]byte(route.Network()))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func loopback(port int) string {
	return net.JoinHostPort(route.Loopback().String(), strconv.Itoa(port))
}

// ownAddrs returns the addresses at which other hosts may reach this one.
func ownAddrs() []netip.Addr {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // of this host alone can it be reached
	}
	var list []netip.Addr
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
