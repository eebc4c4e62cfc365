package shmsync

import "unsafe"

// prefetchToWrite begins to fetch the lines of the cache in the n bytes from at on,
// one at least, and to take them away from the other caches. It waits for nothing.
//
//go:noescape
func prefetchToWrite(at unsafe.Pointer, n int)
