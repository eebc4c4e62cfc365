package randprog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"gompi/comm"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// A runner is one rank of a program, or one of its goroutines.
type runner struct {
	ctx   context.Context
	comms []*comm.Comm // by number; nil where this rank is in none
	rng   *rand.Rand
	open  []*pending
}

// A pending is an operation that continues.
type pending struct {
	unit, until int
	what        string
	req         comm.Request
	needsStatus bool
	done        func(o outcome) error // checks the outcome
	free        func() error          // called when all of its unit is done, in the order of units
}

// Run runs p as a rank of world, which has as many ranks, and returns the failure.
func Run(ctx context.Context, world *comm.Comm, p *Program) error {
	r := &runner{ctx: ctx, comms: make([]*comm.Comm, len(p.members)),
		rng: rand.New(rand.NewPCG(p.Seed, uint64(world.Rank())))}
	r.comms[0] = world
	for _, u := range p.units {
		if err := r.step(u); err != nil {
			return err
		}
	}
	if err := r.awaitAll(all); err != nil {
		return fmt.Errorf("rank %d, at the end: %w", world.Rank(), err)
	}
	for i := len(r.comms) - 1; i > 0; i-- {
		if c := r.comms[i]; c != nil {
			if err := errors.Join(c.Barrier(ctx), c.Close(ctx)); err != nil {
				return fmt.Errorf("rank %d: close communicator %d: %w", world.Rank(), i, err)
			}
		}
	}
	return world.Barrier(ctx)
}

func all(*pending) bool { return true }

// step does one unit, after finishing the operations that end before it.
func (r *runner) step(u unit) error {
	h := u.head()
	if err := r.awaitAll(func(p *pending) bool { return p.until <= h.id }); err != nil {
		return fmt.Errorf("rank %d, before unit %d: %w", r.comms[0].Rank(), h.id, err)
	}
	if err := u.run(r, r.comms[h.on]); err != nil {
		line, _, _ := strings.Cut(u.String(), "\n")
		return fmt.Errorf("rank %d, unit %d (%s): %w", r.comms[0].Rank(), h.id, line, err)
	}
	return nil
}

// pause lets chance decide who goes first.
func (r *runner) pause() { stress.Pause(r.rng) }

func (r *runner) goesOn(p *pending) { r.open = append(r.open, p) }

// awaitAll waits for all operations that pick chooses, in one of the ways there are.
func (r *runner) awaitAll(pick func(*pending) bool) error {
	var now []*pending
	r.open = slices.DeleteFunc(r.open, func(p *pending) bool {
		if pick(p) {
			now = append(now, p)
			return true
		}
		return false
	})
	if len(now) == 0 {
		return nil
	}
	outcomes, err := r.wait(now)
	if err != nil {
		return err
	}
	for i, p := range now {
		if err := p.done(outcomes[i]); err != nil {
			return fmt.Errorf("unit %d (%s): %w", p.unit, p.what, err)
		}
	}
	for _, p := range now {
		if p.free != nil {
			if err := p.free(); err != nil {
				return fmt.Errorf("unit %d (%s): free: %w", p.unit, p.what, err)
			}
		}
	}
	return nil
}

// An outcome is the result of a wait.
type outcome struct {
	st    comm.Status
	known bool // st is known: WaitAll keeps it to itself
	err   error
}

