//go:build linux && cgo

package main

import (
	"context"
	"runtime"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/core"
)

// lends has C take memory of a duplicate of c, its world, where ranks share none: it is Go's, and
// pinned.
func lends(ctx context.Context, c *comm.Comm) (number int64, err error) {
	newCommunicator((*core.Comm)(c))
	d, err := c.Dup(ctx)
	if err != nil {
		return 0, err
	}
	number = newCommunicator((*core.Comm)(d))
	of, err := find(number)
	for range 3 {
		if err == nil {
			_, err = of.alloc(1)
		}
	}
	return number, err
}

// collect returns when the garbage of now is collected, and its finalizers have run: the finalizer
// of a Pinner panics if it still pins. Finalizers run one after the other, and finalizers of a
// later collection later.
func collect() {
	for range 2 {
		ran := make(chan struct{})
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(ran) })
		runtime.GC()
		<-ran
	}
}

func TestMemoryOfAFreedCommunicatorIsNotPinned(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		number, err := lends(ctx, c)
		if err == nil {
			err = dissolve(number)
		}
		return err
	})
	collect()
	for _, n := range communicators.numbers() {
		communicators.remove(n)
	}
}

func TestMemoryIsNotPinnedAfterFinalize(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		_, err := lends(ctx, c)
		if err == nil {
			state.Store(running)
			defer state.Store(fresh)
			err = leave()
		}
		return err
	})
	collect()
}
