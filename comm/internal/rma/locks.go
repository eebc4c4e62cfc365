package rma

import (
	"context"
	"fmt"
	"sync/atomic"
)

// A control is the words of a part by which ranks exclude each other, in memory that all of them
// share. Each group has a cache line of its own.
type control struct {
	element atomic.Uint32 // of accumulates that no instruction does: 1 + the rank that holds it
	_       [60]byte

	// A lock of readers and writers that serves in the order of arrival. Who arrives takes the next
	// ticket. A reader begins when all before it have begun, if they read, or ended, if they write:
	// begun is its ticket. A writer begins when all before it have ended: ended is its ticket.
	tickets atomic.Uint32
	_       [60]byte
	begun   atomic.Uint32
	ended   atomic.Uint32
	_       [56]byte
}

// holding calls f with the lock of a part's elements held. It fails if the window breaks while it
// waits: a rank may have died with the lock. It is held for as long as the elements of one call
// take. Goroutines of this rank exclude each other by a mutex first, which costs less than to spin,
// and which the race detector sees where the words lie in shared memory.
func (w *Window) holding(c *control, f func()) error {
	if c == w.parts[w.me].ctl {
		w.mine.Lock()
		defer w.mine.Unlock()
	}
	for i := 1; !c.element.CompareAndSwap(0, uint32(w.me)+1); i++ {
		if i%spins != 0 {
			continue
		}
		if err := w.Comm.Err(); err != nil {
			return err
		}
		w.door.Progress()
	}
	f()
	c.element.Store(0)
	return nil
}

// arrive takes a ticket.
func (c *control) arrive() uint32 { return c.tickets.Add(1) - 1 }

// mayBegin reports whether it is a ticket's turn.
func (c *control) mayBegin(ticket uint32, exclusive bool) bool {
	if exclusive {
		return c.ended.Load() == ticket
	}
	return c.begun.Load() == ticket
}

// begin begins to hold the lock: the next reader need not wait for a reader.
func (c *control) begin(exclusive bool) {
	if !exclusive {
		c.begun.Add(1)
	}
}

// end gives the lock back.
func (c *control) end(exclusive bool) {
	if exclusive {
		c.begun.Add(1)
	}
	c.ended.Add(1)
}

// A hold is what this rank has locked of a part.
type hold uint8

const (
	unlocked hold = iota
	shared
	exclusive
	unchecked // without a lock, since the caller says that nothing conflicts
)

// Lock waits until no other rank has locked the part of a rank, and locks it (MPI_Win_lock,
// MPI_LOCK_EXCLUSIVE).
func (w *Window) Lock(ctx context.Context, rank int) error {
	return w.fault("window lock", rank, w.lock(ctx, rank, exclusive))
}

// RLock is Lock together with other ranks that RLock it (MPI_LOCK_SHARED).
func (w *Window) RLock(ctx context.Context, rank int) error {
	return w.fault("window rlock", rank, w.lock(ctx, rank, shared))
}

// LockUnchecked begins to access a part like RLock where the caller knows that no other rank holds
// a lock that conflicts (MPI_MODE_NOCHECK). It waits for nothing.
func (w *Window) LockUnchecked(rank int) error {
	if err := w.checkRank(rank); err != nil {
		return w.fault("window lock", rank, err)
	}
	w.held[rank] = unchecked
	return nil
}

// LockAll is RLock of all parts (MPI_Win_lock_all).
func (w *Window) LockAll(ctx context.Context) error {
	for rank := range w.parts {
		if err := w.lock(ctx, rank, shared); err != nil {
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
	for rank := range w.parts {
		if w.held[rank] == unlocked {
			continue
		}
		if err := w.unlock(ctx, rank); err != nil {
			return w.fault("window unlockall", rank, err)
		}
	}
	return nil
}

func (w *Window) checkRank(rank int) error {
	if rank < 0 || rank >= len(w.parts) {
		return wrong("rank %d: want 0 to %d", rank, len(w.parts)-1)
	}
	return nil
}

func (w *Window) lock(ctx context.Context, rank int, how hold) error {
	if err := w.checkRank(rank); err != nil {
		return err
	}
	if w.held[rank] != unlocked {
		return wrong("the part of rank %d is locked by this rank already", rank)
	}
	if err := w.Comm.Err(); err != nil {
		return err
	}
	if w.local {
		c := w.parts[rank].ctl
		ticket := c.arrive()
		if err := w.await(ctx, rank, func() bool { return c.mayBegin(ticket, how == exclusive) }); err != nil {
			return err
		}
		c.begin(how == exclusive)
	} else if err := w.askForLock(ctx, rank, how); err != nil {
		return err
	}
	w.held[rank] = how
	return nil
}

func (w *Window) unlock(ctx context.Context, rank int) error {
	if err := w.checkRank(rank); err != nil {
		return err
	}
	how := w.held[rank]
	if how == unlocked {
		return wrong("the part of rank %d is not locked by this rank", rank)
	}
	if err := w.flush(ctx, rank); err != nil {
		return err
	}
	w.held[rank] = unlocked
	switch {
	case how == unchecked:
	case w.local:
		w.parts[rank].ctl.end(how == exclusive)
	default:
		return w.giveLockBack(rank, how)
	}
	return nil
}

// spins is how often a rank looks for its turn before it polls.
const spins = 256

// await waits until it is this rank's turn. ctx ends only together with the window: its turn would
// come.
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
		w.door.Progress()
	}
	return nil
}
