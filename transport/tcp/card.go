package tcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// A card tells other ranks how to reach one: it is what Transport.Card encodes.
//
//	0   version
//	1   nonce, 16 bytes
//	17  port, big-endian
//	19  flags: bit 0, listens on loopback only
//	20  number of addresses, then for each its length in bytes (4 or 16), the
//	    prefix bits of its subnet, and the address
type card struct {
	nonce  [nonceSize]byte // tells this listener from another at the same address
	port   uint16
	local  bool           // only reachable through loopback
	subnet []netip.Prefix // not masked: an address and the subnet it is in
}

const (
	cardVersion  = 1
	cardFixed    = 21
	nonceSize    = 16
	maxAddresses = 16
)

func (c *card) encode() []byte {
	b := append([]byte{cardVersion}, c.nonce[:]...)
	b = binary.BigEndian.AppendUint16(b, c.port)
	var flags byte
	if c.local {
		flags = 1
	}
	b = append(b, flags, byte(len(c.subnet)))
	for _, s := range c.subnet {
		a := s.Addr().AsSlice()
		b = append(b, byte(len(a)), byte(s.Bits()))
		b = append(b, a...)
	}
	return b
}

// decodeCard reads what encode has written, and nothing else.
func decodeCard(b []byte) (*card, error) {
	if len(b) < cardFixed {
		return nil, fmt.Errorf("card of %d bytes, want at least %d", len(b), cardFixed)
	}
	if b[0] != cardVersion {
		return nil, fmt.Errorf("card of version %d, want %d", b[0], cardVersion)
	}
	c := &card{port: binary.BigEndian.Uint16(b[17:]), local: b[19] == 1}
	copy(c.nonce[:], b[1:])
	if c.port == 0 || b[19] > 1 {
		return nil, fmt.Errorf("card with port %d and flags %#x", c.port, b[19])
	}
	n := int(b[20])
	if n > maxAddresses {
		return nil, fmt.Errorf("card with %d addresses, at most %d are allowed", n, maxAddresses)
	}
	b = b[cardFixed:]
	for range n {
		var err error
		var s netip.Prefix
		if s, b, err = decodeSubnet(b); err != nil {
			return nil, err
		}
		c.subnet = append(c.subnet, s)
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("card with %d bytes too many", len(b))
	}
	return c, nil
}

func decodeSubnet(b []byte) (netip.Prefix, []byte, error) {
	if len(b) < 2 || b[0] != 4 && b[0] != 16 || len(b) < 2+int(b[0]) {
		return netip.Prefix{}, nil, fmt.Errorf("card ends inside an address: % x", b)
	}
	end := 2 + int(b[0])
	addr, _ := netip.AddrFromSlice(b[2:end])
	s := netip.PrefixFrom(addr, int(b[1]))
	if !s.IsValid() || addr.Is4In6() {
		return netip.Prefix{}, nil, fmt.Errorf("card with address %v/%d", addr, b[1])
	}
	return s, b[end:], nil
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// candidates returns where to try to reach the rank that published c, best
// first. own are this rank's subnets; near says that the rank is on this host.
// Addresses in a subnet of ours come first, longest prefix first; an address
// that is also ours belongs to a bridge that every host has, and leads here.
func (c *card) candidates(own []netip.Prefix, near bool) []netip.AddrPort {
	var list []netip.AddrPort
	if near {
		list = append(list, netip.AddrPortFrom(loopback, c.port))
	}
	if c.local {
		return list
	}
	theirs := slices.Clone(c.subnet)
	slices.SortStableFunc(theirs, func(a, b netip.Prefix) int {
		return shared(b, own) - shared(a, own)
	})
	for _, s := range theirs {
		mine := slices.ContainsFunc(own, func(o netip.Prefix) bool { return o.Addr() == s.Addr() })
		if near || !mine {
			list = append(list, netip.AddrPortFrom(s.Addr(), c.port))
		}
	}
	return list
}

// shared returns the length of the longest prefix that s has in common with one
// of own as the same subnet, 0 if none.
func shared(s netip.Prefix, own []netip.Prefix) int {
	best := 0
	for _, o := range own {
		if o.Bits() == s.Bits() && o.Masked() == s.Masked() {
			best = max(best, s.Bits())
		}
	}
	return best
}
