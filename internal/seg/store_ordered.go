//go:build amd64 && !race

package seg

// store stores v so that it becomes visible to other processes after all that
// this goroutine stored before. Here any store does.
func store(p *uint64, v uint64) { *p = v }
