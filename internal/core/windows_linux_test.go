package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/window"
	"gompi/internal/core/layout"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
)

// Windows over all ways in which ranks reach each other. Package window has an example.

// A setting is where four ranks run.
type setting struct {
	name   string
	shared bool // they share memory
	run    func(t testing.TB, fn rankFunc) []error
}

var settings = []setting{
	{"goroutines", false, func(t testing.TB, fn rankFunc) []error {
		return commtest.Ranks(t.Context(), 4, comm.Config{}, fn)
	}},
	{"memory", true, func(t testing.TB, fn rankFunc) []error { return overMemory(t, 4, fn) }},
	{"tcp", false, func(t testing.TB, fn rankFunc) []error { return overTCP(t, 4, fn) }},
	{"hosts", false, func(t testing.TB, fn rankFunc) []error {
		return overHosts(t, []int32{0, 1, 0, 1}, comm.Config{}, fn)
	}},
}

// byKernel is memory where ranks reach what is private to others through the kernel.
var byKernel = setting{"kernel", true,
	func(t testing.TB, fn rankFunc) []error { return []error{crossed(t, 4, "", fn)} }}

// byDevice is where the memory of allocated windows is accessed by UCX.
var byDevice = setting{"ucx", false, func(t testing.TB, fn rankFunc) []error { return overUCX(t, 4, fn) }}

// misjudged reports whether the race detector would see races that are none: it does not see the
// news of ranks through shared memory or sockets, and so not that one has ended its use of memory
// of Go's that another then writes to.
func (s *setting) misjudged(kind string) bool {
	return raced && s.name != "goroutines" && !(s.shared && (kind == "allocated" || kind == "shared"))
}

// onSettings runs fn on all of them.
func onSettings(t *testing.T, fn rankFunc) {
	t.Helper()
	for _, f := range settings {
		t.Run(f.name, func(t *testing.T) {
			if err := errors.Join(f.run(t, fn)...); err != nil {
				t.Error(err)
			}
		})
	}
}

// A windowMaker makes a window of elements int64 of each rank, and returns this rank's, and what
// place 0 of a rank is.
type windowMaker func(ctx context.Context, c *comm.Comm, n int) (w *window.Window, mine []int64, zero []int, err error)

var windowMakers = map[string]windowMaker{
	"created": func(ctx context.Context, c *comm.Comm, n int) (*window.Window, []int64, []int, error) {
		mine := make([]int64, n)
		w, err := window.Create(ctx, c, mine)
		return w, mine, make([]int, c.Size()), err
	},
	"allocated": func(ctx context.Context, c *comm.Comm, n int) (*window.Window, []int64, []int, error) {
		w, mine, err := window.Allocate[int64](ctx, c, n)
		return w, mine, make([]int, c.Size()), err
	},
	"shared": func(ctx context.Context, c *comm.Comm, n int) (*window.Window, []int64, []int, error) {
		w, mine, err := window.AllocateShared[int64](ctx, c, n)
		return w, mine, make([]int, c.Size()), err
	},
	"dynamic": func(ctx context.Context, c *comm.Comm, n int) (*window.Window, []int64, []int, error) {
		w, err := window.CreateDynamic(ctx, c)
		if err != nil {
			return nil, nil, nil, err
		}
		mine, all := make([]int64, n), make([]int, c.Size())
		at, err := w.Attach(comm.Of(mine))
		return w, mine, all, errors.Join(err, comm.Allgather(ctx, c, []int{at}, all))
	},
}

// elementBytes is what one element counts in a window's places.
func elementBytes(kind string) int {
	if kind == "dynamic" {
		return 8
	}
	return 1
}

// Every rank knows what all ranks do, and so what is in all parts.
func TestWindowsAgreeWithTheModel(t *testing.T) {
	steps := 40
	if testing.Short() {
		steps = 12
	}
	for kind, make := range windowMakers {
		for _, f := range append(slices.Clone(settings), byKernel, byDevice) {
			if kind == "shared" && !f.shared || f.name == byKernel.name && kind != "created" ||
				f.name == byDevice.name && kind != "allocated" || f.misjudged(kind) {
				continue
			}
			t.Run(kind+"/"+f.name, func(t *testing.T) {
				if f.name == byKernel.name {
					needCrossing(t)
				}
				for _, n := range []int{40, 4000} {
					fn := func(ctx context.Context, c *comm.Comm) error {
						w, mine, zero, err := make(ctx, c, n)
						if err != nil {
							return err
						}
						m := newModel(c, w, mine, zero, elementBytes(kind))
						return errors.Join(m.perform(ctx, steps), w.Free(ctx))
					}
					if err := errors.Join(f.run(t, fn)...); err != nil {
						t.Fatalf("%d elements: %v", n, err)
					}
				}
			})
		}
	}
}

