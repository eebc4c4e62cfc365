package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/comm"
)

func TestSplitByColorAndKey(t *testing.T) {
	const p = 6
	tests := []struct {
		name       string
		color, key func(r int) int
		want       [][]int // the ranks of each part, in order
	}{
		{"one part", func(r int) int { return 5 }, func(r int) int { return 0 }, [][]int{{0, 1, 2, 3, 4, 5}}},
		{"reversed", func(r int) int { return 0 }, func(r int) int { return -r }, [][]int{{5, 4, 3, 2, 1, 0}}},
		{"odd and even", func(r int) int { return r % 2 }, func(r int) int { return 0 }, [][]int{{0, 2, 4}, {1, 3, 5}}},
		{"keys decide, then ranks", func(r int) int { return r / 3 }, func(r int) int { return r % 2 },
			[][]int{{0, 2, 1}, {4, 3, 5}}},
		{"all alone", func(r int) int { return r }, func(r int) int { return r },
			[][]int{{0}, {1}, {2}, {3}, {4}, {5}}},
		{"some in none", func(r int) int { return r%3 - 1 }, func(r int) int { return 0 }, [][]int{{1, 4}, {2, 5}}},
	}
	for _, tt := range tests {
		inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
			sub, err := c.Split(ctx, tt.color(c.Rank()), tt.key(c.Rank()))
			if err != nil {
				return err
			}
			if sub == nil {
				if tt.color(c.Rank()) != comm.Undefined {
					return fmt.Errorf("%s: rank %d got nil", tt.name, c.Rank())
				}
				return nil
			}
			defer sub.Close(ctx)
			all := make([]int, sub.Size())
			if err := comm.Allgather(ctx, sub, []int{c.Rank()}, all); err != nil {
				return err
			}
			for _, part := range tt.want {
				if part[0] == all[0] {
					return equal(tt.name, all, part)
				}
			}
			return fmt.Errorf("%s: rank %d is in %v, want one of %v", tt.name, c.Rank(), all, tt.want)
		})
	}
}

func TestSplitRefusesNegativeColors(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if _, err := c.Split(ctx, -2, 0); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("got %v, want ErrArgument", err)
		}
		return comm.Barrier(ctx, c)
	})
}

// What says which ranks are in a communicator is the same on all, where it has to be.
func TestCommsOfWhichRanksDifferAreNotMade(t *testing.T) {
	create := func(ranks ...int) func(context.Context, *comm.Comm) (*comm.Comm, error) {
		return func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) {
			g, err := c.Group().Incl(ranks...)
			if err != nil {
				return nil, err
			}
			return c.Create(ctx, g)
		}
	}
	host := func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) { return c.SplitHost(ctx) }
	split := func(ctx context.Context, c *comm.Comm) (*comm.Comm, error) { return c.Split(ctx, 0, 0) }
	for name, two := range map[string][2]func(context.Context, *comm.Comm) (*comm.Comm, error){
		"a rank more":    {create(0, 1), create(0, 1, 2)},
		"another order":  {create(0, 1, 2), create(1, 0, 2)},
		"groups overlap": {create(0, 1), create(1, 2)},
		"of others":      {create(2), create(0, 1)},
		"others give it": {create(0, 1), create(0)},
		"host and split": {host, split},
	} {
		for rank, err := range outcomes(t, 3, func(ctx context.Context, c *comm.Comm) error {
			if _, err := two[c.Rank()/2](ctx, c); !errors.Is(err, comm.ErrMismatch) {
				return fmt.Errorf("got %v, want ErrMismatch", err)
			}
			return comm.Barrier(ctx, c) // who leaves first would be another reason
		}) {
			if err != nil && !errors.Is(err, comm.ErrMismatch) {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}

func TestSplitsNest(t *testing.T) {
	inBubble(t, 8, func(ctx context.Context, c *comm.Comm) error {
		for on := c; on.Size() > 1; {
			half, err := on.Split(ctx, on.Rank()%2, -on.Rank())
			if err != nil {
				return err
			}
			defer half.Close(ctx)
			sum := []int{1}
			if err := comm.Allreduce(ctx, half, sum, sum, comm.Sum); err != nil {
				return err
			}
			if sum[0] != half.Size() || half.Size() != on.Size()/2 {
				return fmt.Errorf("%v: %d ranks answered", half, sum[0])
			}
			on = half
		}
		return comm.Barrier(ctx, c)
	})
}

// Every communicator of a job has another id, its members know it by the same,
// and closing one does not make its id free.
func TestContextIDsAreSharedAndNeverReused(t *testing.T) {
	const p = 5
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		seen := map[uint64]bool{inside(c).ID(): true}
		for i := range 20 {
			var sub *comm.Comm
			var err error
			if i%2 == 0 {
				sub, err = c.Dup(ctx)
			} else {
				sub, err = c.Split(ctx, (c.Rank()+i)%3, i)
			}
			if err != nil {
				return err
			}
			ids := make([]uint64, sub.Size())
			if err := comm.Allgather(ctx, sub, []uint64{inside(sub).ID()}, ids); err != nil {
				return err
			}
			all := make([]uint64, p)
			if err := comm.Allgather(ctx, c, ids[:1], all); err != nil {
				return err
			}
			for r, id := range all {
				if sub.Group().Translate(c.Group())[0] == r && id != inside(sub).ID() {
					return fmt.Errorf("rank %d knows %#x as %#x", r, inside(sub).ID(), id)
				}
				if seen[id] {
					return fmt.Errorf("context id %#x was used before", id)
				}
			}
			for _, id := range all {
				seen[id] = true
			}
			if i%3 > 0 {
				sub.Close(ctx)
			} else {
				defer sub.Close(ctx)
			}
		}
		return nil
	})
}

// The upper half of an id is its first member's world rank.
func TestContextIDNamesTheFirstMember(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		sub, err := c.Split(ctx, 0, -c.Rank())
		if err != nil {
			return err
		}
		defer sub.Close(ctx)
		if first := inside(sub).ID() >> 32; first != 2 {
			return fmt.Errorf("id %#x: first member %d, want 2", inside(sub).ID(), first)
		}
		return nil
	})
}

func TestNames(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer dup.Close(ctx)
		reversed, err := dup.Split(ctx, 0, -c.Rank())
		if err != nil {
			return err
		}
		defer reversed.Close(ctx)
		if c.Name() != "world" || dup.Name() != "world/dup" || reversed.Name() != "world/dup/split" {
			return fmt.Errorf("names %q, %q, %q", c.Name(), dup.Name(), reversed.Name())
		}
		if want := fmt.Sprintf("world/dup/split[%d/3]", 2-c.Rank()); reversed.String() != want {
			return fmt.Errorf("%v, want %s", reversed, want)
		}
		dup.SetName("rows")
		if err := dup.Send(ctx, 9, 0, comm.Of([]int{})); err == nil || !strings.Contains(err.Error(), "of rows: ") {
			return fmt.Errorf("error of a renamed communicator: %v", err)
		}
		return nil
	})
}
