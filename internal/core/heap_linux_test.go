package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/seg"

	"golang.org/x/sys/unix"
)

// moveInto moves the vectors of a, and what is around them, to other memory.
func (a *answer[T]) moveInto(memory []T) {
	vectors := [2]*[]T{&a.send, &a.recv}
	var old [2][]T
	for i := range a.fences {
		f := &a.fences[i]
		if old[i] = f.all; f.all != nil {
			copy(memory, f.all)
			f.all, memory = memory[:len(f.all)], memory[len(f.all):]
		}
	}
	for _, v := range vectors {
		for i := range old {
			if at, ok := within(*v, old[i]); ok {
				*v = a.fences[i].all[at:][:len(*v)]
				break
			}
		}
	}
}

// within returns where short begins in long, if it lies there.
func within[T any](short, long []T) (int, bool) {
	if len(short) == 0 || len(long) == 0 {
		return 0, false
	}
	at := uintptr(unsafe.Pointer(&short[0])) - uintptr(unsafe.Pointer(&long[0]))
	at /= unsafe.Sizeof(short[0])
	return int(at), at < uintptr(len(long))
}

// A mixture says whose vectors are from Alloc.
type mixture struct {
	name    string
	private func(rank, size int) bool
}

var mixtures = []mixture{
	{"all", func(rank, size int) bool { return false }},
	{"all but the last", func(rank, size int) bool { return rank == size-1 }},
	{"none", func(rank, size int) bool { return true }},
}

// answerAllocated asks a question whose vectors are in memory, unless that is nil.
func answerAllocated[T comm.Scalar](ctx context.Context, c *comm.Comm, e elements[T], q question, memory []T,
	spelling int) error {
	a := ask(q, e, c.Rank())
	if memory != nil {
		a.moveInto(memory)
	}
	a.fill()
	err := formOf[T](q.kind).perform(ctx, c, spelling, &a.args)
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return fmt.Errorf("%v: %w", q, err)
	}
	return nil
}

func TestCollectivesOnAllocatedMemoryAgreeWithTheReference(t *testing.T) {
	for _, p := range []int{2, 3, 4, 7} {
		for _, n := range []int{100, 3000, 20_011} {
			if testing.Short() && n*p > 10_000 {
				continue
			}
			err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
				return allocated(ctx, c, reals[float64](), n, mixtures, comm.Sum, comm.Avg, comm.Max)
			})...)
			if err != nil {
				t.Errorf("np=%d, n=%d: %v", p, n, err)
			}
		}
	}
}

// allocated asks questions of all kinds on memory of c.
func allocated[T comm.Scalar](ctx context.Context, c *comm.Comm, e elements[T], n int, mixed []mixture,
	ops ...comm.Op) error {
	memory, err := comm.Alloc[T](ctx, c, 2*(n+4)*c.Size()+100)
	if err != nil {
		return err
	}
	i := 0
	for _, m := range mixed {
		mine := memory
		if m.private(c.Rank(), c.Size()) {
			mine = nil
		}
		for _, kind := range everyKind {
			for variant := range 4 {
				i++
				q := question{kind: kind, ranks: c.Size(), n: n, root: i % c.Size(), inPlace: variant&1 != 0,
					gaps: variant&2 != 0}
				if reduces(kind) {
					q.op = ops[i%len(ops)]
				}
				if err := answerAllocated(ctx, c, e, q, mine, i+c.Rank()); err != nil {
					return fmt.Errorf("from Alloc: %s: %w", m.name, err)
				}
			}
		}
	}
	return comm.Free(ctx, c, memory)
}

func TestCollectivesOnAllocatedMemoryOfAnyType(t *testing.T) {
	all := mixtures[:1]
	err := errors.Join(inRooms(t, 3, func(ctx context.Context, c *comm.Comm) error {
		return errors.Join(
			allocated(ctx, c, reals[float32](), 5003, all, comm.Sum, comm.Min),
			allocated(ctx, c, reals[float64](), 2503, all, comm.Sum, comm.Avg),
			allocated(ctx, c, halves(comm.ToBFloat16), 9001, all, comm.Sum, comm.Max),
			allocated(ctx, c, complexes[complex128](), 1501, all, comm.Sum),
			allocated(ctx, c, integers[uint8](), 20_001, all, comm.BXor, comm.LOr),
		)
	})...)
	if err != nil {
		t.Error(err)
	}
}

