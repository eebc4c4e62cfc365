package round

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A fold is a receive of a Round whose message a user's function combines. Built-in operators
// combine while it arrives: on the driver's goroutine, with the lock. A user's function may panic,
// block, or call gompi: it runs when all has arrived, without lock, on the collective's goroutine.
type fold struct {
	dst, own, in mem.Buffer
	op           call.Op
	left         bool
	room         []byte // of in, from the scratch pool
}

// receiveToFold is IrecvReduce for a function of the user's.
func (rd *Round) receiveToFold(from int, f fold) {
	rd.progress.Lock()
	f.room = rd.ch.Engine.Mover.Scratch.Get(f.own.Size())
	rd.progress.Unlock()
	f.in = mem.HostLike(f.own, f.own.Len(), f.room)
	rd.folds = append(rd.folds, f)
	rd.receive(from, f.in, nil)
}

// fold calls the user's function, which may never return, for arrived messages, in receive order.
func (rd *Round) fold() error {
	defer rd.dropFolds()
	for i := range rd.folds {
		if err := rd.folds[i].apply(); err != nil {
			return err
		}
	}
	return nil
}

// dropFolds returns the scratch memory of the folds, into which nothing arrives any more.
func (rd *Round) dropFolds() {
	rd.progress.Lock()
	defer rd.progress.Unlock()
	for _, f := range rd.folds {
		rd.ch.Engine.Mover.Scratch.Put(f.room)
	}
	clear(rd.folds)
	rd.folds = rd.folds[:0]
}

// apply combines in place, and may overwrite the message.
func (f *fold) apply() error {
	if f.own.Len() == 0 {
		return nil
	}
	if f.left {
		f.op.Func(f.in, f.own)
		return mem.Copy(f.dst, f.in)
	}
	if !mem.Same(f.dst, f.own) {
		if err := mem.Copy(f.dst, f.own); err != nil {
			return err
		}
	}
	f.op.Func(f.dst, f.in)
	return nil
}
