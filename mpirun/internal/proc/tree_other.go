//go:build !linux

package proc

import (
	"errors"
	"syscall"
)

// Adopt fails: only Linux knows reapers of orphans.
func Adopt() error { return errors.ErrUnsupported }

// Children returns nothing.
func Children(int) []int { return nil }

// A Process is a descendant of this process.
type Process struct {
	PID    int
	Parent int
	Zombie bool
}

// Below fails: only Linux has /proc.
func Below(func(pid int) bool) ([]Process, error) { return nil, errors.ErrUnsupported }

// SignalBelow fails: only Linux has /proc.
func SignalBelow(syscall.Signal, func(pid int) bool) (int, error) { return 0, errors.ErrUnsupported }

// Reap does nothing: nothing was adopted.
func Reap() {}
