// Package rma is one-sided communication: windows of memory that other ranks of a communicator put
// to, get from and combine with (MPI-4.1 chapter 12). Package comm/window is it for Go programs,
// package comm/internal/mpi/windows for MPI's.
//
// # How memory is reached
//
// A rank reaches the part of another in one of three ways, which the two find when the window is
// made:
//
//   - Direct: the memory is in the segment that the ranks of a host share, or is its own. Put and
//     Get are loads and stores, accumulates are atomic instructions.
//   - By the kernel: the memory is private to a process of this host. Put and Get are one copy by
//     the kernel (process_vm_writev). Accumulates are served.
//   - Served: all else is a message to the owner, where a goroutine does what it asks for. The
//     owner need not call anything: whoever drives the transports there receives the request. While
//     no goroutine of the owner waits for anything, that is the background, which begins a
//     millisecond after the last call.
//
// # Accumulates
//
// They are atomic for each element. In memory that is shared, elements of 4 and 8 bytes at a
// multiple of their length are combined by a compare-and-swap, or an instruction that does it at
// once; all others with the lock of the part held, which is in shared memory, too. Which of the two
// it is depends on the part, the type and the place alone, and the goroutine that serves does what
// direct ranks do: so all accumulates of one type to one element exclude each other, however each
// gets there.
//
// # Order in memory
//
// What a rank has put is seen by whoever learns of it by what the window offers: the end of a
// Fence, of a lock, of a Wait, or an element that was accumulated after a Flush. Direct stores come
// before the atomic stores of the Flush (seq-cst, as all of Go's are, so later loads come behind
// them, too: put, Flush, get on two ranks that each get what the other puts cannot miss both). The
// kernel's copies and served ones are over when a Flush returns: an answer comes behind them. A
// rank that learns of it loads the word that says so atomically, and what it loads later comes
// later. Fence, Post and Complete are messages, which are published by such stores, too.
//
// # Failure
//
// A window has a communicator of its own. What breaks that ends all waits, with its reason. A wait
// for a lock that is given up, since its context ends, breaks it: the rank's turn would come, and
// nobody would take it.
package rma
