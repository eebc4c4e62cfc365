package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/comm"
)

// Sizes in int64 on both sides of the eager limit.
var messageSizes = []int{0, 1, 8192, 8193, 100_000}

func TestMessagesOfOneTagArriveInTheOrderSent(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		const n = 300
		if c.Rank() == 0 {
			var rs []comm.Request
			for i := range n { // sizes in turn, so that later ones could overtake
				data := make([]int64, 1+messageSizes[i%len(messageSizes)])
				data[0] = int64(i)
				rs = append(rs, comm.Isend(c, 1, i%2, data))
			}
			return comm.WaitAll(ctx, rs...)
		}
		data := make([]int64, 100_001)
		for tag := 1; tag >= 0; tag-- {
			for i := tag; i < n; i += 2 {
				st, err := comm.Recv(ctx, c, 0, tag, data)
				if err != nil {
					return err
				}
				if data[0] != int64(i) || st.Count() != 1+messageSizes[i%len(messageSizes)] {
					return fmt.Errorf("tag %d: got message %d of %d elements, want message %d", tag, data[0],
						st.Count(), i)
				}
			}
		}
		return nil
	})
}

func TestWildcardsTakeTheOldestThatFits(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() > 0 {
			for tag := range 3 {
				if err := comm.Send(ctx, c, 0, tag, []int{c.Rank()*10 + tag}); err != nil {
					return err
				}
			}
			return comm.Barrier(ctx, c)
		}
		if err := comm.Barrier(ctx, c); err != nil { // everything is here now
			return err
		}
		x := make([]int, 1)
		for _, want := range []struct{ from, tag, got int }{
			{comm.AnySource, 2, -2}, {2, comm.AnyTag, 20}, {1, 1, 11}, {1, comm.AnyTag, 10}, {2, comm.AnyTag, 21},
			{comm.AnySource, comm.AnyTag, -2},
		} {
			st, err := comm.Recv(ctx, c, want.from, want.tag, x)
			if err != nil {
				return err
			}
			if want.got < 0 { // either rank's, but of this tag
				want.got = st.Source*10 - want.got
			}
			if x[0] != want.got || st.Source != x[0]/10 || st.Tag != x[0]%10 || st.Count() != 1 || st.Bytes != 8 {
				return fmt.Errorf("from %d, tag %d: got %d with status %+v, want %d", want.from, want.tag, x[0],
					st, want.got)
			}
		}
		return nil
	})
}

func TestSsendReturnsWhenTheReceiveHasMatchedAndNotBefore(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			if _, err := comm.Recv(ctx, c, 0, 2, []int{}); err != nil {
				return err
			}
			return second(comm.Recv(ctx, c, 0, 1, make([]int, 1)))
		}
		r := comm.Issend(c, 1, 1, []int{7})
		synctest.Wait() // everybody sleeps
		if r.Done() {
			return errors.New("Issend is done without a receive")
		}
		if err := comm.Send(ctx, c, 1, 2, []int{}); err != nil {
			return err
		}
		return second(r.Wait(ctx))
	})
}

func TestSsendToOneselfWaitsForTheReceive(t *testing.T) {
	inBubble(t, 1, func(ctx context.Context, c *comm.Comm) error {
		r := comm.Issend(c, 0, 1, []int{7})
		synctest.Wait()
		if r.Done() {
			return errors.New("Issend is done without a receive")
		}
		x := make([]int, 1)
		if _, err := comm.Recv(ctx, c, 0, 1, x); err != nil || x[0] != 7 {
			return fmt.Errorf("got %v, %v", x, err)
		}
		return second(r.Wait(ctx))
	})
}

