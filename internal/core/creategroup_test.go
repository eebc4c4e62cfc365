package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/comm"
)

// made returns a communicator of some ranks of c.
func made(ctx context.Context, c *comm.Comm, tag int, ranks ...int) (*comm.Comm, error) {
	g, err := c.Group().Incl(ranks...)
	if err != nil {
		return nil, err
	}
	return c.CreateGroup(ctx, g, tag)
}

// sumsRanks checks that an Allreduce of d sums what its ranks give: their numbers in c, which are
// ranks.
func sumsRanks(ctx context.Context, c, d *comm.Comm, ranks ...int) error {
	want := 0
	for i, r := range ranks {
		want += r
		if r == c.Rank() && d.Rank() != i || d.Size() != len(ranks) {
			return fmt.Errorf("rank %d of %v is %v", c.Rank(), ranks, d)
		}
	}
	x := []int{c.Rank()}
	if err := comm.Allreduce(ctx, d, x, x, comm.Sum); err != nil {
		return err
	}
	if x[0] != want {
		return fmt.Errorf("%v of %v: got %d, want %d", d, ranks, x[0], want)
	}
	return nil
}

// Members alone make a group, while the others wait for a message from anybody, which is none of
// those that make it.
func membersAloneMakeAGroup(ctx context.Context, c *comm.Comm) error {
	ranks := []int{3, 0, 2}
	if c.Rank() == 1 {
		x := []int{0}
		st, err := c.Recv(ctx, comm.AnySource, comm.AnyTag, comm.Of(x))
		if err == nil && (st.Source != 0 || st.Tag != 5 || x[0] != 77) {
			err = fmt.Errorf("got %v, %d", st, x[0])
		}
		return err
	}
	wild := []int{0}
	r := c.Irecv(comm.AnySource, comm.AnyTag, comm.Of(wild))
	d, err := made(ctx, c, 5, ranks...)
	if err != nil {
		return err
	}
	defer d.Close(ctx)
	if err := sumsRanks(ctx, c, d, ranks...); err != nil {
		return err
	}
	if c.Rank() == 0 {
		if err := c.Send(ctx, 1, 5, comm.Of([]int{77})); err != nil {
			return err
		}
	}
	if err := c.Send(ctx, c.Rank(), 9, comm.Of([]int{78})); err != nil {
		return err
	}
	if st, err := r.Wait(ctx); err != nil || st.Tag != 9 || wild[0] != 78 {
		return fmt.Errorf("the receive from anybody got %v, %d, %v", st, wild[0], err)
	}
	e, err := made(ctx, d, 5, 1, 0) // in d's numbers: 0 and 3
	if d.Rank() == 2 {
		if !errors.Is(err, comm.ErrArgument) || !strings.Contains(err.Error(), "group [1 0] without this rank, 2") {
			return fmt.Errorf("a group without its caller: %v", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer e.Close(ctx)
	return sumsRanks(ctx, c, e, 0, 3)
}

func TestMembersAloneMakeAGroup(t *testing.T) { inBubble(t, 4, membersAloneMakeAGroup) }

// Goroutines of one rank make groups that have ranks in common at the same time, by their tags, and
// one after the other with the same tag.
func groupsAreMadeAtTheSameTime(ctx context.Context, c *comm.Comm) error {
	groups := [][]int{{0, 1}, {1, 2}, {2, 0}, {0, 1, 2}, {2, 1, 0}}
	errs := make(chan error, len(groups))
	for tag, ranks := range groups {
		go func() {
			var err error
			for range 5 {
				if !slices.Contains(ranks, c.Rank()) || err != nil {
					continue
				}
				var d *comm.Comm
				if d, err = made(ctx, c, tag, ranks...); err == nil {
					err = errors.Join(sumsRanks(ctx, c, d, ranks...), d.Close(ctx))
				}
			}
			errs <- err
		}()
	}
	var err error
	for range groups {
		err = errors.Join(err, <-errs)
	}
	return err
}

func TestGroupsAreMadeAtTheSameTime(t *testing.T) { inBubble(t, 3, groupsAreMadeAtTheSameTime) }

// Who gives other ranks is told, and those who wait fail.
func TestGroupsThatDifferAreNotMade(t *testing.T) {
	var errs [3]error // not returned: a rank that returns one ends the others, which may still be in the sum
	run := outcomes(t, 3, func(ctx context.Context, c *comm.Comm) error {
		ranks := []int{0, 1, 2}
		if c.Rank() == 2 {
			ranks = []int{0, 2}
		}
		_, errs[c.Rank()] = made(ctx, c, 1, ranks...)
		d, err := made(ctx, c, 1, 0, 1, 2) // nothing of the first is left
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		x := []int{1}
		if e := comm.Allreduce(ctx, c, x, x, comm.Sum); e != nil || x[0] != 3 {
			return fmt.Errorf("the parent sums to %d, %v", x[0], e)
		}
		return nil
	})
	if err := errors.Join(run...); err != nil {
		t.Error(err)
	}
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "rank 0 makes a group of [0 1 2], but rank 2 of [0 2]") {
			t.Errorf("rank %d: %v", rank, err)
		}
		if !errors.Is(err, comm.ErrMismatch) {
			t.Errorf("rank %d: %v is not ErrMismatch", rank, err)
		}
	}
}

func TestGroupsOfWrongArgumentsAreNotMade(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Split(ctx, c.Rank(), 0)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		for want, got := range map[string]error{
			"tag -1": errorOf(c.CreateGroup(ctx, c.Group(), -1)),
			"group with 1 ranks that are not in world/split": errorOf(d.CreateGroup(ctx, c.Group(), 1)),
		} {
			if !errors.Is(got, comm.ErrArgument) || !strings.Contains(got.Error(), want) {
				return fmt.Errorf("got %v, want %q", got, want)
			}
		}
		e, err := c.CreateGroup(ctx, c.Group(), 1) // nothing was sent before
		if err != nil {
			return err
		}
		return e.Close(ctx)
	})
}

