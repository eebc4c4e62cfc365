//go:build !linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Adopt fails: only Linux knows reapers of orphans.
func Adopt() error { return errors.ErrUnsupported }

// Children returns nothing.
func Children(int) []int { return nil }

// SignalBelow fails: only Linux has /proc.
func SignalBelow(syscall.Signal, func(pid int) bool) (int, error) { return 0, errors.ErrUnsupported }

// Reap does nothing: nothing was adopted.
func Reap() {}

// RemoveGroupOf does nothing: only Linux has control groups.
func RemoveGroupOf(int) {}

// CheckLimits is for Linux, where ranks run.
func CheckLimits() error { return nil }

// NameLimit is, too.
func NameLimit(err error) error { return err }

// CheckAgentLimits is, too.
func CheckAgentLimits() error { return nil }

// Guard fails: ranks run on Linux only.
func Guard(string) int {
	fmt.Fprintln(os.Stderr, "gompirun: starting ranks needs Linux")
	return 125
}
