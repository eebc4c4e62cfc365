package tcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gompi/internal/sockets"
)

// A card has the data by which other ranks reach a rank. Transport.Card encodes it:
//
//	0   version
//	1   nonce, 16 bytes
//	17  network, 16 bytes
//	33  port, big-endian
//	35  flags: bit 0, listens on loopback only
//	36  number of addresses, then for each its length in bytes (4 or 16), the
//	    prefix bits of its subnet, and the address
type card struct {
	nonce   [nonceSize]byte   // distinguishes successive listeners at the same address
	network [networkSize]byte // whose loopback leads here, whatever the host's name
	port    uint16
	local   bool           // only reachable through loopback
	subnet  []netip.Prefix // not masked: an address and its subnet
}

const (
	cardVersion = 2
	cardFixed   = 37
	nonceSize   = 16
)

func (c *card) encode() []byte {
	b := append([]byte{cardVersion}, c.nonce[:]...)
	b = append(b, c.network[:]...)
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

// decode sets c from encode's output, reusing the memory of its subnets, and refuses other data.
func (c *card) decode(b []byte) error {
	if len(b) < cardFixed {
		return fmt.Errorf("card of %d bytes, want at least %d", len(b), cardFixed)
	}
	if b[0] != cardVersion {
		return fmt.Errorf("card of version %d, want %d", b[0], cardVersion)
	}
	*c = card{port: binary.BigEndian.Uint16(b[33:]), local: b[35] == 1, subnet: c.subnet[:0]}
	copy(c.nonce[:], b[1:])
	copy(c.network[:], b[17:])
	if c.port == 0 || b[35] > 1 {
		return fmt.Errorf("card with port %d and flags %#x", c.port, b[35])
	}
	n := int(b[36])
	if n > sockets.MaxAddresses {
		return fmt.Errorf("card with %d addresses, at most %d are allowed", n, sockets.MaxAddresses)
	}
	b = b[cardFixed:]
	for range n {
		var err error
		var s netip.Prefix
		if s, b, err = decodeSubnet(b); err != nil {
			return err
		}
		c.subnet = append(c.subnet, s)
	}
	if len(b) != 0 {
		return fmt.Errorf("card with %d bytes too many", len(b))
	}
	return nil
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

// candidates returns the endpoints of the rank that published c, best first. own are this rank's
// subnets. loopback is the address that leads to a rank on this host, else the zero Addr.
func (c *card) candidates(own []netip.Prefix, loopback netip.Addr) []netip.AddrPort {
	var list []netip.AddrPort
	if loopback.IsValid() {
		list = append(list, netip.AddrPortFrom(loopback, c.port))
	}
	if c.local {
		return list
	}
	return append(list, sockets.Endpoints(c.subnet, own, c.port)...)
}