// A model is what should be in the parts of a window.
type model struct {
	c     *comm.Comm
	w     *window.Window
	mine  []int64
	zero  []int
	unit  int
	parts [][]int64
	rng   *rand.Rand // the same on all ranks
}

func newModel(c *comm.Comm, w *window.Window, mine []int64, zero []int, unit int) *model {
	m := &model{c: c, w: w, mine: mine, zero: zero, unit: unit, rng: rand.New(rand.NewPCG(7, uint64(len(mine))))}
	for range c.Size() {
		m.parts = append(m.parts, make([]int64, len(mine)))
	}
	return m
}

func (m *model) at(rank, i int) int { return m.zero[rank] + i*m.unit }

// perform performs steps, in each of which no two operations conflict, and compares.
func (m *model) perform(ctx context.Context, steps int) error {
	for s := range steps {
		sync, step := m.rng.IntN(4), []func(rank int) error{m.puts, m.accumulates, m.fetches, m.gets}[m.rng.IntN(4)]
		if err := m.within(ctx, sync, step); err != nil {
			return fmt.Errorf("step %d, synchronized the way %d: %w", s, sync, err)
		}
		if err := m.compare(ctx); err != nil {
			return fmt.Errorf("after step %d, synchronized the way %d: %w", s, sync, err)
		}
	}
	return nil
}

// within calls step for all ranks, between calls that synchronize.
func (m *model) within(ctx context.Context, how int, step func(rank int) error) error {
	all := func() (err error) {
		for r := range m.c.Size() {
			err = errors.Join(err, step(r))
		}
		return err
	}
	ranks := make([]int, m.c.Size())
	for r := range ranks {
		ranks[r] = r
	}
	switch how {
	case 0:
		return errors.Join(m.w.Fence(ctx), all(), m.w.Fence(ctx))
	case 1:
		return errors.Join(m.w.Post(ranks...), m.w.Start(ctx, ranks...), all(), m.w.Complete(ctx), m.w.Wait(ctx))
	case 2:
		return errors.Join(m.w.LockAll(ctx), all(), m.w.FlushAll(ctx), m.w.UnlockAll(ctx), m.c.Barrier(ctx))
	}
	for r := range ranks {
		lock := m.w.Lock
		if r%2 == 0 {
			lock = m.w.RLock
		}
		if err := lock(ctx, r); err != nil {
			return err
		}
	}
	return errors.Join(all(), m.w.UnlockAll(ctx), m.c.Barrier(ctx))
}

// compare compares this rank's part with the model, when nobody changes it.
func (m *model) compare(ctx context.Context) error {
	err := equal("the part", m.mine, m.parts[m.c.Rank()])
	return errors.Join(err, m.c.Barrier(ctx))
}

// block returns some elements, of the block that rank has of a part.
func (m *model) block(rank int) (lo, hi int) {
	n := len(m.mine) / m.c.Size()
	lo = rank*n + m.rng.IntN(n)
	return lo, lo + 1 + m.rng.IntN(rank*n+n-lo)
}

// An access begins operations: a window, or strided elements of one.
type access interface {
	Put(to, at int, b comm.Buffer) error
	Get(from, at int, b comm.Buffer) error
	Accumulate(to, at int, b comm.Buffer, op comm.Op) error
	GetAccumulate(to, at int, b, result comm.Buffer, op comm.Op) error
}

// A strided begins operations on elements int64 that runs describes, as MPI's datatypes do.
type strided struct {
	w    *rma.Window
	runs layout.Layout
	unit int // bytes of a place
}

// stridedOf returns the elements of w with some numbers, counted from the place of an operation.
func stridedOf(w *window.Window, unit int, elements ...int) strided {
	var b layout.Builder
	for _, at := range elements {
		one := layout.Run(8)
		b.Add(one.At(8 * at))
	}
	return strided{insideWindow(w), b.Layout(), unit}
}

func (s strided) target(rank, at int) rma.Target {
	return rma.Target{Rank: rank, At: at * s.unit, Layout: s.runs}
}

func (s strided) Put(to, at int, b comm.Buffer) error { return s.w.Put(s.target(to, at), b, nil) }

func (s strided) Get(from, at int, b comm.Buffer) error { return s.w.Get(s.target(from, at), b, nil) }

func (s strided) Accumulate(to, at int, b comm.Buffer, op comm.Op) error {
	return s.w.Accumulate(s.target(to, at), b, rma.Of(op, b.Type()), nil)
}

func (s strided) GetAccumulate(to, at int, b, result comm.Buffer, op comm.Op) error {
	return s.w.GetAccumulate(s.target(to, at), b, result, rma.Of(op, b.Type()), nil)
}

