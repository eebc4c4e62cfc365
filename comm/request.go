package comm

import (
	"context"
	"unsafe"

	"gompi/internal/core"
)

// A Request is a nonblocking operation (MPI_Request). Wait and Test report when it is complete; its
// buffers must not be touched until then.
//
// A Request is a small value. When Wait or Test has returned its outcome it becomes a null request:
// later calls return at once, with an empty Status of no bytes, from AnySource with AnyTag. So does
// the zero Request. An error, however, is returned every time. To start an operation allocates
// nothing.
//
// Methods may be called from any goroutine. A Request need not be waited for: the operation
// continues anyway, and Close does not wait for it.
type Request core.Request

// requests returns rs as the engine has them. Both types are one in memory, since each value of one
// is a value of the other (unsafe.Pointer, rule 1).
func requests(rs []Request) []core.Request {
	return unsafe.Slice((*core.Request)(unsafe.SliceData(rs)), len(rs))
}

// Done reports whether the operation is complete. It makes no progress: use
// Test in a loop that waits.
func (r Request) Done() bool { return core.Request(r).Done() }

// Wait waits until the operation is complete and returns its outcome. If ctx
// ends first Wait returns its cause, and the operation continues.
//
// A collective runs on a goroutine of its own, which begins some microseconds after the call. With
// a ctx that cannot end, one that has not begun runs on the caller's: where ranks have a processor
// each that saves 50 us and more.
func (r Request) Wait(ctx context.Context) (Status, error) {
	st, err := core.Request(r).Wait(ctx)
	return Status(st), err
}

// Test makes some progress and reports whether the operation is complete; if
// so, its outcome is that of Wait.
func (r Request) Test() (st Status, done bool, err error) {
	of, done, err := core.Request(r).Test()
	return Status(of), done, err
}

// Cancel withdraws a receive that has not matched a message yet (MPI_Cancel).
// It reports whether it did; the receive then fails with context.Canceled.
func (r Request) Cancel() bool { return core.Request(r).Cancel() }

// WaitAll waits for all requests, which belong to one process, and returns the first error, in
// their order. If ctx ends first it returns the cause of that, and the requests continue. For their
// Statuses call Wait of each instead.
func WaitAll(ctx context.Context, rs ...Request) error { return core.WaitAll(ctx, requests(rs)) }

// WaitAny waits until one of rs is complete and returns its index and outcome. rs has at least one
// request, all of one process. Unlike MPI_Waitany it does not skip requests already reported:
// remove them from rs.
func WaitAny(ctx context.Context, rs ...Request) (int, Status, error) {
	i, st, err := core.WaitAny(ctx, requests(rs))
	return i, Status(st), err
}

// WaitSome waits until at least one of the requests is complete, and returns the indices of all
// that are. Wait then returns their outcomes. It fails only if ctx ends first.
func WaitSome(ctx context.Context, rs ...Request) ([]int, error) {
	return core.WaitSome(ctx, requests(rs))
}
