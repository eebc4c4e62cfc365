package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
)

// FreePorts returns n ports on which no process listened a moment ago, for programs that bind
// them themselves. The test owns them until its end: no other test gets them, in this process or
// another, and neither does a process that asks the kernel for any port.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	const from = 10000
	to := kernelsPorts(t)
	var ports []int
	for range 100 * n {
		if len(ports) == n {
			return ports
		}
		if port := from + rand.IntN(to-from); claim(t, port) {
			ports = append(ports, port)
		}
	}
	t.Fatalf("%d of %d free ports found between %d and %d", len(ports), n, from, to)
	return nil
}

// claim reports whether a port was free and is now the test's. Between the choice and the start
// of the program that binds the port, only this socket shows the claim to other tests.
func claim(t testing.TB, port int) bool {
	mine, err := net.Listen("unix", fmt.Sprintf("@gompi-test-port-%d", port))
	if err != nil {
		return false
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		mine.Close()
		return false
	}
	l.Close()
	t.Cleanup(func() { mine.Close() })
	return true
}

// kernelsPorts returns the first port of the range that Linux assigns to processes asking for any
// port.
func kernelsPorts(t testing.TB) int {
	t.Helper()
	var first int
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(data), &first)
	}
	if err != nil {
		t.Fatal(err)
	}
	return first
}
