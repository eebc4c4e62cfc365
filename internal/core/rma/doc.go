// Package rma is one-sided communication: windows of memory that other ranks of a communicator put
// to, get from and combine with (MPI-4.1 chapter 12). Package comm/window is it for Go programs,
// package mpi/internal/windows for MPI's.
//
// # How memory is reached
//
// A rank reaches the part of another in one of four ways, which the two find when the window is
// made:
//
//   - Direct: the memory is in the segment that the ranks of a host share, or is its own. Put and
//     Get are loads and stores, accumulates are atomic instructions.
//   - By the kernel: the memory is private to a process of this host. Put and Get are one copy by
//     the kernel (process_vm_writev). Accumulates are served.
//   - By a device: the rank is on another host, UCX connects the two over reliable connections of
//     InfiniBand or RoCE, and the memory is registered, as what a window allocates is. Put and Get
//     are done by the devices, and the owner's processors take no part. Until a first message has
//     connected the two, Put and Get are served. Accumulates are always served.
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
// Devices: a Flush is UCX's, which is over when all that was put is done at the owner as well. Over
// reliable connections that is when the owner's device has acknowledged it. All that tells of it
// (the messages of Fence and Complete, a lock that is given back, an accumulate) is sent later, and
// the owner finds it by an entry of a completion queue, which the device stores behind what it has
// stored before. So Fence, Complete and Unlock flush first. A Put and an accumulate go beside
// each other, in no order, as MPI has it: a Flush between them waits for both.
//
// # Failure
//
// A window has a communicator of its own. What breaks that ends all waits, with its reason. A wait
// for a lock that is given up, since its context ends, breaks it: the rank's turn would come, and
// nobody would take it.
//
// An operation on memory that is not attached to a dynamic window does nothing, and the window
// stays whole. Each rank lists what is attached behind its control words, where those of its host
// look first. The server of a rank refuses what others ask, by answers too long for their receives,
// which fail: to the request, and to the next flush. So a put to another host costs no question.
//
// Free waits for the flushes of all ranks before it gives the memory back. A window that is broken
// keeps its memory, since devices may still store there, until the last communicator is closed:
// then it is deregistered, which devices notice, before it is freed.
package rma
