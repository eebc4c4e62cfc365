package agent

import (
	"net"
	"net/netip"

	"gompi/internal/env"
	"gompi/internal/route"
)

// glooInterface returns the variable that has gloo use the interface that leads
// to MASTER_ADDR, or nothing if there is one host only. Left alone, gloo takes the
// address of the host's own name, which on many hosts is one of loopback.
func (a *agent) glooInterface() []string {
	if len(a.launch.Hosts) < 2 {
		return nil
	}
	if name := interfaceTo(a.launch.MasterAddr); name != "" {
		return []string{env.GlooInterface + "=" + name}
	}
	return nil
}

// interfaceTo returns the interface whose address this host has for another, ""
// for loopback and what is no address.
func interfaceTo(address string) string {
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
