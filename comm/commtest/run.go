// Package commtest runs ranks as goroutines of one process, so that programs
// written with comm can be tested with `go test` alone.
package commtest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/transport"
	"gompi/transport/inproc"
)

// Run runs fn on n ranks, each a goroutine with the world communicator of a job
// of its own, and fails t with every error that a rank returned. It returns when
// all have. A rank that returns an error, or panics, dies: the others' operations
// with it fail, as they would if its process had ended.
//
// Run works inside a testing/synctest bubble: there a deadlock among the ranks
// fails the test at once.
func Run(t testing.TB, n int, fn func(ctx context.Context, c *comm.Comm) error) {
	t.Helper()
	RunConfig(t, n, comm.Config{}, fn)
}

// RunConfig is Run with a configuration for all ranks.
func RunConfig(t testing.TB, n int, cfg comm.Config, fn func(ctx context.Context, c *comm.Comm) error) {
	t.Helper()
	for rank, err := range Ranks(t.Context(), n, cfg, fn) {
		if err != nil {
			t.Errorf("rank %d of %d: %v", rank, n, err)
		}
	}
}

// Ranks is RunConfig for tests that expect errors: it returns what each rank
// returned.
func Ranks(ctx context.Context, n int, cfg comm.Config, fn func(ctx context.Context, c *comm.Comm) error) []error {
	j := job{world: inproc.NewWorld(n), boots: boot.Group(n), cfg: cfg}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { errs[rank] = j.run(ctx, rank, fn) })
	}
	all.Wait()
	return errs
}

type job struct {
	world *inproc.World
	boots []boot.Boot
	cfg   comm.Config
}

func (j *job) run(ctx context.Context, rank int, fn func(context.Context, *comm.Comm) error) (err error) {
	c, err := j.join(ctx, rank)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			j.die(rank, err)
		}
	}()
	if err := fn(ctx, c); err != nil {
		return err
	}
	return c.Close(ctx)
}

// die makes rank look as if its process had ended.
func (j *job) die(rank int, why error) {
	if m, ok := j.boots[rank].(*boot.Member); ok {
		m.Die("failed: " + why.Error())
	}
	j.world.Kill(rank)
}

func (j *job) join(ctx context.Context, rank int) (*comm.Comm, error) {
	parker := inproc.NewParker()
	return j.cfg.Join(ctx, comm.Fabric{
		Boot:   j.boots[rank],
		Parker: parker,
		Connect: func(sink transport.Sink, _ func()) ([]transport.Transport, error) {
			return []transport.Transport{j.world.Transport(rank, sink, parker)}, nil
		},
		Yield: runtime.Gosched,
	})
}
