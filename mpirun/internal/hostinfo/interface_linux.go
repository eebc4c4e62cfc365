package hostinfo

import (
	"net"
	"net/netip"

	"gompi/internal/sockets"
)

// InterfaceTo returns the interface by which this host reaches address, "" for loopback and for
// text that is no address.
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
	return sockets.InterfaceOf(own.Addr())
}
