package mpirun

import (
	"math/bits"
	"syscall"

	"golang.org/x/sys/unix"
)

// blockSignal blocks sig on this thread, but not in processes that other threads start.
func blockSignal(sig syscall.Signal) {
	var set unix.Sigset_t
	n := uint(sig) - 1
	set.Val[n/bits.UintSize] |= 1 << (n % bits.UintSize)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil) // fails only for an unknown first argument
}
