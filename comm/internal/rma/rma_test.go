package rma

import (
	"context"
	"errors"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem"
)

// onWindow runs fn on every rank of a window of 16 bytes each.
func onWindow(t *testing.T, ranks int, fn func(ctx context.Context, w *Window) error) {
	t.Helper()
	for rank, err := range commtest.Ranks(t.Context(), ranks, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		own, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		w, err := New(ctx, own, Config{Kind: Allocated, Size: 16, Unit: 1})
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
		x, old := mem.Of([]int64{1}), mem.Of([]int64{0})
		for _, step := range []struct {
			name string
			call func() error
			sent bool
		}{
			{"put", func() error { return w.PutRun(1, 0, x) }, true},
			{"fetchandop", func() error { return w.FetchAndOp(1, 0, x, old, Of(mem.Sum, mem.I64)) }, false},
			{"accumulate", func() error { return w.Accumulate(Run(1, 0, 8), x, Of(mem.Sum, mem.I64), nil) }, true},
			{"get", func() error { return w.GetRun(1, 8, old) }, false},
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
