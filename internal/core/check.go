package core

import (
	"context"
	"time"

	"gompi/internal/calls"
	"gompi/internal/core/progress"
)

// WithCheck returns a context whose calls ask check while they wait: package comm says how.
func WithCheck(ctx context.Context, check func(waited time.Duration) (next time.Duration, err error)) context.Context {
	return progress.WithCheck(ctx, check)
}

// InBackground returns a context whose collectives do not delay the collectives of other
// goroutines.
func InBackground(ctx context.Context) context.Context { return progress.InBackground(ctx) }

// Within is progress.Within, for functions of MPI.
func Within(ctx context.Context, of calls.Kind) context.Context { return progress.Within(ctx, of) }
