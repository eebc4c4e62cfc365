package mem

import "unsafe"

// PrefetchToWrite begins to fetch the cache lines of the n bytes at at, one at least, for writing.
// It does not wait.
//
//go:noescape
func PrefetchToWrite(at unsafe.Pointer, n int)

// Prefetch is PrefetchToWrite for reading. Later atomic operations, which wait for loads, do not
// wait for it.
//
//go:noescape
func Prefetch(at unsafe.Pointer, n int)
