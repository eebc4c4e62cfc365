// Package window is one-sided communication: memory of each rank of a communicator that the other
// ranks put to, get from and combine with, while its owner does something else (MPI-4.1 chapter
// 12).
//
//	w, counters, err := window.Allocate[int64](ctx, c, 1)
//	...
//	old := make([]int64, 1)
//	err = w.LockAll(ctx)
//	err = w.FetchAndOp(0, 0, comm.Of([]int64{1}), comm.Of(old), comm.Sum) // takes the next number
//	err = w.Flush(ctx, 0)                                                 // now it is in old
//	err = w.UnlockAll(ctx)
//
// # Which elements
//
// An operation goes to elements in one run at the target. To others it goes through a View, which
// Lay makes of a window and a comm.Layout: columns and blocks of a matrix, say. At the origin
// comm.Lay makes such a Buffer; only the number of elements is the same on both sides.
//
// # When an operation is done
//
// Put, Get and the accumulates begin an operation, and may return before it is done. Until then
// their buffers must not be touched, and nobody may count on its effect. It is done at the end of
// one of
//
//   - Fence, which all ranks call;
//   - Complete, of a rank that has called Start; at the target, which has called Post, that is the
//     end of its Wait;
//   - Flush and Unlock, which only this rank calls. FlushLocal is enough for the buffers alone.
//
// A rank accesses the memory of another between two Fences, between Start and Complete, or between
// Lock and Unlock: Go's loads and stores of its own memory are accesses like others. Two ranks that
// access one element at the same time, of which one puts or stores, get what they deserve, unless
// both accumulate: accumulates are atomic for each element, and in the order in which one rank
// makes them. GetAccumulate with NoOp is an atomic load, and with Replace an atomic exchange.
//
// # How it is done
//
// On one host the memory of Allocate and AllocateShared is shared: an operation is a load, a store
// or an atomic instruction, and done when the call returns. What Create gets is private to its
// process: the kernel copies what is put and got, and the owner does the accumulates. Between hosts
// with RDMA their devices put to and get from the memory of Allocate, whatever the owner does. All
// else the owner does. It need not call anything: the requests are served on a goroutine of its own
// while some other polls. If the program computes and no goroutine of it waits for messages, that
// begins up to a millisecond after its last call of comm, and each request then takes some tens of
// microseconds. A window that serves takes from an MPI program's messages the way without Go.
//
// # Errors
//
// A rank that dies breaks the window as it breaks communicators: all waits end with
// comm.ErrRevoked, which names it. The window has a communicator of its own, so that it does not
// break when some other does. A wait for a lock, or a Fence, whose context ends breaks the window.
package window
