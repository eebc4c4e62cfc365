package rma

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/core"
	"gompi/internal/core/layout"
	"gompi/internal/mem"
)

// onWindow runs fn on every rank of a window of 16 bytes each.
func onWindow(t *testing.T, ranks int, fn func(ctx context.Context, w *Window) error) {
	t.Helper()
	for rank, err := range commtest.Ranks(t.Context(), ranks, comm.Config{},
		func(ctx context.Context, c *comm.Comm) error {
			own, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			w, err := New(ctx, (*core.Comm)(own), Config{Kind: Allocated, Size: 16, Unit: 1})
			if err != nil {
				return err
			}
			return errors.Join(fn(ctx, w), w.Free(ctx))
		}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// C leaves a call that synchronizes to Go until one of them has polled: so all do, when it is time.
func TestEveryCallThatSynchronizesPolls(t *testing.T) {
	onWindow(t, 1, func(ctx context.Context, w *Window) error {
		for name, call := range map[string]func() error{
			"lock and unlock": func() error { return errors.Join(w.Lock(ctx, 0), w.Unlock(ctx, 0)) },
			"lockall":         func() error { return errors.Join(w.LockAll(ctx), w.UnlockAll(ctx)) },
			"flush":           func() error { return w.Flush(ctx, 0) },
			"flushall":        func() error { return w.FlushAll(ctx) },
			"flushlocal":      func() error { return w.FlushLocal(ctx, 0) },
			"flushlocalall":   func() error { return w.FlushLocalAll(ctx) },
			"sync":            func() error { w.Sync(); return nil },
		} {
			w.shared.Left = 0
			if err := call(); err != nil {
				return err
			}
			if w.shared.Left == 0 {
				t.Errorf("%s has not polled", name)
			}
		}
		return nil
	})
}

// A flush asks the target only for what it has not answered: an answer says that all before it is
// done.
func TestAFlushBehindAnAnswerSendsNothing(t *testing.T) {
	onWindow(t, 2, func(ctx context.Context, w *Window) error {
		if w.me == 1 {
			return nil // Free waits
		}
		x, old, got := mem.Of([]int64{1}), mem.Of([]int64{0}), mem.Of([]int64{0})
		for _, step := range []struct {
			name string
			call func() error
			sent bool
		}{
			{"put", func() error { return w.PutRun(1, 0, x) }, true},
			{"fetchandop", func() error { return w.FetchAndOp(1, 0, x, old, Of(mem.Sum, mem.I64)) }, false},
			{"accumulate", func() error { return w.Accumulate(Run(1, 0, 8), x, Of(mem.Sum, mem.I64), nil) }, true},
			{"get", func() error { return w.GetRun(1, 8, got) }, false},
			{"put again", func() error { return w.PutRun(1, 0, x) }, true},
			{"flush", func() error { return w.Flush(ctx, 1) }, false},
		} {
			if err := step.call(); err != nil {
				return err
			}
			if got := w.pending[1].sent; got != step.sent {
				t.Errorf("behind %s a flush asks the target: %v, want %v", step.name, got, step.sent)
			}
		}
		return nil
	})
}

// An epoch remembers the requests that are under way, not those that callers have waited for.
func TestRequestsThatAreOverAreForgotten(t *testing.T) {
	onWindow(t, 2, func(ctx context.Context, w *Window) error {
		if w.me == 1 {
			return nil // Free waits
		}
		one, old, how := []int32{1}, []int32{0}, Of(mem.Sum, mem.I32)
		for i := range int32(1000) {
			r, err := w.Requested(func(keep Keep) error {
				return w.GetAccumulate(Run(1, 0, 4), mem.Of(one), mem.Of(old), how, keep)
			})
			if err == nil {
				_, err = r.Wait(ctx)
			}
			if err != nil || old[0] != i {
				return fmt.Errorf("call %d: %d, %v", i, old[0], err)
			}
		}
		if n := cap(w.pending[1].callers); n > 32 {
			t.Errorf("room for %d requests is kept, want 32 at most", n)
		}
		return w.Flush(ctx, 1)
	})
}

// What a goroutine has started is done when its flush returns, also while others flush.
func TestFlushesOfSeveralGoroutines(t *testing.T) {
	onWindow(t, 2, func(ctx context.Context, w *Window) error {
		if w.me == 1 {
			return nil // Free waits
		}
		const goroutines, calls = 4, 10000
		how, wrong := Of(mem.Sum, mem.I32), make([]error, goroutines)
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				one, old := []int32{1}, []int32{-1}
				for i := range int32(calls) {
					old[0] = -1
					if err := errors.Join(w.FetchAndOp(1, 4*g, mem.Of(one), mem.Of(old), how),
						w.Flush(ctx, 1)); err != nil {
						wrong[g] = err
						return
					}
					if old[0] != i {
						wrong[g] = fmt.Errorf("goroutine %d: after the flush of call %d the result is %d", g, i, old[0])
						return
					}
				}
			})
		}
		all.Wait()
		if n := len(w.pending[1].requests); n > 0 {
			t.Errorf("%d requests are kept after the last flush, want none", n)
		}
		return errors.Join(wrong...)
	})
}

// What is attached may touch, and be less than all between the first byte of a target and the last.
func TestWhatIsAttachedMayBeAccessed(t *testing.T) {
	memory := make([]byte, 1<<20) // which does not move, as a stack does
	at := int(uintptr(unsafe.Pointer(&memory[0])))
	for rank, err := range commtest.Ranks(t.Context(), 1, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		w, err := New(ctx, (*core.Comm)(c), Config{Kind: Dynamic, Unit: 1})
		if err != nil {
			return err
		}
		for _, g := range []struct{ from, bytes int }{{16, 8}, {0, 8}, {8, 8}, {40, 8}, {40, 0}, {44, 0},
			{4, 0}, {26, 0}} {
			if err := w.Attach(uintptr(at+g.from), g.bytes, nil); err != nil {
				return err
			}
		}
		pairs := layout.Loop{Count: 2, Each: 8, Stride: 24}.Layout()
		for _, tt := range []struct {
			t    Target
			want bool
		}{
			{Run(0, at, 24), true}, {Run(0, at+4, 16), true}, {Run(0, at+4, 24), false}, {Run(0, at-1, 4), false},
			{Run(0, at+40, 8), true},
			{Run(0, at+46, 2), true}, {Run(0, at+26, 1), false}, {Run(0, at+32, 16), false},
			{Run(0, math.MaxInt-2, 8), false}, {Target{Rank: 0, At: at + 16, Layout: pairs}, true},
			{Target{Rank: 0, At: at + 8, Layout: pairs}, false},
		} {
			b := mem.Bytes(make([]byte, tt.t.Layout.Size()))
			if err := w.Put(tt.t, b, nil); (err == nil) != tt.want || err != nil && !errors.Is(err, ErrRange) {
				t.Errorf("%+v from %#x on: %v, want that it is attached: %v", tt.t, at, err, tt.want)
			}
		}
		return errors.Join(w.Detach(uintptr(at+8)), w.Free(ctx))
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	runtime.KeepAlive(memory)
}
