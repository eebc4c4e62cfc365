package window

import "context"

// Fence ends all operations that any rank has begun, and begins a time in which all may begin
// others (MPI_Win_fence). It is collective. It costs a Barrier, and a message to and from each rank
// that serves operations of this one.
func (w *Window) Fence(ctx context.Context) error { return w.w.Fence(ctx) }

// Post lets some ranks access this one's memory until Wait (MPI_Win_post). Each of them calls Start
// with this rank, and Complete. Post waits for nothing.
func (w *Window) Post(ranks ...int) error { return w.w.Post(ranks, false) }

// Start begins to access the memory of some ranks, when they have called Post with this one
// (MPI_Win_start).
func (w *Window) Start(ctx context.Context, ranks ...int) error { return w.w.Start(ctx, ranks, false) }

// Complete ends what Start has begun: all operations are done (MPI_Win_complete).
func (w *Window) Complete(ctx context.Context) error { return w.w.Complete(ctx) }

// Wait waits until all ranks that this one has posted to have called Complete (MPI_Win_wait).
func (w *Window) Wait(ctx context.Context) error { return w.w.Wait(ctx) }

// Test reports whether they have; then it has done what Wait does (MPI_Win_test).
func (w *Window) Test(ctx context.Context) (bool, error) { return w.w.Test(ctx) }

// Lock waits until no other rank holds a lock of a rank's memory, and takes it (MPI_Win_lock,
// exclusive). Locks are given in the order in which they are asked for. The rank itself locks its
// memory like others before it accesses it.
func (w *Window) Lock(ctx context.Context, rank int) error { return w.w.Lock(ctx, rank) }

// RLock is Lock that other ranks may hold at the same time by RLock (MPI_Win_lock, shared).
func (w *Window) RLock(ctx context.Context, rank int) error { return w.w.RLock(ctx, rank) }

// Unlock is the end of Lock and RLock: all operations on that rank's memory are done
// (MPI_Win_unlock).
func (w *Window) Unlock(ctx context.Context, rank int) error { return w.w.Unlock(ctx, rank) }

// LockAll is RLock of all ranks (MPI_Win_lock_all). It is not collective.
func (w *Window) LockAll(ctx context.Context) error { return w.w.LockAll(ctx) }

// UnlockAll is Unlock of all ranks.
func (w *Window) UnlockAll(ctx context.Context) error { return w.w.UnlockAll(ctx) }

// Flush waits until all operations on a rank's memory are done, here and there (MPI_Win_flush).
func (w *Window) Flush(ctx context.Context, rank int) error { return w.w.Flush(ctx, rank) }

// FlushAll is Flush of all ranks.
func (w *Window) FlushAll(ctx context.Context) error { return w.w.FlushAll(ctx) }

// FlushLocal waits until the buffers of operations on a rank's memory may be used again
// (MPI_Win_flush_local).
func (w *Window) FlushLocal(ctx context.Context, rank int) error { return w.w.FlushLocal(ctx, rank) }

// FlushLocalAll is FlushLocal of all ranks.
func (w *Window) FlushLocalAll(ctx context.Context) error { return w.w.FlushLocalAll(ctx) }

// Sync orders this rank's loads and stores of shared memory before it and behind it
// (MPI_Win_sync).
func (w *Window) Sync() { w.w.Sync() }
