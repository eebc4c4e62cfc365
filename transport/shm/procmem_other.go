//go:build !linux

package shm

import "errors"

// allowReading does nothing.
func allowReading() {}

// readMemory fails: only Linux has it.
func readMemory(int, []byte, uintptr) error { return errors.ErrUnsupported }

// writeMemory fails: only Linux has it.
func writeMemory(int, []byte, uintptr) error { return errors.ErrUnsupported }

// readSpans fails: only Linux has it.
func readSpans(int, []byte, []Span) error { return errors.ErrUnsupported }

// writeSpans fails: only Linux has it.
func writeSpans(int, []byte, []Span) error { return errors.ErrUnsupported }
