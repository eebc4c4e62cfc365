package shm

// prefetch begins to fetch the lines of the cache in the n bytes from at on, one at
// least. It waits for nothing, and nothing waits for it: atomic operations wait for
// loads.
//
//go:noescape
func prefetch(at *byte, n int)
