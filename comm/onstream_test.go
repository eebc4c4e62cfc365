package comm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem/memtest"
)

// onQueues runs fn on p ranks, each with a queue of one device, in a bubble.
func onQueues(t *testing.T, p int, fn func(ctx context.Context, c *comm.Comm, q *memtest.Stream) error) {
	t.Helper()
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		q := memtest.NewDevice("gpu").OpenStream()
		return errors.Join(fn(ctx, c, q), q.Close())
	})
}

// Every collective can be started in the order of a queue: what it sends is stored by
// work before it, which rank 0 holds up until all have made their call, and work after
// it sees what it has received.
func TestEveryCollectiveStartsInTheOrderOfAStream(t *testing.T) {
	for _, p := range []int{1, 2, 3, 4} {
		var qs []question
		for i, kind := range everyKind {
			for _, n := range []int{0, 1, 1000} {
				q := question{kind: kind, ranks: p, n: n, root: p - 1, gaps: i%2 == 0, inPlace: n == 1}
				if reduces(kind) {
					q.op = deviceOps[i%len(deviceOps)]
				}
				qs = append(qs, q)
			}
		}
		onQueues(t, p, func(ctx context.Context, c *comm.Comm, queue *memtest.Stream) error {
			gate, e := make(chan struct{}), reals[float32]()
			queue.Do(func() error { <-gate; return nil })
			var rs []comm.Request
			for _, q := range qs {
				a := ask(q, e, c.Rank())
				started := formOf[float32](q.kind).persistent(c, &a.args)
				queue.Do(func() error { a.fill(); return nil })
				r := started.StartOn(queue)
				queue.Do(func() error {
					if err := a.check(); err != nil {
						return fmt.Errorf("%v: %w", q, err)
					}
					return nil
				})
				if _, err := started.StartOn(queue).Wait(ctx); !errors.Is(err, comm.ErrActive) {
					return fmt.Errorf("%v: started while active: %v", q, err)
				}
				rs = append(rs, r)
			}
			close(gate)
			return errors.Join(queue.Sync(), comm.WaitAll(ctx, rs...))
		})
	}
}

