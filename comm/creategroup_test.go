package comm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		if _, again := made(ctx, c, 2, 0, 1, 2); again == nil {
			return errors.New("a second one is made")
		}
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
		if rank == 0 && !errors.Is(err, comm.ErrMismatch) {
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

// Who gives up, and a member that leaves, make the others fail, too, or break what they have got;
// the parent stays whole.
func TestWhoMakesNoGroupEndsItForTheOthers(t *testing.T) {
	gives := func(ctx context.Context, c *comm.Comm) error {
		over, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("no time"))
		_, err := made(over, c, 1, 0, 1, 2)
		if err == nil || !strings.Contains(err.Error(), "no time") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	}
	leaves := func(ctx context.Context, c *comm.Comm) error { return c.Close(ctx) }
	for _, tt := range []struct {
		who  int
		what string
		end  func(ctx context.Context, c *comm.Comm) error
		want string
	}{
		{0, "gives up", gives, "no time"},
		{1, "gives up", gives, "no time"},
		{2, "gives up", gives, "no time"},
		{0, "leaves", leaves, "left"},
		{2, "leaves", leaves, "left"},
	} {
		t.Run(fmt.Sprint(tt.who, " ", tt.what), func(t *testing.T) {
			inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
				d, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				defer d.Close(ctx)
				if c.Rank() == tt.who {
					err = tt.end(ctx, d)
					return errors.Join(err, c.Barrier(ctx))
				}
				e, err := made(ctx, d, 1, 0, 1, 2)
				if err == nil { // the others' messages were enough
					defer e.Close(ctx)
					err = e.Barrier(ctx)
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					return fmt.Errorf("got %v, want %q", err, tt.want)
				}
				return c.Barrier(ctx)
			})
		})
	}
}
