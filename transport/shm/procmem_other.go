//go:build !linux

package shm

import "errors"

// allowReading does nothing.
func allowReading() {}

// readMemory fails: only Linux has this call.
func readMemory(int, []byte, uintptr) error { return errors.ErrUnsupported }

// writeMemory fails: only Linux has this call.
func writeMemory(int, []byte, uintptr) error { return errors.ErrUnsupported }

// readSpans fails: only Linux has this call.
func readSpans(int, []byte, []Span) error { return errors.ErrUnsupported }

// writeSpans fails: only Linux has this call.
func writeSpans(int, []byte, []Span) error { return errors.ErrUnsupported }
