package engine

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// A fold is a receive of a Round that a function of the user's is to combine. Built-in
// operators combine while a message arrives, under the Engine's lock, in whoever drives. A
// function may panic, block, or call comm: it gets the whole message when that is there,
// with no lock held, on the goroutine of the collective.
type fold struct {
	dst, own, in mem.Buffer
	op           call.Op
	left         bool
	room         []byte // of in, from the scratch pool
}

// receiveToFold is IrecvReduce for a function of the user's.
func (rd *Round) receiveToFold(from int, f fold) {
	e, n := rd.ch.e, f.own.Len()
	e.progress.Lock()
	f.room = e.scratch.get(f.own.Size())
	e.progress.Unlock()
	f.in = mem.HostBytes(f.own.Type(), n, f.room)
	rd.folds = append(rd.folds, f)
	rd.receive(from, f.in, nil)
}

// fold calls the functions for what has arrived, in the order of the receives. They may
// not return.
func (rd *Round) fold() error {
	defer rd.dropFolds()
	for i := range rd.folds {
		if err := rd.folds[i].apply(); err != nil {
			return err
		}
	}
	return nil
}

// dropFolds takes back the room of the folds, into which nothing arrives any more.
func (rd *Round) dropFolds() {
	e := rd.ch.e
	e.progress.Lock()
	defer e.progress.Unlock()
	for _, f := range rd.folds {
		e.scratch.put(f.room)
	}
	clear(rd.folds)
	rd.folds = rd.folds[:0]
}

// apply combines in place, for which it may use what has arrived.
func (f *fold) apply() error {
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
