package message_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"gompi/internal/boot"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport/inproc"
)

// run runs fn on n goroutine ranks that share one channel, in a bubble: a
// deadlock fails the test at once.
func run(t *testing.T, n int, fn func(ctx context.Context, e *message.Engine, ch *message.Channel) error) {
	t.Helper()
	runConfig(t, n, func(*message.Config) {}, fn)
}

// runConfig is run with a configuration that change has adapted.
func runConfig(t *testing.T, n int, change func(cfg *message.Config),
	fn func(ctx context.Context, e *message.Engine, ch *message.Channel) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net, boots := inproc.NewWorld(n), boot.Group(n)
		errs := make([]error, n)
		var all sync.WaitGroup
		for rank := range world.Rank(n) {
			p := inproc.NewParker()
			cfg := message.Config{
				Rank: rank, Size: n, Host: boots[rank].Info().Host, Boot: boots[rank],
				Parker: p, Yield: runtime.Gosched, Collectives: round.New, Eager: message.DefaultEager,
			}
			change(&cfg)
			e := message.New(cfg)
			boots[rank].SetWake(p.Wake)
			e.Use(net.Transport(rank, e, p))
			ch := e.Open(1, nil)
			all.Go(func() {
				errs[rank] = fn(t.Context(), e, ch)
				ch.Close()
				if err := e.Shutdown(t.Context()); err != nil {
					t.Errorf("rank %d: shutdown: %v", rank, err)
				}
				boots[rank].Goodbye(true)
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
}

// pattern returns n bytes that tell seed and position.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31)
	}
	return b
}

var sizes = []int{0, 1, 1000, message.DefaultEager, message.DefaultEager + 1, 3 << 20}

func TestSendAndRecvMoveAnySize(t *testing.T) {
	for _, size := range sizes {
		for _, sync := range []bool{false, true} {
			run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
				if ch.Rank() == 0 {
					return ch.Send(ctx, 1, 5, mem.Bytes(pattern(size, 3)), sync)
				}
				got := make([]byte, size+10)
				st, err := ch.Recv(ctx, message.Any, message.Any, mem.Bytes(got))
				if err != nil {
					return err
				}
				if st.Source != 0 || st.Tag != 5 || st.Bytes != size || !bytes.Equal(got[:size], pattern(size, 3)) {
					return fmt.Errorf("size %d sync %v: got status %+v or wrong bytes", size, sync, st)
				}
				return nil
			})
		}
	}
}

func TestUnexpectedMessagesAreKeptInOrder(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		const n = 100
		if ch.Rank() == 0 {
			for i := range n {
				if err := ch.Send(ctx, 1, i%3, mem.Bytes(pattern(i, i)), false); err != nil {
					return err
				}
			}
			return ch.Send(ctx, 1, 9, mem.Buffer{}, true)
		}
		if _, err := ch.Recv(ctx, 0, 9, mem.Buffer{}); err != nil { // now all have arrived
			return err
		}
		for tag := 2; tag >= 0; tag-- {
			for i := tag; i < n; i += 3 {
				got := make([]byte, n)
				st, err := ch.Recv(ctx, 0, tag, mem.Bytes(got))
				if err != nil {
					return err
				}
				if st.Bytes != i || !bytes.Equal(got[:i], pattern(i, i)) {
					return fmt.Errorf("tag %d: got message of %d bytes, want %d", tag, st.Bytes, i)
				}
			}
		}
		return nil
	})
}

func wait(ctx context.Context, e *message.Engine, h message.Handle) error {
	_, _, err := e.Wait(ctx, h)
	return err
}

func TestSendToOneself(t *testing.T) {
	for _, size := range sizes {
		run(t, 1, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			s := ch.Isend(0, 1, mem.Bytes(pattern(size, 1)), false)
			got := make([]byte, size)
			r := ch.Irecv(0, 1, mem.Bytes(got))
			if err := wait(ctx, e, r); err != nil {
				return err
			}
			if err := wait(ctx, e, s); err != nil {
				return err
			}
			if !bytes.Equal(got, pattern(size, 1)) {
				return fmt.Errorf("size %d: wrong bytes", size)
			}
			return nil
		})
	}
}

func TestEagerPayloadIsBoundedPerPeer(t *testing.T) {
	for _, tt := range []struct{ n, size int }{{1000, 60 << 10}, {25_000, 1}, {25_000, 0}} {
		eagerIsBounded(t, tt.n, tt.size)
	}
}

// eagerIsBounded sends n messages that nobody receives yet. A record of each is kept, with
// its payload: of all not much more than the budget, which is 4 MiB, where there is no memory
// beyond that.
func eagerIsBounded(t *testing.T, n, size int) {
	t.Helper()
	const record = 250
	runConfig(t, 2, func(cfg *message.Config) { cfg.Unexpected = func() int { return 1 } },
		func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			rs := make([]message.Handle, n)
			if ch.Rank() == 0 {
				for i := range rs {
					rs[i] = ch.Isend(1, 0, mem.Bytes(pattern(size, i)), false)
				}
				done := 0
				for i := range rs {
					if rs[i].Done() {
						done++
					}
				}
				if done*(size+record) > 5<<20 {
					return fmt.Errorf("%d sends of %d bytes complete without a receive", done, size)
				}
				if err := ch.Send(ctx, 1, 9, mem.Buffer{}, true); err != nil {
					return err
				}
				for i := range rs {
					if err := wait(ctx, e, rs[i]); err != nil {
						return err
					}
				}
				return nil
			}
			got := make([]byte, size)
			if _, err := ch.Recv(ctx, 0, 9, mem.Buffer{}); err != nil {
				return err
			}
			for i := range rs {
				if _, err := ch.Recv(ctx, 0, 0, mem.Bytes(got)); err != nil {
					return err
				}
				if !bytes.Equal(got, pattern(size, i)) {
					return fmt.Errorf("message %d: wrong bytes", i)
				}
			}
			return nil
		})
}

