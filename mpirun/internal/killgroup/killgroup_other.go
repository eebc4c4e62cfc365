//go:build !linux

package killgroup

// RemoveOf does nothing: only Linux has control groups.
func RemoveOf(int) {}
