// Package rma is one-sided communication: windows of memory that other ranks of a communicator put
// to, get from and combine with (MPI-4.1 chapter 12), for comm/window and mpi/internal/windows.
//
// # How memory is reached
//
// A rank reaches the part of another in one of four ways, found when the window is made:
//
//   - Direct: the memory is in the segment that the ranks of a host share, or is its own. Put
//     and Get are loads and stores, accumulates are atomic instructions.
//   - By the kernel: the memory is private to a process of this host. Put and Get are a single
//     copy by the kernel (process_vm_writev). Accumulates are served.
//   - By a device: the rank is on another host, UCX connects the two over reliable connections
//     of InfiniBand or RoCE, and the memory is registered, as windows' own allocations are. The
//     devices do Put and Get, and the owner's processors take no part. Until a first message
//     has connected the two, Put and Get are served. Accumulates are always served.
//   - Served: all else is a message to the owner, where a goroutine does the requested
//     operation. The owner need not call anything: any driver of the transports there receives
//     the request. While no goroutine of the owner waits for anything, the background drives,
//     which begins a millisecond after the last call.
//
// # Accumulates
//
// They are atomic for each element. In shared memory, elements of 4 and 8 bytes at a multiple of
// their length are combined by a compare-and-swap, or by a single instruction; all others with
// the lock of the part held, which is in shared memory, too. The choice depends on the part, the
// type and the place alone, and the serving goroutine chooses as direct ranks do: so all
// accumulates of a type to an element exclude each other, whichever way each takes.
//
// # Order in memory
//
// A rank's puts are seen by every rank that learns of them through the window: by the end of a
// Fence, of a lock, of a Wait, or by an element that was accumulated after a Flush. Direct stores
// come before the atomic stores of the Flush (seq-cst, as all of Go's are, so later loads come
// behind them, too: put, Flush, get on two ranks that each get the other's put cannot miss both).
// The kernel's copies and served puts are over when a Flush returns: an answer comes behind them.
// A rank learns of a put by an atomic load of a word, and its later loads come behind this load.
// Fence, Post and Complete are messages, which are published by such stores, too.
//
// Devices: a Flush is UCX's, which is over when all puts are done at the owner as well. Over
// reliable connections this is when the owner's device has acknowledged them. All news of a put
// (the messages of Fence and Complete, the release of a lock, an accumulate) is sent later, and
// the owner finds it by an entry of a completion queue, which the device stores behind its
// earlier stores. So Fence, Complete and Unlock flush first. A Put and an accumulate go beside
// each other, in no order, as in MPI: a Flush between them waits for both.
//
// # Failure
//
// A window has a communicator of its own. If this breaks, all waits end, with its reason. A wait
// for a lock that is given up, since its context ends, breaks the communicator: the rank's turn
// would come, and nobody would take it.
//
// An operation on memory that is not attached to a dynamic window does nothing, and the window
// stays whole. Each rank lists its attached memory behind its control words, where the ranks of its
// host look first. A rank's server refuses others' requests by answers too long for their receives,
// which fail: to the request, and to the next flush. So a put elsewhere costs no question.
//
// Free waits for the flushes of all ranks before it gives the memory back. A broken window keeps
// its memory, since devices may still store there, until the last communicator is closed: then
// the memory is deregistered, which devices notice, before it is freed.
package rma
