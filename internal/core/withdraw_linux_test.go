package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/core"
)

// A making is a call by which all ranks make a communicator of one.
type making struct {
	name string
	make func(ctx context.Context, c *comm.Comm) (*comm.Comm, error)
}

var makings = []making{
	{"dup", func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) { return c.Dup(ctx) }},
	{"split", func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) { return c.Split(ctx, 0, -c.Rank()) }},
	{"split_host", func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) { return c.SplitHost(ctx) }},
	{"create", func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) { return c.Create(ctx, c.Group()) }},
}

// Ranks 0 and 2 tell what a communicator needs of them, and fail before rank 1 comes. It fails as
// they did: what they have told is no longer there, and their memory serves other communicators.
func TestNoRankAloneHasAComm(t *testing.T) {
	for _, m := range makings {
		for _, closes := range []bool{false, true} { // the communicator that it is made of
			t.Run(fmt.Sprintf("%s, closes %v", m.name, closes), func(t *testing.T) {
				if err := errors.Join(madeByOneAlone(t, m, closes)...); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func madeByOneAlone(t *testing.T, m making, closes bool) []error {
	const p, late = 3, 1
	waits, notify := context.WithCancel(t.Context()) // ends when rank 2 waits for rank 1
	defer notify()
	var phases [3]sync.WaitGroup // which all ranks end together, without a message
	for i := range phases {
		phases[i].Add(p)
	}
	end := func(phase int) { phases[phase].Done(); phases[phase].Wait() }
	return inRooms(t, p, func(ctx context.Context, world *comm.Comm) error {
		c, err := world.Dup(ctx)
		if err != nil {
			return err
		}
		defer c.Close(ctx) // where it fails it tells again what was wrong
		var made, used error
		if world.Rank() != late {
			_, made = m.make(failsWhen(ctx, c, waits.Done(), notify), c)
		}
		end(0)
		if world.Rank() == late {
			_, made = m.make(ctx, c)
		}
		if closes {
			c.Close(ctx)
		}
		end(1)
		if world.Rank() != late {
			used = useMemoryAgain(ctx, world)
		}
		end(2)
		if world.Rank() != late {
			if !errors.Is(made, comm.ErrRevoked) && !errors.Is(made, errEnough) {
				made = fmt.Errorf("rank %d: %s: got %v, want ErrRevoked or %v", c.Rank(), m.name, made, errEnough)
			} else {
				made = nil
			}
			return errors.Join(made, used)
		}
		return wrongCause(made, 0, "gave up in "+m.name)
	})
}

// failsWhen returns a context with which rank 0 of c fails when rank 2 waits too.
func failsWhen(ctx context.Context, c *comm.Comm, waits <-chan struct{}, notify func()) context.Context {
	return core.WithCheck(ctx, func(time.Duration) (time.Duration, error) {
		if c.Rank() == 2 {
			notify()
			return 0, nil
		}
		<-waits
		return 0, errEnough
	})
}

// useMemoryAgain makes communicators of ranks 0 and 2 that take all memory that was given back, and
// makes calls there.
func useMemoryAgain(ctx context.Context, world *comm.Comm) error {
	for tag := range 4 {
		e, err := made(ctx, world, tag, 0, 2)
		if err != nil {
			return err
		}
		defer e.Close(ctx)
		if err := sumsRanks(ctx, world, e, 0, 2); err != nil {
			return err
		}
	}
	return nil
}