func TestTruncatedMessageIsAnErrorAndKeepsItsBeginning(t *testing.T) {
	for _, size := range []int{100, 1 << 20} {
		run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			if ch.Rank() == 0 {
				return ch.Send(ctx, 1, 0, mem.Bytes(pattern(size, 3)), false)
			}
			got := make([]byte, 40)
			st, err := ch.Recv(ctx, 0, 0, mem.Bytes(got))
			if !errors.Is(err, message.ErrTruncated) || st.Bytes != size {
				return fmt.Errorf("got %v, %d bytes: want ErrTruncated, %d", err, st.Bytes, size)
			}
			if !bytes.Equal(got, pattern(size, 3)[:40]) {
				return errors.New("the beginning is not there")
			}
			return nil
		})
	}
}

func TestCancelledRecvBreaksNothing(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			short, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := ch.Recv(short, 1, 0, mem.Bytes(make([]byte, 8))); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %v, want context.Canceled", err)
			}
		}
		got := make([]byte, 8)
		_, err := ch.Sendrecv(ctx, 1-ch.Rank(), 0, mem.Bytes(pattern(8, ch.Rank())), 1-ch.Rank(), 0, mem.Bytes(got))
		if err == nil && !bytes.Equal(got, pattern(8, 1-ch.Rank())) {
			err = errors.New("wrong bytes after a cancelled receive")
		}
		return err
	})
}

func TestRecvFromRankThatLeftFails(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			return ch.Send(ctx, 1, 0, mem.Bytes(pattern(10, 1)), false)
		}
		got := make([]byte, 10)
		if _, err := ch.Recv(ctx, 0, 0, mem.Bytes(got)); err != nil {
			return err
		}
		if _, err := ch.Recv(ctx, 0, 0, mem.Bytes(got)); !errors.Is(err, liveness.ErrLeft) {
			return fmt.Errorf("got %v, want ErrLeft", err)
		}
		if _, err := ch.Recv(ctx, message.Any, 0, mem.Bytes(got)); !errors.Is(err, liveness.ErrLeft) {
			return fmt.Errorf("any source: got %v, want ErrLeft", err)
		}
		return nil
	})
}

func TestProbe(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			if err := ch.Send(ctx, 1, 3, mem.Bytes(pattern(77, 1)), false); err != nil {
				return err
			}
			_, err := ch.Recv(ctx, 1, 4, mem.Buffer{})
			return err
		}
		_, st, err := ch.Probe(ctx, message.Any, 3, true, false)
		if err != nil || st.Bytes != 77 || st.Source != 0 {
			return fmt.Errorf("probe: %+v, %v", st, err)
		}
		m, _, err := ch.Probe(ctx, 0, message.Any, false, true)
		if err != nil || !m.Found() {
			return fmt.Errorf("matched probe: %v, %v", m, err)
		}
		if again, _, err := ch.Probe(ctx, 0, message.Any, false, false); again.Found() || err != nil {
			return fmt.Errorf("the message is still there after a matched probe (%v)", err)
		}
		got := make([]byte, 77)
		if _, err := m.Claim(ctx, mem.Bytes(got)); err != nil {
			return err
		}
		if !bytes.Equal(got, pattern(77, 1)) {
			return errors.New("wrong bytes")
		}
		return ch.Send(ctx, 0, 4, mem.Buffer{}, false)
	})
}

func TestManyGoroutinesWaitAtOnce(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		const n = 20
		errs := make([]error, n)
		var all sync.WaitGroup
		for tag := range n {
			all.Go(func() {
				for i := range 50 {
					got := make([]byte, 8)
					out := pattern(8, ch.Rank()*1000+tag+i)
					_, err := ch.Sendrecv(ctx, 1-ch.Rank(), tag, mem.Bytes(out), 1-ch.Rank(), tag, mem.Bytes(got))
					if err == nil && !bytes.Equal(got, pattern(8, (1-ch.Rank())*1000+tag+i)) {
						err = fmt.Errorf("tag %d round %d: wrong bytes", tag, i)
					}
					if err != nil {
						errs[tag] = err
						return
					}
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
}

// lateBoot is a Boot whose news that a communicator broke comes late: never.
type lateBoot struct {
	boot.Boot
	revoked *atomic.Int32 // how many ranks have said so
}

func (b lateBoot) Revoke(uint64, []byte) error {
	b.revoked.Add(1)
	return nil
}

// A rank that hears from a peer that a communicator is broken may end at once. The launcher
// hears why from that rank too, so that its end is not what others hear of first.
func TestABreakReportedByAPeerIsReportedToTheLauncher(t *testing.T) {
	var revoked atomic.Int32
	late := func(cfg *message.Config) { cfg.Boot = lateBoot{cfg.Boot, &revoked} }
	runConfig(t, 2, late, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			err := ch.Send(ctx, 1, 1, mem.Buffer{}, false) // they have met
			ch.Break("for a test")
			return err
		}
		if _, err := ch.Recv(ctx, 0, 1, mem.Buffer{}); err != nil {
			return err
		}
		if _, err := ch.Recv(ctx, 0, 2, mem.Buffer{}); !errors.Is(err, liveness.ErrRevoked) {
			return fmt.Errorf("got %v, want ErrRevoked", err)
		}
		if n := revoked.Load(); n != 2 {
			return fmt.Errorf("the launcher has heard from %d ranks, want 2", n)
		}
		return nil
	})
}