// What is reduced in place has the bits that it has elsewhere.
func TestSumsOfAllocatedMemoryAreTheSameBits(t *testing.T) {
	for _, p := range []int{2, 3, 5} {
		err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
			const n = 50_001
			private := make([]float32, n)
			if err := comm.Allreduce(ctx, c, rough(c.Rank(), n), private, comm.Sum); err != nil {
				return err
			}
			v, err := comm.Alloc[float32](ctx, c, n)
			if err != nil {
				return err
			}
			copy(v, rough(c.Rank(), n))
			if err := comm.Allreduce(ctx, c, v, v, comm.Sum); err != nil {
				return err
			}
			return equal("bits", bitsOf(v), bitsOf(private))
		})...)
		if err != nil {
			t.Errorf("np=%d: %v", p, err)
		}
	}
}

// Functions of the user's, and any order that was asked for, hold there, too.
func TestOrderHoldsOnAllocatedMemory(t *testing.T) {
	err := errors.Join(overMemoryWith(t, 5, comm.Config{Deterministic: true},
		func(ctx context.Context, c *comm.Comm) error {
			const n = 20_000
			v, err := comm.Alloc[affine](ctx, c, n)
			if err != nil {
				return err
			}
			copy(v, affineOf(c.Rank(), n))
			if err := comm.AllreduceFunc(ctx, c, v, v, compose); err != nil {
				return err
			}
			return errors.Join(equal("composed", v, composed(c.Size(), n)), sameBits(ctx, c))
		})...)
	if err != nil {
		t.Error(err)
	}
}

// held returns how many bytes of memory the ranks of c have taken of their segment.
func held(c *comm.Comm) (int64, error) {
	var st unix.Stat_t
	err := unix.Fstat(inside(c).Launcher().Info().Segment.FD(), &st)
	return st.Blocks * 512, err
}

// Memory is given back by Free and by Close, and serves again.
func TestAllocatedMemoryIsGivenBack(t *testing.T) {
	err := errors.Join(inRooms(t, 4, func(ctx context.Context, c *comm.Comm) error {
		before, err := heldByAll(ctx, c)
		if err != nil {
			return err
		}
		for range 3 {
			if err := allocateEverywhere(ctx, c); err != nil {
				return err
			}
		}
		after, err := heldByAll(ctx, c)
		// Communicators keep their blocks and stages, of which there are four of 2 MiB each.
		if err == nil && after > before+3*4<<21 {
			err = fmt.Errorf("%d bytes are taken, before %d", after, before)
		}
		return err
	})...)
	if err != nil {
		t.Error(err)
	}
}

// heldByAll is held while no rank takes or gives back any.
func heldByAll(ctx context.Context, c *comm.Comm) (int64, error) {
	if err := comm.Barrier(ctx, c); err != nil {
		return 0, err
	}
	n, err := held(c)
	return n, errors.Join(err, comm.Barrier(ctx, c))
}

