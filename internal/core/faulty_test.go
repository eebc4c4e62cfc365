package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/core/liveness"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

// A wound is a fault of the connection between the first two ranks, at the
// first one's side, from its k-th frame on in one direction.
type wound struct {
	at    int
	out   bool
	fault transporttest.Fault
}

func (w wound) String() string {
	dir := "arriving"
	if w.out {
		dir = "leaving"
	}
	return fmt.Sprintf("%+v at %s frame %d", w.fault, dir, w.at)
}

// wounded makes the ranks of r reach each other through a network with w.
func (r *rig) wounded(w wound) {
	r.connect = func(rank world.Rank, s transport.Sink, p *inproc.Parker) transport.Transport {
		if rank != 0 {
			return r.net.Transport(rank, s, p)
		}
		decide := func(ev transporttest.Event) transporttest.Fault {
			if ev.Peer == 1 && ev.Out == w.out && ev.N >= w.at {
				return w.fault
			}
			return transporttest.Fault{}
		}
		return transporttest.Faulty(s, decide,
			func(s transport.Sink) transport.Transport { return r.net.Transport(rank, s, p) })
	}
}

// everything calls all collectives once.
func everything(ctx context.Context, c *comm.Comm, n int) error {
	for _, kind := range everyKind {
		q := question{kind: kind, ranks: c.Size(), n: n}
		if reduces(kind) {
			q.op = comm.Sum
		}
		if err := answerAll(ctx, c, integers[int64](), []question{q}); err != nil {
			return err
		}
	}
	return nil
}

func TestDelayedFramesChangeNoResult(t *testing.T) {
	for _, p := range []int{2, 4} {
		for _, out := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(p)
				r.wounded(wound{3, out, transporttest.Fault{Delay: 5}})
				err := errors.Join(r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
					// the last on request
					return errors.Join(everything(ctx, c, 10), everything(ctx, c, 1000), everything(ctx, c, 33_000))
				})...)
				if err != nil {
					t.Errorf("np=%d: %v", p, err)
				}
			})
		}
	}
}

// A connection that breaks between two living ranks breaks the communicator on
// all, also on those it does not belong to, and the error names one of the two.
func TestCutConnectionBreaksTheCommEverywhere(t *testing.T) {
	for _, p := range []int{2, 4} {
		for _, n := range []int{10, 40_000} {
			if testing.Short() && n > 10 {
				continue
			}
			for _, at := range []int{0, 1, 2, 5, 9} {
				for _, out := range []bool{false, true} {
					for _, f := range []transporttest.Fault{{Cut: true}, {Truncate: true}} {
						cutAt(t, p, n, wound{at, out, f})
					}
				}
			}
		}
	}
}

func cutAt(t *testing.T, p, n int, w wound) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(p)
		r.wounded(w)
		start := time.Now()
		r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
			err := errors.Join(everything(ctx, c, n), everything(ctx, c, n))
			var cause *comm.RevokedError
			if !errors.As(err, &cause) || cause.Rank > 1 || !strings.Contains(err.Error(), "cut") {
				t.Errorf("np=%d, %d elements, %v: rank %d: got %v, want ErrRevoked with the cut between ranks 0 and 1",
					p, n, w, c.Rank(), err)
			}
			return nil
		})
		if d := time.Since(start); d > liveness.ReasonTimeout+time.Second {
			t.Errorf("np=%d, %d elements, %v: took %v", p, n, w, d)
		}
	})
}

// A rank that stops, as by SIGSTOP, is missed by each rank that has a deadline; the
// others learn from that one.
func TestStalledRankEndsWithTheDeadlineOfOne(t *testing.T) {
	for _, p := range []int{2, 4} {
		for _, at := range []int{0, 1, 5} {
			for _, out := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w := wound{at, out, transporttest.Fault{Stall: true}}
					r := newRig(p)
					r.wounded(w)
					start := time.Now()
					r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
						on := ctx
						if c.Rank() == p-1 {
							short, cancel := context.WithTimeoutCause(ctx, 5*time.Second, errEnough)
							defer cancel()
							on = short
						}
						err := errors.Join(everything(on, c, 10), everything(on, c, 10), comm.Barrier(on, c))
						if c.Rank() == p-1 && !errors.Is(err, errEnough) ||
							c.Rank() < p-1 && wrongCause(err, p-1, errEnough.Error()) != nil {
							t.Errorf("np=%d, %v: rank %d: %v", p, w, c.Rank(), err)
						}
						return nil
					})
					if d := time.Since(start); d > 6*time.Second {
						t.Errorf("np=%d, %v: took %v", p, w, d)
					}
				})
			}
		}
	}
}

// What the launcher says of a death comes before what a transport noticed.
func TestTheLaunchersReasonComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(3)
		r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 2 {
				synctest.Wait()
				r.boots[2].(*boot.Member).Die("was killed by signal 9")
				r.net.Kill(2)
				return nil
			}
			if problem := wrongCause(comm.Barrier(ctx, c), 2, "was killed by signal 9"); problem != nil {
				t.Errorf("rank %d: %v", c.Rank(), problem)
			}
			return nil
		})
	})
}
