//go:build !linux

package comm_test

import "testing"

// overMemory is overTCP: there is no shared memory here.
func overMemory(t testing.TB, n int, fn rankFunc) []error { return overTCP(t, n, fn) }
