//go:build amd64 && !race

package seg

// store stores v, which becomes visible to other processes after all earlier stores of this
// goroutine. On amd64 any store does so.
func store(p *uint64, v uint64) { *p = v }
