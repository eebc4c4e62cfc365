//go:build !linux

package boot

// lostVariables is for what an agent has started, which there is on Linux alone.
func lostVariables() error { return nil }
