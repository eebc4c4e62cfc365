package shm

// prefetch begins to fetch the cache lines of the n bytes from at on, one line at least. Neither
// does prefetch wait, nor does anything wait for it: atomic operations wait for loads.
//
//go:noescape
func prefetch(at *byte, n int)
