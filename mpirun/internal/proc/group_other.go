//go:build !linux

package proc

// RemoveGroupOf does nothing: only Linux has control groups.
func RemoveGroupOf(int) {}
