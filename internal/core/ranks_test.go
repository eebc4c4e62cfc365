package core_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/window"
	"gompi/internal/core"
	"gompi/internal/core/network"
	"gompi/internal/core/rma"
)

type rankFunc = func(ctx context.Context, c *comm.Comm) error

// inBubble runs fn on p goroutine ranks inside a bubble, where a deadlock fails
// the test at once, and fails the test with every error.
func inBubble(t *testing.T, p int, fn rankFunc) {
	t.Helper()
	withConfig(t, p, comm.Config{}, fn)
}

func withConfig(t *testing.T, p int, cfg comm.Config, fn rankFunc) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { commtest.RunConfig(t, p, cfg, fn) })
}

// outcomes is inBubble for ranks that are expected to fail: it returns what each
// returned.
func outcomes(t *testing.T, p int, fn rankFunc) (errs []error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { errs = commtest.Ranks(t.Context(), p, comm.Config{}, fn) })
	return errs
}

func equal[T comparable](what string, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
	return nil
}

// inside returns the communicator of this package that c is.
func inside(c *comm.Comm) *core.Comm { return (*core.Comm)(c) }

func insideWindow(w *window.Window) *rma.Window {
	return (*rma.Window)(reflect.ValueOf(w).Elem().FieldByName("w").UnsafePointer())
}

// joinBy makes a goroutine a rank.
func joinBy(ctx context.Context, cfg comm.Config, f network.Connection) (*comm.Comm, error) {
	c, err := core.JoinBy(ctx, core.Config(cfg), f)
	return (*comm.Comm)(c), err
}
