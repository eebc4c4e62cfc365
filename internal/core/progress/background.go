package progress

import (
	"context"

	"gompi/internal/calls"
)

// A Place describes a collective's caller: whether in the background, and within which operation.
type Place struct {
	Background bool       // as InBackground says
	Of         calls.Kind // as Within says, else None
}

type placed struct {
	context.Context
	Place
}

// InBackground returns a context for goroutines that no thread of the program has called. Its
// collectives spin only while another goroutine has just begun to wait, and else leave processors
// to threads that compute. Its waits call no function of the program. Only the outermost context
// counts: the test costs a blocking collective 1 ns. It is for C: Go has nonblocking collectives.
func InBackground(ctx context.Context) context.Context { return placed{ctx, Place{Background: true}} }

// Within returns a context for the collectives that a call consists of: errors and reports name the
// call, and all ranks have to make the same.
func Within(ctx context.Context, of calls.Kind) context.Context {
	return placed{ctx, Place{PlaceOf(ctx).Background, of}}
}

// Alike returns ctx, in the background if other is.
func Alike(other, ctx context.Context) context.Context {
	if PlaceOf(other).Background {
		return InBackground(ctx)
	}
	return ctx
}

// PlaceOf returns the Place of calls with ctx.
func PlaceOf(ctx context.Context) Place {
	p, _ := ctx.(placed)
	return p.Place
}
