//go:build !linux

package procmem

import "errors"

// Allow does nothing.
func Allow() {}

// Read fails: only Linux has it.
func Read(int, []byte, uintptr) error { return errors.ErrUnsupported }

// Write fails: only Linux has it.
func Write(int, []byte, uintptr) error { return errors.ErrUnsupported }