// Messages in the order of a queue keep their place among all others, on both sides,
// and what they do not need does not wait: not other messages, not the queue that has
// sent, and not the one that receives from a queue that has not come to its message.
func TestMessagesOnStreamsKeepTheirOrder(t *testing.T) {
	const n = 5000 // longer than what is sent at once
	for _, p := range []int{1, 2} {
		for _, size := range []int{1, n} {
			onQueues(t, p, func(ctx context.Context, c *comm.Comm, queue *memtest.Stream) error {
				to, from := (c.Rank()+1)%p, (c.Rank()+p-1)%p
				gate := make(chan struct{})
				out, err := clone(queue.Space(), comm.Of(make([]int32, size)))
				if err != nil {
					return err
				}
				put := func(v int32) error { return queue.Copy(out, comm.Of(filled(v, size))) }
				queue.Do(func() error { <-gate; return nil })
				err = put(1)
				first := c.SendOnStream(queue, to, 7, out)
				err = errors.Join(err, put(100))
				second := c.Isend(to, 7, comm.Of(filled(2, size)))
				third := c.SendInit(to, 7, out).StartOn(queue)
				err = errors.Join(err, put(200))
				if err != nil {
					return err
				}
				if _, err := comm.Sendrecv(ctx, c, to, 8, []int32{8}, from, 8, make([]int32, 1)); err != nil {
					return err
				}
				in := [][]int32{make([]int32, size), make([]int32, size), make([]int32, size)}
				received := memtest.NewDevice("other").OpenStream()
				defer received.Close()
				rs := []comm.Request{first, second, third,
					c.RecvOnStream(received, from, 7, comm.Of(in[0])),
					c.Irecv(from, 7, comm.Of(in[1])),
					c.RecvInit(from, comm.AnyTag, comm.Of(in[2])).StartOn(received)}
				if _, err := rs[4].Wait(ctx); err != nil { // it has overtaken what it must not wait for
					return err
				}
				early := first.Done() || third.Done() || rs[3].Done()
				err = comm.Barrier(ctx, c) // what others let go now is not early
				close(gate)
				if early {
					return errors.New("a message has come before what it waits for")
				}
				if err := errors.Join(err, received.Sync(), queue.Sync(), comm.WaitAll(ctx, rs...)); err != nil {
					return err
				}
				for i, want := range []int32{1, 2, 100} {
					if err := equal(fmt.Sprint("message ", i), in[i], filled(want, size)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

// filled returns n elements v.
func filled(v int32, n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// A message that is there before the queue comes to its receive leaves the buffer as it
// is until then.
func TestAMessageWaitsBesideItsBufferForTheStream(t *testing.T) {
	onQueues(t, 2, func(ctx context.Context, c *comm.Comm, queue *memtest.Stream) error {
		const n = 3
		if c.Rank() == 0 {
			return errors.Join(comm.Ssend(ctx, c, 1, 1, filled(5, n)), comm.Ssend(ctx, c, 1, 2, filled(6, n)))
		}
		gate, host := make(chan struct{}), filled(1, n)
		device, err := clone(queue.Space(), comm.Of(host))
		if err != nil {
			return err
		}
		sees := func(want ...int32) {
			queue.Do(func() error {
				there := make([]int32, n)
				err := queue.Space().Copy(comm.Of(there), device)
				return errors.Join(err, equal("host", host, filled(want[0], n)), equal("device", there, filled(want[1], n)))
			})
		}
		queue.Do(func() error { <-gate; return nil })
		sees(1, 1)
		rs := []comm.Request{c.RecvOnStream(queue, 0, 1, comm.Of(host))}
		sees(5, 1)
		rs = append(rs, c.RecvOnStream(queue, 0, comm.AnyTag, device))
		sees(5, 6)
		synctest.Wait() // the messages are there
		close(gate)
		if err := queue.Sync(); err != nil {
			return err
		}
		for i, r := range rs {
			if st, err := r.Wait(ctx); err != nil || st.Source != 0 || st.Tag != i+1 || st.Count() != n {
				return fmt.Errorf("message %d: %+v, %v", i, st, err)
			}
		}
		return nil
	})
}

// What is wrong is the Request's to tell, and the queue goes on.
func TestMessagesOnStreamsFailAsOthers(t *testing.T) {
	onQueues(t, 2, func(ctx context.Context, c *comm.Comm, queue *memtest.Stream) error {
		b := make([]int32, 2)
		if c.Rank() == 1 { // it leaves only then: receives from who has left fail, and are not canceled
			return errors.Join(comm.Barrier(ctx, c), comm.Send(ctx, c, 0, 1, []int32{1, 2, 3}))
		}
		if _, err := c.SendOnStream(queue, 2, 0, comm.Of(b)).Wait(ctx); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("to a rank that does not exist: %v", err)
		}
		withdrawn := c.RecvOnStream(queue, 1, 9, comm.Of(b))
		if !withdrawn.Cancel() {
			return errors.New("a receive without a message was not canceled")
		}
		if _, err := withdrawn.Wait(ctx); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("canceled receive: %v", err)
		}
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		if _, err := c.RecvOnStream(queue, 1, 1, comm.Of(b)).Wait(ctx); !errors.Is(err, comm.ErrTruncated) {
			return fmt.Errorf("three elements for two: %v", err)
		}
		return errors.Join(queue.Sync(), equal("what fits", b, []int32{1, 2}))
	})
}

// A send that cannot read its buffer after it was announced ends the receive that waits
// for it, with the reason.
func TestASendOnAStreamThatFailsIsToldToTheReceiver(t *testing.T) {
	for _, p := range []int{1, 2} {
		var errs []error
		synctest.Test(t, func(t *testing.T) {
			errs = commtest.Ranks(t.Context(), p, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				in := c.Irecv(0, 1, comm.Of(make([]int32, 3)))
				if c.Rank() > 0 {
					_, err := in.Wait(ctx)
					return err
				}
				queue := memtest.NewDevice("gpu").OpenStream()
				defer queue.Close()
				b, err := queue.Space().Alloc(comm.Of([]int32{}).Type(), 3)
				if err != nil {
					return err
				}
				gate := make(chan struct{})
				queue.Do(func() error { <-gate; return nil })
				r := c.SendOnStream(queue, p-1, 1, b)
				queue.Space().Free(b)
				close(gate)
				if _, err := r.Wait(ctx); err == nil || queue.Sync() != nil {
					return fmt.Errorf("sent from freed memory: %v", err)
				}
				_, err = in.Wait(ctx)
				return err
			})
		})
		for r, err := range errs {
			if problem := wrongCause(err, 0, "failed before isend: "); problem != nil {
				t.Errorf("np=%d: rank %d: %v", p, r, problem)
			}
		}
	}
}
