//go:build !linux

package core_test

import (
	"testing"

	"gompi/comm"
)

// overMemory is overTCP: there is no shared memory here.
func overMemory(t testing.TB, n int, fn rankFunc) []error { return overTCP(t, n, fn) }

func overMemoryWith(t testing.TB, n int, cfg comm.Config, fn rankFunc) []error {
	return overTCPWith(t, n, cfg, fn)
}