// allocateEverywhere takes memory of several communicators at once, uses it in all of
// them, frees some and closes the rest.
func allocateEverywhere(ctx context.Context, c *comm.Comm) error {
	const n = 10 << 20 / 8
	half, err := c.Split(ctx, c.Rank()%2, 0)
	if err != nil {
		return err
	}
	twin, err := c.Dup(ctx)
	if err != nil {
		return err
	}
	var vectors [][]int64
	for _, d := range []*comm.Comm{c, half, twin} {
		v, err := comm.Alloc[int64](ctx, d, n)
		if err != nil {
			return err
		}
		if v[0] != 0 || v[n-1] != 0 {
			return fmt.Errorf("%v: memory that is not zero: %d, %d", d, v[0], v[n-1])
		}
		for i := range v {
			v[i] = int64(d.Rank())
		}
		vectors = append(vectors, v)
	}
	for i, d := range []*comm.Comm{c, half, twin} {
		if err := comm.Allreduce(ctx, d, vectors[i], vectors[i], comm.Sum); err != nil {
			return err
		}
		p := int64(d.Size())
		if want := p * (p - 1) / 2; vectors[i][0] != want || vectors[i][n-1] != want {
			return fmt.Errorf("%v: sums %d and %d, want %d", d, vectors[i][0], vectors[i][n-1], want)
		}
	}
	return errors.Join(comm.Free(ctx, c, vectors[0]), half.Close(ctx), twin.Close(ctx))
}

// Where one rank cannot have its memory, none has it, and nothing is broken.
func TestMemoryThatOneRankLacksIsAnErrorOnAll(t *testing.T) {
	const p, poor = 3, 1
	lack := map[string]struct {
		n    int
		want string // on the rank that lacks it
	}{
		"a limit":   {1 << 20, "3 ranks want 4.0 MiB each, rank 1 finds 11.0 MiB"},
		"addresses": {1 << 40, "no place for"},
	}
	for name, l := range lack {
		inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == poor {
				inside(c).LimitMemory(seg.Limit{Left: 11 << 20, Of: 16 << 20, By: "a test"})
			}
			for range 2 {
				v, err := comm.Alloc[float32](ctx, c, l.n)
				if !errors.Is(err, comm.ErrMemory) || v != nil ||
					c.Rank() == poor && !strings.Contains(err.Error(), l.want) {
					t.Errorf("%s, rank %d: got %d elements and %v, want ErrMemory with %q", name, c.Rank(), len(v),
						err, l.want)
				}
			}
			if n := inside(c).Lent(); n != 0 {
				t.Errorf("%s, rank %d: %d allocations are left", name, c.Rank(), n)
			}
			v, err := comm.Alloc[float32](ctx, c, 900_000)
			if err == nil {
				err = comm.Allreduce(ctx, c, v, v, comm.Sum)
			}
			if err != nil {
				t.Errorf("%s, rank %d: less than that: %v", name, c.Rank(), err)
			}
			return nil
		})
	}
}

func TestFreeWantsWhatAllocReturned(t *testing.T) {
	err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		twin, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer twin.Close(ctx)
		v, err := comm.Alloc[float32](ctx, c, 100)
		if err != nil {
			return err
		}
		for name, wrong := range map[string]error{
			"a part of it":  comm.Free(ctx, c, v[1:]),
			"Go's memory":   comm.Free(ctx, c, make([]float32, 100)),
			"another's":     comm.Free(ctx, twin, v),
			"none at all":   comm.Free[float32](ctx, c, nil),
			"of other type": comm.Free(ctx, c, make([]int8, 100)),
		} {
			if !errors.Is(wrong, comm.ErrArgument) {
				return fmt.Errorf("%s: got %v, want ErrArgument", name, wrong)
			}
		}
		if err := comm.Free(ctx, c, v); err != nil {
			return err
		}
		if err := comm.Free(ctx, c, v); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("again: got %v, want ErrArgument", err)
		}
		return comm.Barrier(ctx, c)
	})...)
	if err != nil {
		t.Error(err)
	}
}

func TestRanksThatAllocateDifferentlyAllGetAMismatch(t *testing.T) {
	inRooms(t, 3, func(ctx context.Context, c *comm.Comm) error {
		_, err := comm.Alloc[float32](ctx, c, 1000+c.Rank()/2)
		if !errors.Is(err, comm.ErrMismatch) || !strings.Contains(err.Error(), "alloc(1001 float32)") {
			t.Errorf("rank %d: got %v, want ErrMismatch", c.Rank(), err)
		}
		return nil
	})
}

