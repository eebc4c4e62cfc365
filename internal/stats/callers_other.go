//go:build !amd64

package stats

import "runtime"

// callers returns a hash of op and of the return addresses of the functions around Begin's caller,
// never 0.
func callers(op uint64) uint64 {
	var pcs [6]uintptr
	for _, pc := range pcs[:runtime.Callers(4, pcs[:])] {
		op = (op ^ uint64(pc)) * odd
	}
	return op | 1
}
