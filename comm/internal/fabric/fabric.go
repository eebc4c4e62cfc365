// Package fabric says what connects a rank that is not a process of its own: package commtest makes
// ranks that are goroutines.
package fabric

import (
	"context"

	"gompi/internal/boot"
	"gompi/transport"
)

// A Fabric connects a rank: to its launcher, to other ranks by transports, and to what wakes it
// when it sleeps. Package comm makes one for a process; tests make others.
type Fabric struct {
	Boot   boot.Boot
	Parker transport.Parker
	// Connect makes the transports, which deliver to sink. launcherReady is to be called, from
	// inside a Poll, when the launcher's descriptor is readable.
	Connect func(sink transport.Sink, launcherReady func()) ([]transport.Transport, error)
	// Yield gives the processor to another thread that can run.
	Yield func()
	// Close releases what Parker holds. It may be nil.
	Close func() error
}

// Join makes a goroutine a rank of the job that f connects it to. cfg is a comm.Config, and it
// returns a *comm.Comm: package comm, which imports this one, sets it.
var Join func(ctx context.Context, cfg any, f Fabric) (any, error)
