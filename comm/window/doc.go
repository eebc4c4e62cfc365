// Package window is one-sided communication: the ranks of a communicator put to, get from and
// combine with each other's memory, while its owner does something else (MPI-4.1 chapter 12).
//
//	w, counters, err := window.Allocate[int64](ctx, c, 1)
//	...
//	old := make([]int64, 1)
//	err = w.LockAll(ctx)
//	err = w.FetchAndOp(0, 0, comm.Of([]int64{1}), comm.Of(old), comm.Sum) // takes the next number
//	err = w.Flush(ctx, 0)                                                 // now it is in old
//	err = w.UnlockAll(ctx)
//
// At the target an operation accesses contiguous elements. At the origin comm.Lay makes a Buffer of
// other elements, such as a column of a matrix.
//
// # Completion
//
// Put, Get and the accumulates begin an operation, and may return before it is done. Until then
// their buffers must not be touched, and no rank may rely on the effect. The operation is done at
// the end of one of
//
//   - Fence, which all ranks call;
//   - Complete, on a rank that has called Start; at the target, which has called Post, at the end
//     of its Wait;
//   - Flush and Unlock, which only this rank calls. FlushLocal is enough for the buffers alone.
//
// A rank accesses the memory of another between two Fences, between Start and Complete, or between
// Lock and Unlock. Go's loads and stores of a rank's own memory are accesses, too. Concurrent
// accesses to one element are undefined if one of them is a put or a store. Concurrent accumulates
// are atomic for each element, and one rank's are in order. GetAccumulate with NoOp is an atomic
// load, and with Replace an atomic exchange.
//
// # Implementation
//
// On one host the memory of Allocate and AllocateShared is shared: an operation is a load, a store
// or an atomic instruction, and done when the call returns. Memory given to Create is private to
// its process: the kernel copies puts and gets, and the owner does the accumulates. Between hosts
// with RDMA the devices do puts and gets in the memory of Allocate, without the owner. The owner
// does everything else. It need not call anything: a goroutine serves the requests while another
// goroutine polls. If the program computes and no goroutine of it waits for messages, this service
// begins up to a millisecond after its last call of comm, and each request then takes some tens of
// microseconds. While a window serves, an MPI program's messages cannot bypass Go.
//
// # Errors
//
// A rank that dies breaks the window as it breaks communicators: all waits end with
// comm.ErrRevoked, which names the rank. The window has a communicator of its own, so that it does
// not break with any other. If the context of a wait for a lock, or of a Fence, ends, the window
// breaks.
package window