func errorOf[T any](_ T, err error) error { return err }

// A member that leaves makes the others fail; the parent stays whole.
func TestAMemberThatLeavesEndsTheGroupForTheOthers(t *testing.T) {
	for _, leaver := range []int{0, 2} {
		inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			defer d.Close(ctx)
			if c.Rank() == leaver {
				return errors.Join(d.Close(ctx), c.Barrier(ctx))
			}
			if _, err := made(ctx, d, 1, 0, 1, 2); err == nil || !strings.Contains(err.Error(), "left") {
				return fmt.Errorf("rank %d leaves: got %v", leaver, err)
			}
			return c.Barrier(ctx)
		})
	}
}

// A group whose members do not come in time is given up without a trace: other groups are made, and
// so is this one, later.
func TestAGroupThatIsGivenUpIsItsMembersAffair(t *testing.T) {
	inBubble(t, 4, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() < 2 {
			short, cancel := context.WithTimeout(ctx, time.Duration(1+c.Rank())*time.Second)
			defer cancel()
			ranks := [][]int{{0, 1}, {1, 3}}[c.Rank()] // of which the others do not know
			if _, err := made(short, c, 0, ranks...); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("rank %d: got %v", c.Rank(), err)
			}
		}
		mine := [][]int{{0, 1}, {0, 1}, {2, 3}, {2, 3}}[c.Rank()]
		d, err := made(ctx, c, 0, mine...)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		return errors.Join(sumsRanks(ctx, c, d, mine...), c.Barrier(ctx))
	})
}

// A member that gives up when others have heard from it ends the call for them, or breaks the group
// that they have made; later they make it, with the same tag.
func TestWhoGivesUpAGroupEndsItForTheOthers(t *testing.T) {
	for _, tt := range []struct {
		first int // to give up
		want  [3]error
	}{
		{0, [3]error{context.DeadlineExceeded, comm.ErrRevoked, context.DeadlineExceeded}},
		{1, [3]error{comm.ErrRevoked, context.DeadlineExceeded, comm.ErrRevoked}},
	} {
		inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
			limit := time.Hour
			switch {
			case c.Rank() == tt.first:
				limit = time.Second
			case c.Rank() == 2:
				time.Sleep(2 * time.Second) // the others wait for it
				if tt.first == 0 {
					limit = time.Second // no rank will answer
				}
			}
			short, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			d, err := made(short, c, 1, 0, 1, 2)
			if err == nil {
				err = d.Barrier(ctx)
				d.Close(ctx)
			}
			if want := tt.want[c.Rank()]; !errors.Is(err, want) {
				return fmt.Errorf("rank %d gives up: rank %d got %v, want %v", tt.first, c.Rank(), err, want)
			}
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			if d, err = made(ctx, c, 1, 0, 1, 2); err != nil {
				return err
			}
			defer d.Close(ctx)
			return sumsRanks(ctx, c, d, 0, 1, 2)
		})
	}
}
