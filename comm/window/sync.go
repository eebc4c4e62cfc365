package window

import "context"

// Fence completes all operations of all ranks, and begins an epoch in which all may begin others
// (MPI_Win_fence). It is collective. It costs a Barrier, and a message to and from each rank that
// serves operations of this one.
func (w *Window) Fence(ctx context.Context) error { return w.w.Fence(ctx) }

// Post lets some ranks access this rank's memory until Wait (MPI_Win_post). Each of them calls
// Start with this rank, and Complete. Post does not wait.
func (w *Window) Post(ranks ...int) error { return w.w.Post(ranks, false) }

// Start begins an access epoch to some ranks, after they have called Post with this rank
// (MPI_Win_start).
func (w *Window) Start(ctx context.Context, ranks ...int) error { return w.w.Start(ctx, ranks, false) }

// Complete ends the epoch of Start: all its operations are done (MPI_Win_complete).
func (w *Window) Complete(ctx context.Context) error { return w.w.Complete(ctx) }

// Wait waits until all ranks of this rank's Post have called Complete (MPI_Win_wait).
func (w *Window) Wait(ctx context.Context) error { return w.w.Wait(ctx) }

// Test reports whether they have; if so, it has ended the epoch as Wait does (MPI_Win_test).
func (w *Window) Test(ctx context.Context) (bool, error) { return w.w.Test(ctx) }

// Lock waits until no other rank holds a lock of a rank's memory, and takes the lock (MPI_Win_lock,
// exclusive). Locks are granted in the order of requests. The rank itself, like others, locks its
// memory before an access.
func (w *Window) Lock(ctx context.Context, rank int) error { return w.w.Lock(ctx, rank) }

// RLock is Lock that several ranks may hold at the same time (MPI_Win_lock, shared).
func (w *Window) RLock(ctx context.Context, rank int) error { return w.w.RLock(ctx, rank) }

// Unlock ends Lock and RLock: all operations on that rank's memory are done (MPI_Win_unlock).
func (w *Window) Unlock(ctx context.Context, rank int) error { return w.w.Unlock(ctx, rank) }

// LockAll is RLock of all ranks (MPI_Win_lock_all). It is not collective.
func (w *Window) LockAll(ctx context.Context) error { return w.w.LockAll(ctx) }

// UnlockAll is Unlock of all ranks.
func (w *Window) UnlockAll(ctx context.Context) error { return w.w.UnlockAll(ctx) }

// Flush waits until all operations on a rank's memory are done, at both ends (MPI_Win_flush).
func (w *Window) Flush(ctx context.Context, rank int) error { return w.w.Flush(ctx, rank) }

// FlushAll is Flush of all ranks.
func (w *Window) FlushAll(ctx context.Context) error { return w.w.FlushAll(ctx) }

// FlushLocal waits until the buffers of operations on a rank's memory may be used again
// (MPI_Win_flush_local).
func (w *Window) FlushLocal(ctx context.Context, rank int) error { return w.w.FlushLocal(ctx, rank) }

// FlushLocalAll is FlushLocal of all ranks.
func (w *Window) FlushLocalAll(ctx context.Context) error { return w.w.FlushLocalAll(ctx) }

// Sync orders this rank's loads and stores of shared memory before and after it (MPI_Win_sync).
func (w *Window) Sync() { w.w.Sync() }
