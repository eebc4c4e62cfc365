package hostinfo

import (
	"net"
	"net/netip"

	"gompi/internal/route"
)

// InterfaceTo returns the interface whose address this host has for another, ""
// for loopback and what is no address.
func InterfaceTo(address string) string {
	to, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9))) // sends nothing
	if err != nil {
		return ""
	}
	defer c.Close()
	own, _ := netip.ParseAddrPort(c.LocalAddr().String())
	return route.InterfaceOf(own.Addr())
}
