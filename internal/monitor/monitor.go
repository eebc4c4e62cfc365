//go:build linux && cgo

// Package monitor has Go's monitor thread (runtime.sysmon) sleep longer in the libraries that
// programs in C load. They import it for that alone, and are compiled with monitor.h.
//
// The monitor sleeps for 20 us at first, and twice as long after each 50 times in which it had
// nothing to do, up to 10 ms. It begins anew when a thread comes back from C for which it has taken
// the processor of Go's (a P) away, and that is so for each call of a program that computes in
// between: for some ms it then takes the processor of the machine 10,000 times a second and more,
// for 10 us each time in a virtual machine. The runtime has no setting for that. But Linux lets
// sleeps last longer, by the timer slack of a thread, which it inherits: here 5 ms.
//
// np=2 on an Intel Xeon: an MPI_Allgather of 8 B each 360 us takes 50 to 70 us without, 4 with;
// LAMMPS's peptide 2.1 s, 1.9 since (Open MPI 4.1 1.87), an FFT of HPCC 2.7 Gflop/s, 4 to 6.9.
//
// The price: where GOMAXPROCS threads compute in C after they have called, another one that calls
// waits for up to 10 ms until the monitor takes a P from one of them, and not 40 us.
package monitor

import "C"
