//go:build !amd64 || race

package seg

import "sync/atomic"

// store stores v, which becomes visible to other processes after all earlier stores of this
// goroutine.
func store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
