package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePorts returns n ports on which nobody listened a moment ago, for programs that
// bind them themselves. No port is one that the kernel gives to whoever asks for any:
// of those, another test may have got it by then.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	const from, to = 10000, 32768 // Linux gives away 32768 and up
	var ports []int
	for range 100 * n {
		if len(ports) == n {
			break
		}
		port := from + rand.IntN(to-from)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // when all are chosen: each is chosen once
		ports = append(ports, port)
	}
	if len(ports) < n {
		t.Fatalf("%d of %d free ports found between %d and %d", len(ports), n, from, to)
	}
	return ports
}
