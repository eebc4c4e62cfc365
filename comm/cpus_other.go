//go:build !linux

package comm

import "runtime"

func affinity() cpuset { return nil }

func machine() []byte { return nil }

func yield() { runtime.Gosched() }

func shortenSlices() {}

func yieldShort() { yield() }
