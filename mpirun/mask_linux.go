package mpirun

import (
	"math/bits"
	"syscall"

	"golang.org/x/sys/unix"
)

// blockSignal blocks sig on this thread, but not in processes started by other threads, until
// restore is called.
func blockSignal(sig syscall.Signal) (restore func()) {
	var old unix.Sigset_t
	set := signalSet(sig)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old) // fails only for an unknown first argument
	return func() { unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }
}

func signalSet(sig syscall.Signal) (set unix.Sigset_t) {
	n := uint(sig) - 1
	set.Val[n/bits.UintSize] |= 1 << (n % bits.UintSize)
	return set
}
