//go:build !linux

package machine

import "runtime"

func kernel() string { return runtime.GOOS }
