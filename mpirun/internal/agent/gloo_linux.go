package agent

import (
	"context"
	"net"
	"net/netip"
	"time"

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

// lookUpTime is how long a name server may take that is asked for MASTER_ADDR.
const lookUpTime = 2 * time.Second

// reachable returns why this host has no way to address, which may be a name.
func reachable(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(address, "9")) // sends nothing there
	if err != nil {
		return err
	}
	return c.Close()
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
