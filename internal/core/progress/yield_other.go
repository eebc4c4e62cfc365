//go:build !linux

package progress

import "runtime"

// Yield gives the processor to another goroutine.
func Yield() { runtime.Gosched() }

// YieldShort is Yield.
func YieldShort() { Yield() }

// ShortenSlices does nothing: only Linux has slices that a process may choose.
func ShortenSlices() {}
