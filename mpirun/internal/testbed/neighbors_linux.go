package testbed

import (
	"fmt"
	"path/filepath"
	"strings"
)

// manyHosts is the number of hosts from which on they get each other's hardware addresses. Linux
// keeps 1024 resolved addresses, over all namespaces, and drops packets when more are needed.
const manyHosts = 24

// hardwareHere is the hardware address of this machine on the hosts' network.
const hardwareHere = "02:00:00:00:01:00"

// hardware returns the hardware address of a host.
func hardware(i int) string { return fmt.Sprintf("02:00:00:00:00:%02x", i) }

// acquaint gives each of n hosts the hardware addresses of the others, if n is large. Addresses
// that the kernel did not resolve itself do not count against its limit.
func (b *Bed) acquaint(n int) {
	b.t.Helper()
	if n < manyHosts {
		return
	}
	var batch strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&batch, "neigh add %s lladdr %s dev eth0\n", b.Addr(i), hardware(i))
	}
	fmt.Fprintf(&batch, "neigh add %s lladdr %s dev eth0\n", b.Here(), hardwareHere)
	b.write("neighbors", batch.String(), 0o600)
	for _, h := range b.hosts {
		b.ip("-n", h.space, "-batch", filepath.Join(b.dir, "neighbors"))
	}
}
