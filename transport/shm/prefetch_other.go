//go:build !amd64

package shm

// prefetch does nothing: a hint less.
func prefetch(at *byte, n int) {}
