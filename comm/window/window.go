package window

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
)

// Operators of accumulates besides comm's.
const (
	// Replace stores the operand, so that an accumulate is a Put that is atomic for each element.
	Replace = rma.Replace
	// NoOp stores nothing, so that GetAccumulate is a Get that is atomic for each element.
	NoOp = rma.Fetch
)

// A Window is memory of each rank of a communicator (MPI_Win). Methods that begin operations, and
// flushes, may be called from several goroutines, other synchronization from one at a time. Places
// in the memory of a rank are numbers of elements. In a dynamic window they are addresses from
// Attach.
type Window struct {
	w    *rma.Window
	typ  comm.Type // of the elements; none in a dynamic window
	size int       // of an element; 1 in a dynamic window
	most uint      // the largest place, so that its offset in bytes fits an int
}

// Create makes a window of memory of each rank, with any number of elements (MPI_Win_create). It is
// collective over c. The memory is not copied, and belongs to the window until Free.
func Create[T comm.Scalar](ctx context.Context, c *comm.Comm, mine []T) (*Window, error) {
	return create(ctx, c, mem.TypeOf[T](), rma.Config{
		Kind: rma.Created, Base: uintptr(unsafe.Pointer(unsafe.SliceData(mine))), Keep: mine,
		Size: comm.Of(mine).Size(),
	})
}

// Allocate makes a window of n zeroed elements on this rank, and of each other rank's n there, and
// returns this rank's elements (MPI_Win_allocate). It is collective over c. The ranks of one host
// share the memory, which makes operations there much faster. The memory must not be touched after
// Free. If a rank cannot get its memory, all get comm.ErrMemory.
func Allocate[T comm.Scalar](ctx context.Context, c *comm.Comm, n int) (*Window, []T, error) {
	return allocate[T](ctx, c, rma.Allocated, n)
}

// AllocateShared is Allocate for ranks of one host, which may also load from and store to the
// memory of the others: Part returns it (MPI_Win_allocate_shared). The part of a rank begins where
// the previous rank's ends. The ranks have to share memory, as those of comm.SplitHost do.
func AllocateShared[T comm.Scalar](ctx context.Context, c *comm.Comm, n int) (*Window, []T, error) {
	return allocate[T](ctx, c, rma.Shared, n)
}

func allocate[T comm.Scalar](ctx context.Context, c *comm.Comm, kind rma.Kind, n int) (*Window, []T, error) {
	t := mem.TypeOf[T]()
	if n < 0 || n > 1<<47 {
		return nil, nil, fmt.Errorf("window: %w: %d elements: want 0 to 2^47", comm.ErrArgument, n)
	}
	w, err := create(ctx, c, t, rma.Config{Kind: kind, Size: n * t.Size()})
	if err != nil {
		return nil, nil, err
	}
	mine, err := Part[T](w, c.Rank())
	return w, mine, err
}

// Part returns the elements of a rank whose memory this rank shares: its own or, in a window of
// AllocateShared, any rank's (MPI_Win_shared_query). Between a store of one rank and a load of
// another, call Sync or another method that synchronizes.
func Part[T comm.Scalar](w *Window, rank int) ([]T, error) {
	if rank < 0 || rank >= w.w.Comm.Size() || w.typ != mem.TypeOf[T]() {
		return nil, fmt.Errorf("window: %w: the part of rank %d, as %v: want a rank up to %d, and %v",
			comm.ErrArgument, rank, mem.TypeOf[T](), w.w.Comm.Size()-1, w.typ)
	}
	base, n, ok := w.w.Memory(rank)
	if !ok {
		return nil, fmt.Errorf("window: %w: rank %d shares no memory with this one", comm.ErrArgument, rank)
	}
	if n == 0 {
		return []T{}, nil
	}
	return unsafe.Slice((*T)(*(*unsafe.Pointer)(unsafe.Pointer(&base))), n/w.size), nil
}

// CreateDynamic makes a window without memory, to which each rank may attach memory at any time
// (MPI_Win_create_dynamic). It is collective over c.
func CreateDynamic(ctx context.Context, c *comm.Comm) (*Window, error) {
	return create(ctx, c, mem.NoType, rma.Config{Kind: rma.Dynamic})
}

// create makes a window over a copy of c.
func create(ctx context.Context, c *comm.Comm, t comm.Type, cfg rma.Config) (*Window, error) {
	own, err := c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	own.SetName(c.Name() + "/window")
	cfg.Unit = max(t.Size(), 1)
	made, err := rma.New(ctx, (*core.Comm)(own), cfg)
	if err != nil {
		return nil, fmt.Errorf("window: %w", err)
	}
	return &Window{w: made, typ: t, size: cfg.Unit, most: math.MaxInt / uint(cfg.Unit)}, nil
}

// Attach makes b, host memory, accessible in a dynamic window, and returns its address, by which
// other ranks access it (MPI_Win_attach). Only this rank calls Attach. Attached memory must not
// overlap. An operation on other memory has no effect and fails with ErrArgument. If the ranks
// share no memory, the following Flush, or another method that flushes, fails instead.
func (w *Window) Attach(b comm.Buffer) (at int, err error) {
	if w.w.Kind() != rma.Dynamic || !b.IsHost() {
		return 0, fmt.Errorf("attach: %w: want host memory, and a dynamic window", comm.ErrArgument)
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b.HostSlice())))
	return int(base), w.w.Attach(base, b.Size(), b)
}

// Detach undoes Attach (MPI_Win_detach).
func (w *Window) Detach(b comm.Buffer) error {
	return w.w.Detach(uintptr(unsafe.Pointer(unsafe.SliceData(b.HostSlice()))))
}

// Free ends the window when all operations are done (MPI_Win_free). It is collective. Memory from
// Allocate must not be touched any more.
func (w *Window) Free(ctx context.Context) error { return w.w.Free(ctx) }

// Comm returns the window's communicator, for queries only: its ranks are the window's, and its
// error is the reason of a broken window.
func (w *Window) Comm() *comm.Comm { return (*comm.Comm)(w.w.Comm) }

// Len returns the number of elements in the part of a rank.
func (w *Window) Len(rank int) int { return w.w.Size(rank) / w.size }
