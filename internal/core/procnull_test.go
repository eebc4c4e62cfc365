package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
)

var ofProcNull = comm.Status{Source: comm.ProcNull, Tag: comm.AnyTag}

// A receive from ProcNull, in each form, given a buffer of one element.
var nullReceives = map[string]func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error){
	"Recv": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		return c.Recv(ctx, comm.ProcNull, 3, b)
	},
	"Irecv": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		return c.Irecv(comm.ProcNull, comm.AnyTag, b).Wait(ctx)
	},
	"RecvInit": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		p := c.RecvInit(comm.ProcNull, 3, b)
		first, err := p.Start().Wait(ctx)
		second, again := p.Start().Wait(ctx)
		if first != second {
			again = fmt.Errorf("the second time %+v", second)
		}
		return first, errors.Join(err, again)
	},
	"Test": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		r := c.Irecv(comm.ProcNull, 3, b)
		if !r.Done() || r.Cancel() {
			return comm.Status{}, errors.New("it is not done, or was withdrawn")
		}
		st, _, err := r.Test()
		return st, err
	},
	"WaitAny": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		_, st, err := comm.WaitAny(ctx, c.Irecv(comm.ProcNull, 3, b))
		return st, err
	},
	"Sendrecv": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		return c.Sendrecv(ctx, comm.ProcNull, 3, b, comm.ProcNull, 3, b)
	},
	"Probe": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		return c.Probe(ctx, comm.ProcNull, 3)
	},
	"Iprobe": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		st, ok, err := c.Iprobe(comm.ProcNull, comm.AnyTag)
		if !ok {
			err = errors.New("nothing was found")
		}
		return st, err
	},
	"Mprobe": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		m, err := c.Mprobe(ctx, comm.ProcNull, 3)
		return recvOf(ctx, m, b, err)
	},
	"Improbe": func(ctx context.Context, c *comm.Comm, b comm.Buffer) (comm.Status, error) {
		m, err := c.Improbe(comm.ProcNull, 3)
		return recvOf(ctx, m, b, err)
	},
}

// recvOf receives m, which says the same as its receive does.
func recvOf(ctx context.Context, m *comm.Message, b comm.Buffer, err error) (comm.Status, error) {
	if err != nil || m == nil {
		return comm.Status{}, errors.Join(errors.New("nothing was found"), err)
	}
	st, err := m.Recv(ctx, b)
	if m.Status != st {
		err = fmt.Errorf("the message has %+v", m.Status)
	}
	return st, err
}

// nullSends are sends to ProcNull, in each form.
var nullSends = map[string]func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error{
	"Send": func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error {
		return c.Send(ctx, comm.ProcNull, tag, b)
	},
	"Ssend": func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error {
		return c.Ssend(ctx, comm.ProcNull, tag, b)
	},
	"Isend": func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error {
		return second(c.Isend(comm.ProcNull, tag, b).Wait(ctx))
	},
	"Issend": func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error {
		return comm.WaitAll(ctx, c.Issend(comm.ProcNull, tag, b))
	},
	"SendInit": func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error {
		return second(c.SendInit(comm.ProcNull, tag, b).Start().Wait(ctx))
	},
	"SsendInit": func(ctx context.Context, c *comm.Comm, tag int, b comm.Buffer) error {
		return second(c.SsendInit(comm.ProcNull, tag, b).Start().Wait(ctx))
	},
}

func TestMessagesWithProcNullAreCompleteAtOnce(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error { return withProcNull(ctx, c) })
}

func TestProcNullIsThereOnABrokenComm(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		broken, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		broken.Revoke("it is to be broken")
		return errors.Join(withProcNull(ctx, broken), broken.Close(ctx))
	})
}

func withProcNull(ctx context.Context, c *comm.Comm) error {
	for name, receive := range nullReceives {
		x := []int{7}
		if st, err := receive(ctx, c, comm.Of(x)); err != nil || st != ofProcNull || x[0] != 7 {
			return fmt.Errorf("%s: got %+v, %v and %d, want %+v and 7", name, st, err, x[0], ofProcNull)
		}
	}
	for name, send := range nullSends {
		if err := send(ctx, c, 5, comm.Of(make([]int, 100_000))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// A line of ranks, each of which sends to the next: the ends have a neighbor less.
func TestASendrecvWithProcNullIsTheOtherHalf(t *testing.T) {
	inBubble(t, 4, func(ctx context.Context, c *comm.Comm) error {
		from, to := c.Rank()-1, c.Rank()+1
		want := comm.Status{Source: from, Tag: 9, Bytes: 16, Type: comm.TypeOf[int]()}
		wanted := []int{10 * from, 1}
		if from < 0 {
			from, want, wanted = comm.ProcNull, ofProcNull, []int{-1, -1}
		}
		if to == c.Size() {
			to = comm.ProcNull
		}
		for range 3 { // nothing is left behind for the next
			got := []int{-1, -1}
			st, err := comm.Sendrecv(ctx, c, to, 9, []int{10 * c.Rank(), 1}, from, 9, got)
			if err != nil || st != want || !slices.Equal(got, wanted) {
				return fmt.Errorf("got %v with %+v, %v, want %v with %+v", got, st, err, wanted, want)
			}
		}
		return nil
	})
}

func TestTheTagOfProcNullIsChecked(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		x := comm.Of([]int{7})
		for name, send := range nullSends {
			if err := send(ctx, c, -1, x); !errors.Is(err, comm.ErrArgument) ||
				!strings.Contains(err.Error(), "tag -1: want 0 to") {
				return fmt.Errorf("%s with tag -1: %v", name, err)
			}
		}
		for name, err := range map[string]error{
			"Recv":                second(c.Recv(ctx, comm.ProcNull, -2, x)),
			"Irecv":               second(c.Irecv(comm.ProcNull, -2, x).Wait(ctx)),
			"Probe":               second(c.Probe(ctx, comm.ProcNull, -2)),
			"Sendrecv, its send":  second(c.Sendrecv(ctx, comm.ProcNull, -2, x, comm.ProcNull, 1, x)),
			"Sendrecv, its recv":  second(c.Sendrecv(ctx, comm.ProcNull, 1, x, comm.ProcNull, -2, x)),
			"Sendrecv to nobody":  second(c.Sendrecv(ctx, 2, 1, x, comm.ProcNull, 1, x)),
			"Sendrecv of nothing": second(c.Sendrecv(ctx, comm.ProcNull, 1, x, 2, 1, x)),
			"Send to -3":          c.Send(ctx, -3, 1, x),
			"Bcast":               c.Bcast(ctx, comm.ProcNull, x),
		} {
			if !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("%s: got %v, want ErrArgument", name, err)
			}
		}
		return nil
	})
}
