package rank0

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"gompi/internal/sockets"
)

// A Contact has the addresses of rank 0, and the secret that proves a rank's membership in the job.
// Its text has the characters and the length of a PMI value.
type Contact struct {
	Secret  [32]byte
	Network string // network namespace in which rank 0 is reached by loopback
	Port    int
	Addrs   []netip.Addr // MaxAddrs at most
}

const (
	contactWord = "gompi2"
	MaxAddrs    = 16
)

func (t *Contact) String() string {
	addrs := make([]string, len(t.Addrs))
	for i, a := range t.Addrs {
		addrs[i] = a.String()
	}
	return strings.Join([]string{
		contactWord, base64.RawURLEncoding.EncodeToString(t.Secret[:]), t.Network, strconv.Itoa(t.Port),
		strings.Join(addrs, ","),
	}, "/")
}

// ParseContact parses the text of String.
func ParseContact(s string) (*Contact, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 || parts[0] != contactWord {
		return nil, fmt.Errorf("%.20q... does not lead to rank 0: want %s/SECRET/NETWORK/PORT/ADDRESSES", parts[0],
			contactWord)
	}
	t := &Contact{Network: parts[2]}
	secret, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(secret) != len(t.Secret) {
		return nil, fmt.Errorf("the way to rank 0 has no secret of %d bytes", len(t.Secret))
	}
	copy(t.Secret[:], secret)
	if t.Port, err = strconv.Atoi(parts[3]); err != nil || t.Port < 1 || t.Port > 65535 {
		return nil, fmt.Errorf("port %.20q of rank 0: want 1 to 65535", parts[3])
	}
	if parts[4] == "" {
		return t, nil
	}
	addrs := strings.Split(parts[4], ",")
	if len(addrs) > MaxAddrs {
		return nil, fmt.Errorf("%d addresses of rank 0: want at most %d", len(addrs), MaxAddrs)
	}
	for _, a := range addrs {
		addr, err := netip.ParseAddr(a)
		if err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("address %.60q of rank 0: want an IP address", a)
		}
		t.Addrs = append(t.Addrs, addr)
	}
	return t, nil
}

// Endpoints returns the endpoints of rank 0 for this process, in groups, the best first. In rank
// 0's network namespace the first group is loopback, which survives the loss of an interface. Rank
// 0's addresses follow, because cloned virtual machines may have one network name. In other
// namespaces loopback is left out, because another process would answer there.
func (t *Contact) Endpoints() ([][]string, error) {
	var groups [][]string
	if t.Network == network() {
		groups = append(groups, []string{loopback(t.Port)})
	}
	list := make([]string, len(t.Addrs))
	for i, a := range t.Addrs {
		list[i] = netip.AddrPortFrom(a, uint16(t.Port)).String()
	}
	if len(list) > 0 {
		groups = append(groups, list)
	}
	if len(groups) == 0 {
		return nil, errors.New("rank 0 listens on loopback alone, of another host or network namespace than this process sees")
	}
	return groups, nil
}

// network is a short name of this process's network namespace, for a Contact.
func network() string {
	sum := sha256.Sum256([]byte(sockets.Network()))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func loopback(port int) string {
	return net.JoinHostPort(sockets.Loopback().String(), strconv.Itoa(port))
}

// OwnAddrs returns the addresses at which other hosts may reach this one.
func OwnAddrs() []netip.Addr {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // reachable from this host alone
	}
	var list []netip.Addr
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || len(list) == MaxAddrs {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap().IsGlobalUnicast() {
			list = append(list, ip.Unmap())
		}
	}
	return list
}

// ContactOf returns the contact of ln.
func ContactOf(ln net.Listener, secret [32]byte, local bool) *Contact {
	t := &Contact{Secret: secret, Network: network(), Port: ln.Addr().(*net.TCPAddr).Port}
	if !local {
		t.Addrs = OwnAddrs()
	}
	return t
}
