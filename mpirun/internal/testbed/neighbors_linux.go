package testbed

import (
	"fmt"
	"path/filepath"
	"strings"
)

// manyHosts is from how many hosts on they are told each other's hardware addresses. Linux keeps
// 1024 that it has asked for, of all namespaces together, and drops packets where it needs more.
const manyHosts = 24

// hardwareHere is the hardware address of this machine on the hosts' network.
const hardwareHere = "02:00:00:00:01:00"

// hardware returns the hardware address of a host.
func hardware(i int) string { return fmt.Sprintf("02:00:00:00:00:%02x", i) }

// acquaint tells each of n hosts the hardware addresses of the others, if they are many: what the
// kernel has not asked for does not count.
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