// some returns some elements of the block that rank has of a part, in one run or as a Layout names
// them, and the access to them from the element at lo on.
func (m *model) some(rank int) (a access, lo int, elements []int) {
	lo, hi := m.block(rank)
	elements = make([]int, hi-lo)
	for i := range elements {
		elements[i] = lo + i
	}
	if m.rng.IntN(2) == 0 {
		return m.w, lo, elements
	}
	l := must(comm.Contiguous(1))
	for n := hi - lo; n > 1; n /= 2 {
		if l = layoutOf(m.rng, n); l.Extent() <= hi-lo {
			break
		}
		l = must(comm.Contiguous(1))
	}
	named, places := make([]int, l.Len()), make([]int, l.Len())
	if err := mem.Copy(comm.Of(named), lay(elements, l)); err != nil {
		panic(err)
	}
	for i, at := range named {
		places[i] = at - lo
	}
	return stridedOf(m.w, 8/m.unit, places...), lo, named
}

// of returns the elements of a part that have some numbers.
func of(part []int64, elements []int) []int64 {
	all := make([]int64, len(elements))
	for i, at := range elements {
		all[i] = part[at]
	}
	return all
}

func (m *model) values(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = m.rng.Int64N(1000)
	}
	return all
}

// puts has each rank put to its block of each part.
func (m *model) puts(rank int) (err error) {
	for to := range m.c.Size() {
		a, lo, elements := m.some(rank)
		x := m.values(len(elements))
		for i, at := range elements {
			m.parts[to][at] = x[i]
		}
		if rank == m.c.Rank() {
			if rank%2 == 0 {
				err = errors.Join(err, a.Put(to, m.at(to, lo), comm.Of(x)))
			} else {
				err = errors.Join(err, a.Accumulate(to, m.at(to, lo), comm.Of(x), window.Replace))
			}
		}
	}
	return err
}

// accumulates has each rank add to any elements of each part.
func (m *model) accumulates(rank int) (err error) {
	for to := range m.c.Size() {
		a, lo, elements := m.some(m.rng.IntN(m.c.Size()))
		x := m.values(len(elements))
		for i, at := range elements {
			m.parts[to][at] += x[i]
		}
		if rank == m.c.Rank() {
			err = errors.Join(err, a.Accumulate(to, m.at(to, lo), comm.Of(x), comm.Sum))
		}
	}
	return err
}

// fetches has each rank get and change its block of each part, twice in a row.
func (m *model) fetches(rank int) (err error) {
	ops := []comm.Op{comm.Sum, comm.Max, comm.Min, comm.BXor, window.Replace, window.NoOp}
	for to := range m.c.Size() {
		a, lo, elements := m.some(rank)
		var got, want [2][]int64
		for k := range got {
			op, x := ops[m.rng.IntN(len(ops))], m.values(len(elements))
			want[k] = of(m.parts[to], elements)
			for i, at := range elements {
				m.parts[to][at] = combined(op, m.parts[to][at], x[i])
			}
			got[k] = make([]int64, len(elements))
			if rank == m.c.Rank() {
				err = errors.Join(err, a.GetAccumulate(to, m.at(to, lo), comm.Of(x), comm.Of(got[k]), op))
			}
		}
		if rank == m.c.Rank() {
			err = errors.Join(err, m.w.Flush(context.Background(), to),
				equal("what was fetched", slices.Concat(got[0], got[1]), slices.Concat(want[0], want[1])))
		}
	}
	return err
}

func combined(op comm.Op, a, b int64) int64 {
	switch op {
	case comm.Sum:
		return a + b
	case comm.Max:
		return max(a, b)
	case comm.Min:
		return min(a, b)
	case comm.BXor:
		return a ^ b
	case window.Replace:
		return b
	}
	return a
}

// gets has each rank get any elements of each part.
func (m *model) gets(rank int) (err error) {
	for from := range m.c.Size() {
		a, lo, elements := m.some(m.rng.IntN(m.c.Size()))
		if got := make([]int64, len(elements)); rank == m.c.Rank() {
			err = errors.Join(err, a.Get(from, m.at(from, lo), comm.Of(got)), m.w.Flush(context.Background(), from),
				equal("what was got", got, of(m.parts[from], elements)))
		}
	}
	return err
}

// puts is what ranks of a disaster do that put to the memory of all.
const puts = "puts"

// putAround puts n elements to each rank, and compares what the others have put here.
func putAround(ctx context.Context, c *comm.Comm, n int, turned func(i int)) error {
	w, mine, err := window.Allocate[int64](ctx, c, n*c.Size())
	if err != nil {
		return err
	}
	src := make([]int64, n)
	for i := 0; ; i++ {
		for k := range src {
			src[k] = int64(i + k)
		}
		for to := range c.Size() {
			if err := errors.Join(w.Put(to, n*c.Rank(), comm.Of(src)), w.Flush(ctx, to)); err != nil {
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		for from := range c.Size() {
			if got := mine[n*from:][:n]; !slices.Equal(got, src) {
				return fmt.Errorf("round %d: rank %d has put %v ... %v, want %v ... %v", i, from, got[0], got[n-1],
					src[0], src[n-1])
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		turned(i)
	}
}
