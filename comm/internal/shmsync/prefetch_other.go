//go:build !amd64

package shmsync

import "unsafe"

// prefetchToWrite does nothing: it is only a hint.
func prefetchToWrite(at unsafe.Pointer, n int) {}
