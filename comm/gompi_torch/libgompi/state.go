//go:build linux && cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core"
	"gompi/internal/env"
	"gompi/internal/guest"
)

func init() { boot.NotInGo = guest.PythonStacks }

// A communicator is one that C knows by a number.
type communicator struct {
	*core.Comm
	apart bool         // some rank is on another host
	limit atomic.Int64 // of blocking calls, in ns; 0 is none
}

var (
	communicators table[*communicator]
	requests      table[request]
	state         atomic.Int32
)

// The number of the world in gompi.h.
const world = 1

// The states of the library.
const (
	fresh int32 = iota
	joining
	failed
	running
	over
)

var errState = errors.New("a call out of turn")

func outOfTurn(now int32) error {
	return fmt.Errorf("%w: %s", errState, [...]string{
		fresh:   "gompi_init has not been called",
		joining: "gompi_init has not returned",
		failed:  "gompi_init has failed",
		running: "gompi_init has been called: it is called once",
		over:    "gompi_finalize has been called",
	}[now])
}

// find returns the communicator with a number.
func find(number int64) (*communicator, error) {
	if c, ok := communicators.find(number); ok {
		return c, nil
	}
	if now := state.Load(); now != running {
		return nil, outOfTurn(now)
	}
	return nil, core.BadArgument("there is no communicator %d: want GOMPI_WORLD, or a new one that was not freed", number)
}

func newCommunicator(c *core.Comm) int64 {
	return communicators.add(&communicator{Comm: c, apart: apart(c)})
}

// apart reports whether some rank of c is on another host.
func apart(c *core.Comm) bool {
	for r := range c.Size() {
		if c.Host(r) != c.Host(c.Rank()) {
			return true
		}
	}
	return false
}

// join is gompi_init. It waits for at most that many milliseconds, or without limit for 0. current
// are C's present variables.
func join(current []string, milliseconds int64) error {
	if !state.CompareAndSwap(fresh, joining) {
		return outOfTurn(state.Load())
	}
	ctx, cancel := joinContext(milliseconds)
	defer cancel()
	c, err := initialize(ctx, current)
	if err != nil {
		state.Store(failed)
		return err
	}
	newCommunicator(c)
	state.Store(running)
	return nil
}

func joinContext(milliseconds int64) (context.Context, context.CancelFunc) {
	if milliseconds == 0 {
		return context.WithCancel(context.Background())
	}
	limit := time.Duration(milliseconds) * time.Millisecond
	return context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("%w, %v", errTimeout, limit))
}

// initialize passes the variables that the program has set since its start to Go, and joins the
// job.
func initialize(ctx context.Context, current []string) (*core.Comm, error) {
	before := boot.Announced(os.Getenv)
	adopt(current)
	if before != "" && boot.Announced(os.Getenv) == "" && env.String(env.Boot) == "" {
		return nil, fmt.Errorf("%s was set when this process began, as a rank of a job, and is not any more: "+
			"it would be rank 0 of 1; leave the variables of the launcher as they are, or set %s=alone",
			before, env.Boot)
	}
	return core.Init(ctx, core.Config{}, nil)
}

// closeTime bounds the time of gompi_finalize and gompi_free.
const closeTime = 10 * time.Second

func closing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), closeTime)
}

// leave is gompi_finalize.
func leave() (err error) {
	if !state.CompareAndSwap(running, over) {
		return outOfTurn(state.Load())
	}
	ctx, cancel := closing()
	defer cancel()
	all := communicators.numbers()
	for i := len(all) - 1; i >= 0; i-- { // the world, the first, closes last: it delivers pending messages
		c, _ := communicators.find(all[i])
		communicators.remove(all[i])
		err = errors.Join(err, c.Close(ctx))
	}
	return err
}

// dissolve is gompi_free.
func dissolve(number int64) error {
	c, err := find(number)
	if err != nil {
		return err
	}
	ctx, cancel := closing()
	defer cancel()
	communicators.remove(number)
	return c.Close(ctx)
}

// context returns the context of a blocking call.
func (c *communicator) context() (context.Context, context.CancelFunc) { return c.within(checked) }

// within returns a context in base that ends at the limit of c.
func (c *communicator) within(base context.Context) (context.Context, context.CancelFunc) {
	if limit := c.limit.Load(); limit > 0 {
		return within(base, time.Duration(limit))
	}
	return base, func() {}
}

// setLimit is gompi_set_timeout.
func (c *communicator) setLimit(milliseconds int64) error {
	if milliseconds < 0 || milliseconds > maxMilliseconds {
		return core.BadArgument("milliseconds is %d: want 0 to %d", milliseconds, maxMilliseconds)
	}
	c.limit.Store(milliseconds * int64(time.Millisecond))
	return nil
}
