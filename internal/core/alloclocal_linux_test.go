package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gompi/comm"
)

// Tensors come and go on each rank as it likes: some lie in the heap, of any length, and all
// collectives and messages give what they give with other memory.
func TestStressMemoryOfOneRankServesCollectives(t *testing.T) {
	for _, p := range []int{2, 3} {
		err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
			lent, err := comm.Alloc[int64](ctx, c, 1) // so vectors may lie in the heap
			if err != nil {
				return err
			}
			defer func() { _ = comm.Free(ctx, c, lent) }()
			together := rand.New(rand.NewPCG(7, 0))             // the same on all
			alone := rand.New(rand.NewPCG(8, uint64(c.Rank()))) // each its own
			var kept [][]int64
			for i := range 200 {
				n := 1 + together.IntN(1<<together.IntN(17))
				v := make([]int64, n)
				if alone.IntN(3) > 0 {
					if v, err = allocLocal(c, n); err != nil {
						return err
					}
					for j := range v {
						if v[j] != 0 {
							return fmt.Errorf("round %d: element %d of new memory is %d", i, j, v[j])
						}
					}
					kept = append(kept, v)
				}
				if err := useVector(ctx, c, v, i); err != nil {
					return err
				}
				for len(kept) > alone.IntN(8) {
					at := alone.IntN(len(kept))
					if err := freeLocal(c, kept[at]); err != nil {
						return err
					}
					kept = append(kept[:at], kept[at+1:]...)
				}
			}
			for _, v := range kept {
				if err := freeLocal(c, v); err != nil {
					return err
				}
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("%d ranks: %v", p, err)
		}
	}
}

// useVector has v summed, sent around and told to all, and checks what comes of it.
func useVector(ctx context.Context, c *comm.Comm, v []int64, i int) error {
	fill := func(x int) {
		for j := range v {
			v[j] = int64(x + j)
		}
	}
	check := func(what string, want func(j int) int64) error {
		for j := range v {
			if v[j] != want(j) {
				return fmt.Errorf("round %d, %d elements: %s: element %d is %d, want %d", i, len(v), what, j,
					v[j], want(j))
			}
		}
		return nil
	}
	p, me := c.Size(), c.Rank()
	fill(me + i)
	if err := comm.Allreduce(ctx, c, v, v, comm.Sum); err != nil {
		return err
	}
	if err := check("sum", func(j int) int64 { return int64(sumOfRanks(p, i+j)) }); err != nil {
		return err
	}
	fill(me + i)
	if err := comm.Bcast(ctx, c, i%p, v); err != nil {
		return err
	}
	if err := check("bcast", func(j int) int64 { return int64(i%p + i + j) }); err != nil {
		return err
	}
	fill(me)
	in := make([]int64, len(v))
	if _, err := c.Sendrecv(ctx, (me+1)%p, 1, comm.Of(v), (me+p-1)%p, 1, comm.Of(in)); err != nil {
		return err
	}
	copy(v, in)
	return check("message", func(j int) int64 { return int64((me+p-1)%p + j) })
}

// A rank that shares no memory is refused what its machine does not have, too: Go's runtime would
// end the process.
func TestMemoryThatNoMachineHasIsAnError(t *testing.T) {
	for _, p := range []int{1, 2} {
		inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
			for _, n := range []int{1 << 46, math.MaxInt / 8, math.MaxInt} {
				_, all := comm.Alloc[byte](ctx, c, n)
				_, local := c.AllocLocal(comm.TypeOf[byte](), n)
				if !errors.Is(all, comm.ErrMemory) || !errors.Is(local, comm.ErrMemory) {
					return fmt.Errorf("%d bytes: Alloc %v, AllocLocal %v; want ErrMemory", n, all, local)
				}
			}
			return nil
		})
	}
}

// What is not to be had is told, and takes nothing.
func TestMissingMemoryOfOneRankIsReported(t *testing.T) {
	err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 { // alone
			if _, err := allocLocal(c, 1<<50); !errors.Is(err, comm.ErrMemory) ||
				!strings.Contains(err.Error(), "alloc_local") {
				return fmt.Errorf("8 PiB: %v", err)
			}
			if _, err := allocLocal(c, -1); !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("-1 elements: %v", err)
			}
			v, err := allocLocal(c, 10)
			if err != nil {
				return err
			}
			for _, other := range [][]int64{make([]int64, 10), v[:9]} {
				if err := freeLocal(c, other); !errors.Is(err, comm.ErrArgument) {
					return fmt.Errorf("other memory is taken back: %v", err)
				}
			}
			if err := freeLocal(c, v); err != nil {
				return err
			}
			if err := freeLocal(c, v); !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("memory is taken back twice: %v", err)
			}
		}
		return c.Barrier(ctx)
	})...)
	if err != nil {
		t.Error(err)
	}
}

// After a collective that failed, others may still write to its vectors: that memory is nobody
// else's.
func TestMemoryOfAFailedCollectiveIsNotUsedAgain(t *testing.T) {
	errs := inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		v, err := allocLocal(d, 1000)
		if err != nil {
			return err
		}
		if err := comm.Allreduce(ctx, d, v, v, []comm.Op{comm.Sum, comm.Max}[c.Rank()]); !errors.Is(err,
			comm.ErrMismatch) && d.Err() == nil {
			return fmt.Errorf("ranks that differ: %v", err)
		}
		if err := freeLocal(d, v); err != nil {
			return err
		}
		w, err := allocLocal(c, 1000)
		if err != nil {
			return err
		}
		if &v[0] == &w[0] {
			return errors.New("the memory is used again")
		}
		return freeLocal(c, w)
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestMembersMakeGroupsThatShareMemory(t *testing.T) {
	for name, f := range map[string]rankFunc{"alone": membersAloneMakeAGroup,
		"at the same time": groupsAreMadeAtTheSameTime} {
		p := map[string]int{"alone": 4, "at the same time": 3}[name]
		err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
			if err := f(ctx, c); err != nil || c.Rank()%2 == 1 {
				return err
			}
			d, err := made(ctx, c, 7, 2, 0)
			if err != nil {
				return err
			}
			if !inside(d).SharesMemory() {
				return errors.New("the group shares no memory")
			}
			return d.Close(ctx)
		})...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Blocks of shared memory are given back: there are fewer than groups are made here.
func TestGroupsGiveTheirMemoryBack(t *testing.T) {
	err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for i := range 500 {
			d, err := c.CreateGroup(ctx, c.Group(), i%3)
			if err != nil {
				return err
			}
			if !inside(d).SharesMemory() {
				return fmt.Errorf("group %d shares no memory", i)
			}
			if err := d.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

func allocLocal(c *comm.Comm, n int) ([]int64, error) {
	b, err := c.AllocLocal(comm.TypeOf[int64](), n)
	if err != nil {
		return nil, err
	}
	return comm.Slice[int64](b), nil
}

func freeLocal(c *comm.Comm, v []int64) error { return c.FreeLocal(comm.Of(v)) }
