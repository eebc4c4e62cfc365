package mem

import "unsafe"

// PrefetchToWrite begins to fetch the cache lines of the n bytes at at, one at least, for writing.
// It does not wait.
//
//go:noescape
func PrefetchToWrite(at unsafe.Pointer, n int)