// wait waits for all of now. An error is one of the waiting itself.
func (r *runner) wait(now []*pending) ([]outcome, error) {
	outcomes := make([]outcome, len(now))
	reqs := make([]comm.Request, len(now))
	left := make([]int, len(now)) // indices of incomplete operations
	statuses, known := false, true
	for i, p := range now {
		reqs[i], left[i] = p.req, i
		statuses = statuses || p.needsStatus
	}
	r.rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	tell := func(k int) { // of the request that is now at k of left
		i := left[k]
		st, err := reqs[i].Wait(r.ctx)
		outcomes[i] = outcome{st, known, err}
	}
	switch way := r.rng.IntN(5); {
	case way == 0 && !statuses:
		comm.WaitAll(r.ctx, reqs...) // whose errors Wait tells again
		known = false
	case way == 1:
		for len(left) > 0 {
			k, st, err := comm.WaitAny(r.ctx, choose(reqs, left)...)
			if r.ctx.Err() != nil {
				return nil, r.late(now, left)
			}
			outcomes[left[k]] = outcome{st, true, err}
			left = slices.Delete(left, k, k+1)
		}
	case way == 2:
		for len(left) > 0 {
			some, err := comm.WaitSome(r.ctx, choose(reqs, left)...)
			if err != nil {
				return nil, r.late(now, left)
			}
			for _, k := range slices.Backward(some) {
				tell(k)
				left = slices.Delete(left, k, k+1)
			}
		}
	case way == 3:
		for len(left) > 0 && r.ctx.Err() == nil {
			for k := len(left) - 1; k >= 0; k-- {
				if st, done, err := reqs[left[k]].Test(); done {
					outcomes[left[k]] = outcome{st, true, err}
					left = slices.Delete(left, k, k+1)
				}
			}
			r.pause()
		}
	}
	for k := range left {
		tell(k)
	}
	if r.ctx.Err() != nil {
		return nil, r.late(now, left)
	}
	return outcomes, nil
}

func choose(reqs []comm.Request, indices []int) []comm.Request {
	some := make([]comm.Request, len(indices))
	for k, i := range indices {
		some[k] = reqs[i]
	}
	return some
}

// late names the operations that were waited for when the time was over.
func (r *runner) late(now []*pending, left []int) error {
	var names []string
	for _, i := range left {
		if !now[i].req.Done() {
			names = append(names, fmt.Sprintf("unit %d (%s)", now[i].unit, now[i].what))
		}
	}
	return fmt.Errorf("%w, waiting for %q", context.Cause(r.ctx), names)
}

// A parallel is units of different communicators that goroutines of each rank do at the
// same time.
type parallel struct {
	header
	units []unit
}

func (u *parallel) String() string {
	s := "at the same time"
	for _, part := range u.units {
		s += fmt.Sprintf("\n          on %d: %v", part.head().on, part)
	}
	return s
}

func (u *parallel) run(r *runner, _ *comm.Comm) error {
	errs := make([]error, len(u.units))
	var done sync.WaitGroup
	for i, part := range u.units {
		q := &runner{ctx: r.ctx, comms: r.comms, rng: rand.New(rand.NewPCG(r.rng.Uint64(), uint64(i)))}
		done.Go(func() {
			if errs[i] = part.run(q, r.comms[part.head().on]); errs[i] == nil {
				errs[i] = q.awaitAll(all)
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// margin is how many elements before and after a buffer must not change.
const margin = 3

// fenced is memory between two margins.
type fenced struct {
	all mem.Buffer
	n   int
}

// newFenced returns n elements of ordinary memory.
func newFenced(t mem.Type, n int) *fenced {
	b, err := mem.Host.Alloc(t, n+2*margin)
	if err != nil {
		panic(err) // lengths here are small
	}
	return fence(b, n)
}

// fence puts margins around n elements in b, which is longer by them.
func fence(b mem.Buffer, n int) *fenced {
	f := &fenced{b.Slice(0, n+2*margin), n}
	f.margins(func(b []byte, i int) bool { b[i] = byte(i * 37); return true })
	return f
}

// margins calls visit for all bytes of the margins, until it returns false.
func (f *fenced) margins(visit func(b []byte, i int) bool) bool {
	for _, b := range [][]byte{f.all.Slice(0, margin).HostSlice(), f.all.Slice(margin+f.n, f.n+2*margin).HostSlice()} {
		for i := range b {
			if !visit(b, i) {
				return false
			}
		}
	}
	return true
}

func (f *fenced) inner() mem.Buffer { return f.all.Slice(margin, margin+f.n) }

func (f *fenced) check() error {
	if !f.margins(func(b []byte, i int) bool { return b[i] == byte(i*37) }) {
		return errors.New("memory beside the buffer has changed")
	}
	return nil
}
