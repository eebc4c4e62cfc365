package comm

import (
	"context"
	"unsafe"

	"gompi/internal/core"
)

// A Request is a nonblocking operation (MPI_Request). Wait and Test report its completion; its
// buffers must not be touched earlier. A program built with -race reports a buffer of Isend, Issend
// or Irecv that is.
//
// A Request is a small value. After Wait or Test has returned its outcome, the Request is null:
// later calls return at once, with an empty Status of no bytes, from AnySource with AnyTag. So does
// the zero Request. An error, however, is returned every time. Starting an operation allocates
// nothing.
//
// Methods may be called from any goroutine. A Request need not be waited for: the operation
// continues anyway, and Close does not wait for it.
type Request core.Request

// requests converts rs to the engine's type. Both types have the same memory layout, since each
// value of one is a value of the other (unsafe.Pointer, rule 1).
func requests(rs []Request) []core.Request {
	return unsafe.Slice((*core.Request)(unsafe.SliceData(rs)), len(rs))
}

// Done reports whether the operation is complete. Done makes no progress: use Test in a waiting
// loop.
func (r Request) Done() bool { return core.Request(r).Done() }

// Wait waits until the operation is complete and returns its outcome. If ctx ends first Wait
// returns the cause, and the operation continues.
//
// A collective runs on a goroutine of its own, which begins some microseconds after the call. With
// a ctx that cannot end, a collective that has not begun runs on the caller's goroutine: if each
// rank has a processor, this saves 50 us and more.
func (r Request) Wait(ctx context.Context) (Status, error) {
	st, err := core.Request(r).Wait(ctx)
	return Status(st), err
}

// Test makes some progress and reports whether the operation is complete; the outcome is then the
// same as of Wait.
func (r Request) Test() (st Status, done bool, err error) {
	of, done, err := core.Request(r).Test()
	return Status(of), done, err
}

// Cancel withdraws a receive that has not matched a message yet (MPI_Cancel). It reports whether
// the receive was withdrawn; the receive then fails with context.Canceled.
func (r Request) Cancel() bool { return core.Request(r).Cancel() }

// WaitAll waits for all requests, which belong to one process, and returns the first error, in
// their order. If ctx ends first WaitAll returns the cause, and the requests continue. For their
// Statuses call Wait of each instead.
func WaitAll(ctx context.Context, rs ...Request) error { return core.WaitAll(ctx, requests(rs)) }

// WaitAny waits until one of rs is complete and returns its index and outcome. rs has at least one
// request, all of one process. Unlike MPI_Waitany, WaitAny does not skip requests already reported:
// remove them from rs.
func WaitAny(ctx context.Context, rs ...Request) (int, Status, error) {
	i, st, err := core.WaitAny(ctx, requests(rs))
	return i, Status(st), err
}

// WaitSome waits until at least one of the requests is complete, and returns the indices of all
// complete requests. Wait then returns their outcomes. WaitSome fails only if ctx ends first.
func WaitSome(ctx context.Context, rs ...Request) ([]int, error) {
	return core.WaitSome(ctx, requests(rs))
}
