// Package commtest runs ranks as goroutines of one process, so that `go test` alone can test
// programs written with comm.
package commtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/core"
	"gompi/internal/core/network"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
)

// Run runs fn on n ranks, each a goroutine with the world communicator of its own job, and fails t
// with every error that a rank returns. Run returns when all ranks have returned. A rank that
// returns an error, or panics, dies: the others' operations with that rank fail, as if its process
// had ended.
//
// Run works inside a testing/synctest bubble: there a deadlock among the ranks fails the test at
// once. Elsewhere, if all ranks wait for each other for long, stderr names their calls. Shortly
// before go test's time is up, the test fails with the same text, and the ranks' ctx ends.
func Run(t testing.TB, n int, fn func(ctx context.Context, c *comm.Comm) error) {
	t.Helper()
	RunConfig(t, n, comm.Config{}, fn)
}

// RunConfig is Run with a configuration for all ranks.
func RunConfig(t testing.TB, n int, cfg comm.Config, fn func(ctx context.Context, c *comm.Comm) error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	j := newJob(n, cfg)
	stop := j.watch(t, cancel)
	errs := j.ranks(ctx, fn)
	stop()
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d of %d: %v", rank, n, err)
		}
	}
}

// Ranks is RunConfig for tests that expect errors: Ranks returns each rank's error.
func Ranks(ctx context.Context, n int, cfg comm.Config, fn func(ctx context.Context, c *comm.Comm) error) []error {
	return newJob(n, cfg).ranks(ctx, fn)
}

func newJob(n int, cfg comm.Config) *job {
	return &job{net: inproc.NewWorld(n), boots: boot.Group(n), cfg: cfg, over: make([]atomic.Bool, n)}
}

func (j *job) ranks(ctx context.Context, fn func(context.Context, *comm.Comm) error) []error {
	errs := make([]error, len(j.boots))
	var all sync.WaitGroup
	for rank := range j.boots {
		all.Go(func() { j.run(ctx, world.Rank(rank), fn, &errs[rank]) })
	}
	all.Wait()
	return errs
}

type job struct {
	net   *inproc.World
	boots []boot.Boot
	cfg   comm.Config
	over  []atomic.Bool // by rank: the rank has returned
}

// A member is one rank of a job.
type member struct {
	*job
	rank world.Rank
	left bool // has notified the others of its orderly end
	halt func()
}

// run is the life of one rank. run stores the outcome instead of returning it, since a goroutine
// that is made to exit returns nothing.
func (j *job) run(ctx context.Context, rank world.Rank, fn func(context.Context, *comm.Comm) error, outcome *error) {
	defer j.over[rank].Store(true)
	m := &member{job: j, rank: rank}
	c, err := m.join(ctx)
	if *outcome = err; err != nil {
		return
	}
	err = errExit // unless fn returns
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if !m.left {
			m.die(err)
		}
		*outcome = err
	}()
	if err = fn(ctx, c); err != nil {
		return
	}
	if err = c.Close(ctx); err == nil && !m.left {
		err = errOpen
	}
}

var (
	errExit = errors.New("the rank's goroutine ended, as by t.FailNow or t.Fatal: return an error instead")
	errOpen = errors.New("returned with communicators open: Close those from Dup, Split and Create too")
)

// die makes m look as if its process had ended.
func (m *member) die(why error) {
	if b, ok := m.boots[m.rank].(*boot.Member); ok {
		line, _, _ := strings.Cut(why.Error(), "\n") // not a panic's stack
		b.Die("failed: " + line)
	}
	m.net.Kill(m.rank)
	m.halt()
}

func (m *member) join(ctx context.Context) (*comm.Comm, error) {
	parker := inproc.NewParker()
	c, err := core.Join(ctx, core.Config(m.cfg), network.Fabric{
		Boot:   m.boots[m.rank],
		Parker: parker,
		Connect: func(sink transport.Sink, _ func()) ([]transport.Transport, error) {
			if e, ok := sink.(interface{ Shutdown(context.Context) error }); ok {
				m.halt = func() { e.Shutdown(ended()) }
			}
			return []transport.Transport{m.net.Transport(m.rank, sink, parker)}, nil
		},
		Yield: runtime.Gosched,
		Close: func() error { m.left = true; return nil },
	})
	return (*comm.Comm)(c), err
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
