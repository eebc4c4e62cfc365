//go:build linux && cgo

// Package guest has Go's runtime be a good guest in programs in C that load gompi's libraries. They
// import it for that alone, and are compiled with guest.h, which has all threads of the runtime be
// created by threads.c.
//
// # Signals
//
// A goroutine's stack is small, and the kernel runs a signal handler on the stack that the thread
// has at the time, unless the handler has SA_ONSTACK and the thread an alternate stack. So three
// things are done. The runtime's own threads block the program's signals, which its own threads
// get. All threads that run Go have an alternate stack, of 1 MiB (stack.c): those of the program
// from their first call on, at which core.c calls gompi_prepare_thread. And all handlers of the
// program have SA_ONSTACK: the libraries with which a program is linked see to that
// (shim/signals.c). SIGPROF is not blocked, since Go's runtime does not let it be.
//
// # The monitor thread
//
// The monitor (runtime.sysmon) sleeps for 20 us, and after 50 times in which it had nothing to do
// twice as long each time, up to 10 ms. It begins anew with 20 us once it has taken a P (what a
// thread needs to run Go) from a thread that is in C, and when that thread calls again. A program
// that computes between its calls meets both with nearly each call: for some ms the monitor then
// takes a processor of the machine 10,000 times a second and more, for 10 us each time in a virtual
// machine. The runtime has no setting for that. But the timer slack of a thread, which it inherits
// from the one that creates it, lets Linux have its sleeps last longer: here 5 ms.
//
// np=2 on an Intel Xeon: an MPI_Allgather of 8 B each 360 us takes 50 to 70 us without, 4 with;
// LAMMPS's peptide 2.1 s, 1.9 since (Open MPI 4.1 1.87), an FFT of HPCC 2.7 Gflop/s, 4 to 6.9.
//
// The price: where GOMAXPROCS threads compute in C after they have called, another one that calls
// waits for up to 10 ms until the monitor takes a P from one of them, and not 40 us.
package guest

import "C"