// Free is a barrier, however much memory it is for: no rank returns before all have called it.
func TestFreeWaitsForEveryRank(t *testing.T) {
	inRooms(t, 3, func(ctx context.Context, c *comm.Comm) error {
		v, err := comm.Alloc[float32](ctx, c, 1000)
		if c.Rank() != 0 { // whose Alloc may end with rank 0's ErrMismatch
			comm.Barrier(ctx, c)
			return nil
		}
		if err == nil {
			err = comm.Free(ctx, c, v)
		}
		if !errors.Is(err, comm.ErrMismatch) || !strings.Contains(err.Error(), "free(1000 float32)") {
			t.Errorf("got %v, want ErrMismatch: the other ranks do not call free", err)
		}
		return nil
	})
}

// A rank that dies breaks collectives on memory that it shares. What others have from
// Alloc serves no other rank before all of them know.
func TestDeathOnAllocatedMemoryRevokesItOnAllOtherRanks(t *testing.T) {
	for i, kind := range everyKind {
		p := 2 + i%3
		overMemory(t, p, dyingOnAllocated(t, (p+len(kind))%p, question{kind: kind, ranks: p, n: 40_000, root: p / 2}))
	}
}

// dyingOnAllocated is dying with vectors from Alloc.
func dyingOnAllocated(t *testing.T, victim int, q question) rankFunc {
	e := integers[int64]()
	if reduces(q.kind) {
		q.op = comm.Sum
	}
	return func(ctx context.Context, c *comm.Comm) error {
		memory, err := comm.Alloc[int64](ctx, c, 2*(q.n+4)*q.ranks+100)
		if err != nil {
			return err
		}
		if err := answerAllocated(ctx, c, e, q, memory, 0); err != nil {
			return err
		}
		if c.Rank() == victim {
			inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
			return nil
		}
		err = answerAllocated(ctx, c, e, q, memory, 1)
		for err == nil { // its part was done without the victim
			err = comm.Barrier(ctx, c)
		}
		if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
			t.Errorf("%v: rank %d: %v", q, c.Rank(), problem)
		}
		if _, err := comm.Alloc[int64](ctx, c, q.n); !errors.Is(err, comm.ErrRevoked) {
			t.Errorf("%v: rank %d: Alloc: got %v, want ErrRevoked", q, c.Rank(), err)
		}
		return nil
	}
}

func TestMemoryOfABrokenCommIsKeptUntilAllHaveLeft(t *testing.T) {
	const p, first = 3, 0
	closed, checked := make(chan struct{}), make(chan struct{})
	err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if _, err := comm.Alloc[int64](ctx, d, 1000); err != nil {
			return err
		}
		if err := inside(d).ReduceWithout(ctx, comm.Of([]int64{1}), comm.Of([]int64{1})); err == nil {
			return errors.New("nothing broke")
		}
		if c.Rank() != first {
			<-closed
			<-checked
			d.Close(ctx)
			return nil
		}
		d.Close(ctx)
		close(closed)
		defer close(checked)
		if n := inside(c).Lent(); n != 1 {
			return fmt.Errorf("%d allocations while others may write there, want 1", n)
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

// A rank may close a communicator while a collective of it is under way: the goroutine
// that does it, and the peers, still have the memory.
func TestMemoryOfACommClosedInTheMidstOfACollectiveIsKeptUntilItEnds(t *testing.T) {
	const p, early = 2, 0
	closed, checked := make(chan struct{}), make(chan struct{})
	err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		v, err := comm.Alloc[int64](ctx, d, 10_000)
		if err != nil {
			return err
		}
		if c.Rank() != early {
			<-closed
			<-checked
			d.Close(ctx)
			return comm.Barrier(ctx, c)
		}
		d.Iallreduce(comm.Of(v), comm.Of(v), comm.Sum) // which the others do not call
		d.Close(ctx)
		close(closed)
		n := inside(c).Lent()
		close(checked)
		if n != 1 {
			return fmt.Errorf("%d allocations while others may write there, want 1", n)
		}
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		for inside(c).Lent() > 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		return context.Cause(ctx)
	})...)
	if err != nil {
		t.Error(err)
	}
}
