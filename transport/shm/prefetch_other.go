//go:build !amd64

package shm

// prefetch does nothing: it is only a hint.
func prefetch(at *byte, n int) {}
