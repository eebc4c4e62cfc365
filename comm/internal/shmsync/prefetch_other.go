//go:build !amd64

package shmsync

import "unsafe"

// prefetchToWrite does nothing: a hint less.
func prefetchToWrite(at unsafe.Pointer, n int) {}
