//go:build !amd64

package mem

import "unsafe"

// PrefetchToWrite does nothing: it is only a hint.
func PrefetchToWrite(at unsafe.Pointer, n int) {}

// Prefetch does nothing: it is only a hint.
func Prefetch(at unsafe.Pointer, n int) {}
