package rma

import (
	"cmp"
	"context"
	"fmt"

	"gompi/internal/core/lease"
)

// holding calls f with the lock of a part's elements held. It fails if the window breaks during
// the wait: a rank may have died with the lock. The lock is held for the elements of a single
// call. Goroutines of this rank exclude each other by a mutex first, which costs less than
// spinning, and which the race detector sees where the words lie in shared memory.
func (w *Window) holding(c *lease.Control, f func()) error {
	if c == w.parts[w.me].Control {
		w.mine.Lock()
		defer w.mine.Unlock()
	}
	for i := 1; !c.Element.CompareAndSwap(0, uint32(w.me)+1); i++ {
		if i%spins != 0 {
			continue
		}
		if err := w.Comm.Err(); err != nil {
			return err
		}
		w.Comm.Progress(false)
	}
	f()
	c.Element.Store(0)
	return nil
}

// Lock waits until no other rank has locked the part of a rank, and locks the part (MPI_Win_lock,
// MPI_LOCK_EXCLUSIVE).
func (w *Window) Lock(ctx context.Context, rank int) error {
	return w.fault("window lock", rank, w.lock(ctx, rank, lease.ForWriting))
}

// RLock is Lock shared with other ranks that RLock the part (MPI_LOCK_SHARED).
func (w *Window) RLock(ctx context.Context, rank int) error {
	return w.fault("window rlock", rank, w.lock(ctx, rank, lease.ForReading))
}

// LockUnchecked begins to access a part like RLock, without a wait. The caller knows that no
// other rank holds a conflicting lock (MPI_MODE_NOCHECK).
func (w *Window) LockUnchecked(rank int) error {
	if err := w.checkRank(rank); err != nil {
		return w.fault("window lock", rank, err)
	}
	w.parts[rank].Held = lease.Unchecked
	return nil
}

// LockAll is RLock of all parts (MPI_Win_lock_all).
func (w *Window) LockAll(ctx context.Context) error {
	for rank := range w.parts {
		if err := w.lock(ctx, rank, lease.ForReading); err != nil {
			return w.fault("window lockall", rank, err)
		}
	}
	return nil
}

// Unlock flushes the part of a rank and gives its lock back.
func (w *Window) Unlock(ctx context.Context, rank int) error {
	return w.fault("window unlock", rank, w.unlock(ctx, rank))
}

// UnlockAll is Unlock of all parts.
func (w *Window) UnlockAll(ctx context.Context) error {
	var refused error
	for rank := range w.parts {
		if w.parts[rank].Held == lease.Unlocked {
			continue
		}
		if err := w.unlock(ctx, rank); !goesOn(&refused, err) {
			return w.fault("window unlockall", rank, err)
		}
	}
	return w.fault("window unlockall", -1, refused)
}

func (w *Window) checkRank(rank int) error {
	if rank < 0 || rank >= len(w.parts) {
		return wrong("rank %d: want 0 to %d", rank, len(w.parts)-1)
	}
	return nil
}

func (w *Window) lock(ctx context.Context, rank int, how lease.Hold) error {
	if err := w.checkRank(rank); err != nil {
		return err
	}
	if w.parts[rank].Held != lease.Unlocked {
		return wrong("the part of rank %d is locked by this rank already", rank)
	}
	if err := w.Comm.Err(); err != nil {
		return err
	}
	w.poll()
	if w.shared.Local {
		c := w.parts[rank].Control
		ticket := c.Arrive()
		if err := w.await(ctx, rank, func() bool { return c.MayBegin(ticket, how) }); err != nil {
			return err
		}
		c.Begin(how)
	} else if err := w.askForLock(ctx, rank, how); err != nil {
		return err
	}
	w.parts[rank].Held = how
	return nil
}

func (w *Window) unlock(ctx context.Context, rank int) error {
	w.poll()
	if err := w.checkRank(rank); err != nil {
		return err
	}
	how := w.parts[rank].Held
	if how == lease.Unlocked {
		return wrong("the part of rank %d is not locked by this rank", rank)
	}
	var refused error
	if err := w.flush(ctx, rank); !goesOn(&refused, err) {
		return err
	}
	w.parts[rank].Held = lease.Unlocked
	switch {
	case how == lease.Unchecked:
	case w.shared.Local:
		w.parts[rank].Control.End(how)
	default:
		return cmp.Or(w.sendLock(reqUnlock, rank, how), refused)
	}
	return refused
}

// spins is the number of times that a rank looks for its turn before polling.
const spins = 256

// await waits for this rank's turn. If ctx ends, the window breaks, too: otherwise the turn would
// come later, and block the lock.
func (w *Window) await(ctx context.Context, rank int, turn func() bool) error {
	for i := 1; !turn(); i++ {
		if i < spins {
			continue
		}
		if err := w.Comm.Err(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			w.Comm.Revoke(fmt.Sprintf("gave up to wait for the lock of rank %d: %v", rank, context.Cause(ctx)))
			return context.Cause(ctx)
		}
		w.Comm.Progress(true)
	}
	return nil
}
