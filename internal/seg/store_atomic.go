//go:build !amd64 || race

package seg

import "sync/atomic"

// store stores v so that it becomes visible to other processes after all that
// this goroutine stored before.
func store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
