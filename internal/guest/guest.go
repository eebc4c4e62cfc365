//go:build linux && cgo

// Package guest makes Go's runtime a good guest in the C programs that load gompi's libraries. The
// libraries are compiled with guest.h, so that threads.c creates all threads of the runtime. The
// program may be Python, whose stacks python.go finds.
//
// # Signals
//
// A goroutine's stack is small. The kernel runs a signal handler on the current stack of the
// thread, unless the handler has SA_ONSTACK and the thread an alternate stack. Three measures
// prevent an overflow. The runtime's own threads block the program's signals, which the program's
// threads get. All threads that run Go have an alternate stack, of 1 MiB (stack.c): the program's
// threads from their first call on, when core.c calls gompi_prepare_thread. And all handlers of the
// program have SA_ONSTACK: the libraries to which a program is linked set the flag
// (shim/signals.c). SIGPROF is not blocked, since Go's runtime does not permit that.
//
// # The monitor thread
//
// The monitor (runtime.sysmon) sleeps for 20 us. After 50 idle rounds its sleep doubles each time,
// up to 10 ms. The sleep returns to 20 us when the monitor has taken a P (which a thread needs to
// run Go) from a thread in C, and when that thread calls again. In a program that computes between
// its calls, both happen at nearly each call. Then for some ms the monitor wakes 10,000 times a
// second and more, for 10 us each time in a virtual machine. The runtime has no setting for that.
// But Linux prolongs the sleeps of a thread by its timer slack, which a new thread inherits: here 5
// ms.
//
// np=2 on an Intel Xeon: an MPI_Allgather of 8 B each 360 us takes 50 to 70 us without the slack, 4
// with it; LAMMPS's peptide 2.1 s and 1.9 (Open MPI 4.1 1.87), an FFT of HPCC 2.7 Gflop/s and 4 to
// 6.9.
//
// The price: if GOMAXPROCS threads compute in C after a call, the next thread that calls waits up
// to 10 ms, not 40 us, until the monitor takes a P from one of them.
package guest

import "C"