func TestSendReturnsBeforeTheReceiveUpToTheEagerLimit(t *testing.T) {
	for _, limit := range []int{100, -1} {
		withConfig(t, 2, comm.Config{EagerLimit: limit}, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 1 {
				if err := comm.Barrier(ctx, c); err != nil {
					return err
				}
				_, err := comm.Recv(ctx, c, 0, 0, make([]byte, 101))
				return errors.Join(err, second(comm.Recv(ctx, c, 0, 0, make([]byte, 101))))
			}
			short, long := comm.Isend(c, 1, 0, make([]byte, 100)), comm.Isend(c, 1, 0, make([]byte, 101))
			synctest.Wait()
			if short.Done() != (limit == 100) || long.Done() {
				return fmt.Errorf("limit %d: 100 bytes done: %v, 101 bytes done: %v", limit, short.Done(), long.Done())
			}
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
			return comm.WaitAll(ctx, short, long)
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A receive that finds its message at once must not take what an earlier one waits
// for, nor what it cannot hold or has another tag.
func TestReceivesAreServedInTheirOrderOverSharedMemory(t *testing.T) {
	const rounds = 200
	err := errors.Join(overMemory(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for i := range rounds {
			if c.Rank() == 0 {
				rs := []comm.Request{comm.Isend(c, 1, 4, []int{i, 1})}
				for k, tag := range []int{5, 5, 6, 5} {
					rs = append(rs, comm.Isend(c, 1, tag, []int{i, k + 2}))
				}
				if err := errors.Join(comm.WaitAll(ctx, rs...), second(comm.Recv(ctx, c, 1, 0, []int{}))); err != nil {
					return err
				}
				continue
			}
			var in [5][2]int
			any := comm.Irecv(c, comm.AnySource, comm.AnyTag, in[0][:])
			named := comm.Irecv(c, 0, 5, in[1][:])
			_, last := comm.Recv(ctx, c, 0, 6, in[3][:])
			_, short := comm.Recv(ctx, c, 0, 5, in[2][:1])
			st, rest := comm.Recv(ctx, c, 0, comm.AnyTag, in[4][:])
			if !errors.Is(short, comm.ErrTruncated) {
				return fmt.Errorf("receive of one element: got %v, want ErrTruncated", short)
			}
			if err := errors.Join(last, rest, comm.WaitAll(ctx, any, named),
				comm.Send(ctx, c, 0, 0, []int{})); err != nil {
				return err
			}
			if want := [5][2]int{{i, 1}, {i, 2}, {i, 0}, {i, 4}, {i, 5}}; in != want || st.Tag != 5 {
				return fmt.Errorf("round %d: received %v, the last with tag %d; want %v and 5", i, in, st.Tag, want)
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

// After some messages their sender is told that they have been taken in.
func TestStatusIsThatOfTheMessageWhateverElseIsSent(t *testing.T) {
	const messages, size = 200, 30_000
	err := errors.Join(overMemory(t, 2, func(ctx context.Context, c *comm.Comm) error {
		x := make([]byte, size)
		for i := range messages {
			if c.Rank() == 0 {
				if err := comm.Send(ctx, c, 1, i%7, x[i:]); err != nil {
					return err
				}
				continue
			}
			recv := comm.Recv[byte]
			if i%2 > 0 {
				recv = func(ctx context.Context, c *comm.Comm, from, tag int, data []byte) (comm.Status, error) {
					return comm.Irecv(c, from, tag, data).Wait(ctx)
				}
			}
			st, err := recv(ctx, c, 0, comm.AnyTag, x)
			if want := (comm.Status{Tag: i % 7, Bytes: size - i, Type: comm.Of(x).Type()}); err != nil || st != want {
				return fmt.Errorf("message %d: %+v, %v; want %+v", i, st, err, want)
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

func TestSendrecvGoesRoundARing(t *testing.T) {
	for _, p := range []int{1, 2, 5} {
		inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
			for _, n := range messageSizes {
				out, in := integers[int64]().vector(c.Rank(), n), make([]int64, n)
				left, right := (c.Rank()+p-1)%p, (c.Rank()+1)%p
				st, err := comm.Sendrecv(ctx, c, right, 3, out, left, comm.AnyTag, in)
				if err != nil {
					return err
				}
				if st.Source != left || st.Tag != 3 || st.Count() != n {
					return fmt.Errorf("got status %+v", st)
				}
				if err := equal("ring", in, integers[int64]().vector(left, n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func TestManyOutstandingSendsAndReceives(t *testing.T) {
	const p, each = 4, 100
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		var rs []comm.Request
		in := make([][]int64, p*each)
		for r := range p {
			for i := range each {
				k := r*each + i
				in[k] = make([]int64, messageSizes[i%4])
				rs = append(rs, comm.Irecv(c, r, i, in[k]))
			}
		}
		for i := each - 1; i >= 0; i-- { // against the order of the receives
			for r := range p {
				rs = append(rs, comm.Isend(c, r, i, integers[int64]().vector(c.Rank()+i, messageSizes[i%4])))
			}
		}
		if err := comm.WaitAll(ctx, rs...); err != nil {
			return err
		}
		for k, v := range in {
			r, i := k/each, k%each
			if err := equal(fmt.Sprintf("from %d, tag %d", r, i), v,
				integers[int64]().vector(r+i, len(v))); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestTruncatedMessageKeepsItsBeginningAndBreaksNothing(t *testing.T) {
	for _, from := range []int{0, 1} {
		for _, n := range messageSizes[2:] {
			inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
				return truncate(ctx, c, from, integers[int64]().vector(1, n))
			})
		}
	}
}

func truncate(ctx context.Context, c *comm.Comm, from int, sent []int64) error {
	if c.Rank() == from {
		s := comm.Isend(c, 0, 9, sent)
		defer s.Wait(ctx)
	}
	if c.Rank() == 0 {
		got := make([]int64, 10)
		st, err := comm.Recv(ctx, c, from, 9, got)
		if !errors.Is(err, comm.ErrTruncated) || st.Count() != len(sent) || st.Source != from || st.Tag != 9 {
			return fmt.Errorf("got %v and status %+v, want ErrTruncated and %d elements", err, st, len(sent))
		}
		if err := equal("beginning", got, sent[:10]); err != nil {
			return err
		}
	}
	return comm.Barrier(ctx, c)
}

func TestMessageOfAnotherTypeIsRefusedAndBreaksNothing(t *testing.T) {
	for _, n := range messageSizes[1:] {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 0 {
				return errors.Join(comm.Send(ctx, c, 1, 0, make([]int64, n)), comm.Barrier(ctx, c))
			}
			got := []float64{1.5}
			_, err := comm.Recv(ctx, c, 0, 0, got)
			if !errors.Is(err, comm.ErrType) {
				return fmt.Errorf("%d elements: got %v, want ErrType", n, err)
			}
			if got[0] != 1.5 {
				return fmt.Errorf("%d elements: the buffer has changed to %v", n, got[0])
			}
			return comm.Barrier(ctx, c)
		})
	}
}

// Bytes may be received as any type, and any type as bytes.
func TestBytesFitEveryType(t *testing.T) {
	inBubble(t, 1, func(ctx context.Context, c *comm.Comm) error {
		r := comm.Isend(c, 0, 0, []uint8{1, 0, 0, 0})
		x := make([]int32, 1)
		st, err := comm.Recv(ctx, c, 0, 0, x)
		if err != nil || x[0] != 1 || st.Count() != 4 || st.Bytes != 4 {
			return fmt.Errorf("got %v, %v, status %+v", err, x, st)
		}
		return second(r.Wait(ctx))
	})
}

func TestMessagesToOneself(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for _, n := range messageSizes {
			out, in := integers[int64]().vector(c.Rank(), n), make([]int64, n)
			s := comm.Isend(c, c.Rank(), 5, out)
			st, err := comm.Recv(ctx, c, comm.AnySource, 5, in)
			if err != nil {
				return err
			}
			if err := errors.Join(equal("oneself", in, out), second(s.Wait(ctx))); err != nil {
				return err
			}
			if st.Source != c.Rank() {
				return fmt.Errorf("from rank %d, want %d", st.Source, c.Rank())
			}
			// And with the receive first.
			r := comm.Irecv(c, c.Rank(), 6, in)
			if err := errors.Join(comm.Send(ctx, c, c.Rank(), 6, out), second(r.Wait(ctx))); err != nil {
				return err
			}
		}
		return nil
	})
}
