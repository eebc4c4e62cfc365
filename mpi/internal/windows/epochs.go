package windows

import (
	"slices"

	"gompi/internal/core/lease"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

// epochs are the current epochs of a window: the parts that a rank may access (MPI-4.1 section
// 12.5). A fence may have begun an epoch that it need not end.
type epochs struct {
	*lease.Window              // Fenced and All
	parts         []lease.Part // Locked and Started
	posted        bool
}

func epochsOf(w *lease.Window) epochs { return epochs{Window: w, parts: w.Parts()} }

// anyLocked reports whether any rank is locked, other than by MPI_Win_lock_all.
func (e *epochs) anyLocked() bool {
	return slices.ContainsFunc(e.parts, func(p lease.Part) bool { return p.Locked })
}

// Assertions, with numbers of their own.
const (
	noCheck = 1 << iota
	noStore
	noPut
	noPrecede
	noSucceed
)

func outOfTurn(format string, args ...any) error { return errs.New(errs.RMASync, format, args...) }

// checkIdle returns an error within an epoch that a call has to end.
func (w *Win) checkIdle() error {
	switch {
	case w.Started:
		return outOfTurn("MPI_Win_complete was not called")
	case w.posted:
		return outOfTurn("MPI_Win_wait was not called")
	case w.All || w.anyLocked():
		return outOfTurn("a rank is locked")
	}
	return nil
}

// mayAccess returns an error if a rank may not be accessed now.
func (w *Win) mayAccess(rank int) error {
	if p := &w.parts[rank]; w.Fenced || w.All || p.Locked || p.Started {
		return nil
	}
	return outOfTurn("rank %d is accessed between no calls that synchronize", rank)
}

func (w *Win) checkRank(rank int) error {
	if rank < 0 || rank >= len(w.parts) {
		return errs.New(errs.Rank, "rank %d is not from 0 to %d", rank, len(w.parts)-1)
	}
	return nil
}

var fences = comms.In("MPI_Win_fence")

func WinFence(assertion int, w *Win) error {
	if err := w.checkIdle(); err != nil {
		return err
	}
	w.Fenced = assertion&noSucceed == 0
	return inRange(w.w.Fence(fences))
}

// ranksOf returns the numbers in the window of the ranks of a group.
func (w *Win) ranksOf(g *comms.Group) ([]int, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	ranks := g.Translate(w.w.Comm.Group())
	if slices.ContainsFunc(ranks, func(r int) bool { return r < 0 }) {
		return nil, errs.New(errs.Rank, "the group has ranks that are not of the window")
	}
	return ranks, nil
}

func WinStart(g *comms.Group, assertion int, w *Win) error {
	if w.Started || w.All || w.anyLocked() {
		return outOfTurn("an epoch of access was not ended")
	}
	ranks, err := w.ranksOf(g)
	if err != nil {
		return err
	}
	if err := w.w.Start(comms.Forever, ranks, assertion&noCheck != 0); err != nil {
		return err
	}
	w.Fenced, w.Started = false, true
	for _, r := range ranks {
		w.parts[r].Started = true
	}
	return nil
}

func WinComplete(w *Win) error {
	if !w.Started {
		return outOfTurn("MPI_Win_start was not called")
	}
	w.Started = false
	for r := range w.parts {
		w.parts[r].Started = false
	}
	return inRange(w.w.Complete(comms.Forever))
}

func WinPost(g *comms.Group, assertion int, w *Win) error {
	if w.posted {
		return outOfTurn("MPI_Win_wait was not called")
	}
	ranks, err := w.ranksOf(g)
	if err != nil {
		return err
	}
	w.Fenced, w.posted = false, true
	return w.w.Post(ranks, assertion&noCheck != 0)
}

func WinWait(w *Win) error {
	w.posted = false
	return w.w.Wait(comms.Forever)
}

func WinTest(w *Win) (bool, error) {
	over, err := w.w.Test(comms.Forever)
	w.posted = !over
	return over, err
}

func (w *Win) CheckPosted() error {
	if err := w.Check(); err != nil {
		return err
	}
	if !w.posted {
		return outOfTurn("MPI_Win_post was not called")
	}
	return nil
}

// Lock types.
const (
	lockExclusive = 301
	lockShared    = 302
)

func WinLock(how, rank, assertion int, w *Win) error {
	switch {
	case how != lockExclusive && how != lockShared:
		return errs.New(errs.LockType, "the type of the lock is not MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED")
	case rank == abi.ProcNull:
		return nil
	case w.Started || w.All:
		return outOfTurn("an epoch of access was not ended")
	}
	if err := w.checkRank(rank); err != nil {
		return err
	}
	if w.parts[rank].Locked {
		return outOfTurn("rank %d is locked already", rank)
	}
	w.Fenced = false
	var err error
	switch {
	case assertion&noCheck != 0:
		err = w.w.LockUnchecked(rank)
	case how == lockExclusive:
		err = w.w.Lock(comms.Forever, rank)
	default:
		err = w.w.RLock(comms.Forever, rank)
	}
	w.parts[rank].Locked = err == nil
	return err
}

func WinUnlock(rank int, w *Win) error {
	if rank == abi.ProcNull {
		return nil
	}
	if err := w.checkRank(rank); err != nil {
		return err
	}
	if !w.parts[rank].Locked {
		return outOfTurn("rank %d is not locked", rank)
	}
	w.parts[rank].Locked = false
	return inRange(w.w.Unlock(comms.Forever, rank))
}

func WinLockAll(assertion int, w *Win) error {
	if w.Started || w.All || w.anyLocked() {
		return outOfTurn("an epoch of access was not ended")
	}
	w.Fenced = false
	if assertion&noCheck == 0 {
		if err := w.w.LockAll(comms.Forever); err != nil {
			return err
		}
	} else {
		for rank := range w.parts {
			if err := w.w.LockUnchecked(rank); err != nil {
				return err
			}
		}
	}
	w.All = true
	return nil
}

func WinUnlockAll(w *Win) error {
	if !w.All {
		return outOfTurn("MPI_Win_lock_all was not called")
	}
	w.All = false
	return inRange(w.w.UnlockAll(comms.Forever))
}

// checkLocked returns an error unless a rank is locked: a flush needs a lock.
func (w *Win) checkLocked(rank int) error {
	if err := w.checkRank(rank); err != nil {
		return err
	}
	if !w.All && !w.parts[rank].Locked {
		return outOfTurn("rank %d is not locked", rank)
	}
	return nil
}

func (w *Win) CheckAnyLocked() error {
	if err := w.Check(); err != nil {
		return err
	}
	if !w.All && !w.anyLocked() {
		return outOfTurn("no rank is locked")
	}
	return nil
}

func WinFlush(rank int, w *Win) error {
	if rank == abi.ProcNull {
		return nil
	}
	if err := w.checkLocked(rank); err != nil {
		return err
	}
	return inRange(w.w.Flush(comms.Forever, rank))
}

func WinFlushAll(w *Win) error {
	return inRange(w.w.FlushAll(comms.Forever))
}

func WinFlushLocal(rank int, w *Win) error {
	if rank == abi.ProcNull {
		return nil
	}
	if err := w.checkLocked(rank); err != nil {
		return err
	}
	return inRange(w.w.FlushLocal(comms.Forever, rank))
}

func WinFlushLocalAll(w *Win) error {
	return inRange(w.w.FlushLocalAll(comms.Forever))
}

func WinSync(w *Win) error {
	w.w.Sync()
	return nil
}
