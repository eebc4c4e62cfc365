package shm

// prefetch begins to fetch the cache lines of the n bytes from at on, one line at least. prefetch
// does not wait, and later atomic operations, which wait for loads, do not wait for prefetch.
//
//go:noescape
func prefetch(at *byte, n int)
