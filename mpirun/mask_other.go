//go:build !linux

package mpirun

import "syscall"

// blockSignal does nothing here: a job that reads the terminal from the background is stopped.
func blockSignal(syscall.Signal) (restore func()) { return func() {} }
