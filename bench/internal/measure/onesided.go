package measure

import (
	"errors"

	"gompi/comm"
	"gompi/comm/window"
	"gompi/internal/mem"
)

// oneSidedOperations are the benchmarks of windows: rank 0 accesses memory of rank 1, which was
// allocated with the window and locked by all, and flushes. Rank 1 waits in a barrier.
func oneSidedOperations() []operation {
	return []operation{
		{name: "put", ranks: 2, blocks: oneWay, begin: openWindow, run: runPut, end: closeWindow, parts: fromWindow,
			timed: firstOnly, volume: times(1), bus: times(1)},
		{name: "get", ranks: 2, blocks: otherWay, begin: openWindow, run: runGet, end: closeWindow, parts: fromPeer,
			timed: firstOnly, volume: times(1), bus: times(1)},
		{name: "store", ranks: 2, blocks: oneWay, begin: openSharedWindow, run: runStore, end: closeWindow,
			parts: fromWindow, timed: firstOnly, volume: times(1), bus: times(1)},
		{name: "fetch_and_op", ranks: 2, noData: true, blocks: each(0, 0), begin: openCounter, run: runFetchAndOp,
			end: closeWindow, timed: firstOnly, volume: times(0), bus: times(0)},
	}
}

// otherWay: rank 0 gets rank 1's data.
func otherWay(rank, np int) (send, recv int) {
	recv, send = oneWay(rank, np)
	return send, recv
}

// room is the bytes of a part, for a block.
func (k *cell) room() int { return max(k.n*k.inputs.t.Size(), 8) }

// openWindow creates a window with room for a block on each rank.
func openWindow(k *cell) (err error) {
	if k.win, k.part, err = window.Allocate[byte](k.ctx, k.c, k.room()); err != nil {
		return err
	}
	return beginEpoch(k)
}

// openSharedWindow is openWindow with memory that all ranks load and store, if they share any.
func openSharedWindow(k *cell) (err error) {
	k.win, k.part, err = window.AllocateShared[byte](k.ctx, k.c, k.room())
	if errors.Is(err, comm.ErrArgument) {
		return openWindow(k)
	}
	if err != nil {
		return err
	}
	if k.theirs, err = window.Part[byte](k.win, 1); err != nil {
		return err
	}
	return beginEpoch(k)
}

func beginEpoch(k *cell) error {
	fill(k.part, unset)
	if k.rank == 1 && k.send.Len() > 0 {
		if err := mem.Copy(mem.Bytes(k.part[:k.send.Size()]), k.send.Raw()); err != nil {
			return err
		}
	}
	return errors.Join(k.win.LockAll(k.ctx), comm.Barrier(k.ctx, k.c))
}

// openCounter is openWindow for a window of numbers.
func openCounter(k *cell) (err error) {
	if k.win, _, err = window.Allocate[int64](k.ctx, k.c, 1); err != nil {
		return err
	}
	k.one, k.old = comm.Of([]int64{1}), comm.Of([]int64{0})
	return errors.Join(k.win.LockAll(k.ctx), comm.Barrier(k.ctx, k.c))
}

func closeWindow(k *cell) error { return errors.Join(k.win.UnlockAll(k.ctx), k.win.Free(k.ctx)) }

func runPut(k *cell) error {
	if k.rank != 0 {
		return nil
	}
	if err := k.win.Put(1, 0, k.send.Raw()); err != nil {
		return err
	}
	return k.win.Flush(k.ctx, 1)
}

func runGet(k *cell) error {
	if k.rank != 0 {
		return nil
	}
	if err := k.win.Get(1, 0, k.recv.Raw()); err != nil {
		return err
	}
	return k.win.Flush(k.ctx, 1)
}

// runStore is the lower bound of a put: the program's own copy.
func runStore(k *cell) error {
	switch {
	case k.theirs == nil:
		return runPut(k)
	case k.rank == 0:
		copy(k.theirs, k.send.Raw().HostSlice())
		k.win.Sync()
	}
	return nil
}

func runFetchAndOp(k *cell) error {
	if k.rank != 0 {
		return nil
	}
	if err := k.win.FetchAndOp(1, 0, k.one, k.old, comm.Sum); err != nil {
		return err
	}
	return k.win.Flush(k.ctx, 1)
}

// fromWindow expects the data of rank 0's put, after a barrier.
func fromWindow(k *cell) ([]part, error) {
	if err := comm.Barrier(k.ctx, k.c); err != nil || k.rank != 1 {
		return nil, err
	}
	return []part{{mem.HostBytes(k.inputs.t, k.n, k.part), k.inputs.by[0], 0}}, nil
}
