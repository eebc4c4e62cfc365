package compress

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/internal/boot"
	"gompi/internal/core"
	"gompi/internal/core/network"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
)

// A byteCounter counts the bytes of collectives that a transport sends.
type byteCounter struct {
	transport.Transport
	bytes *atomic.Int64
}

func (s byteCounter) Send(peer world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	if h.Kind == transport.Coll || h.Kind == transport.Data {
		s.bytes.Add(int64(b.Size()))
	}
	return s.Transport.Send(peer, h, b, token)
}

// countBytes returns how many bytes a rank of two sends to the other in fn.
func countBytes(t *testing.T, fn func(ctx context.Context, c *comm.Comm) error) int64 {
	t.Helper()
	const ranks = 2
	var sent atomic.Int64
	var all sync.WaitGroup
	var errs [ranks]error
	net := inproc.NewWorld(ranks)
	for rank, b := range boot.Group(ranks) {
		all.Go(func() {
			parker := inproc.NewParker()
			joined, err := core.Join(t.Context(), core.Config{}, network.Fabric{
				Boot:   b,
				Parker: parker,
				Yield:  runtime.Gosched,
				Close:  func() error { return nil },
				Connect: func(sink transport.Sink, _ func()) ([]transport.Transport, error) {
					return []transport.Transport{byteCounter{net.Transport(world.Rank(rank), sink, parker), &sent}}, nil
				},
			})
			if err == nil {
				c := (*comm.Comm)(joined)
				err = errors.Join(fn(t.Context(), c), c.Close(t.Context()))
			}
			errs[rank] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return sent.Load() / ranks
}

func TestBytesAreAsTheFormulasSay(t *testing.T) {
	const steps = 3
	shapes := [][]int{{300, 20, 10}, {200}, {64, 128}, {4, 4}}
	const n = 300*200 + 200 + 64*128 + 16
	for name, tc := range map[string]struct {
		newHook func() ddp.Hook
		want    int64 // of a step
	}{
		"fp16": {FP16, 2 * n},
		"bf16": {BF16, 2 * n},
		"powersgd": {func() ddp.Hook { return powersgd(t, PowerSGDOptions{Rank: 3}) },
			4 * (200 + 16 + 3*(300+200) + 3*(64+128))},
		"topk": {func() ddp.Hook { return topk(t, 0.01) }, 8 * (n / 100)},
	} {
		t.Run(name, func(t *testing.T) {
			got := countBytes(t, func(ctx context.Context, c *comm.Comm) error {
				h, b := tc.newHook(), newBucket(shapes...)
				for b.Step = range steps {
					random(b.Grads, c.Rank(), b.Step)
					if err := h.Average(ctx, c, b); err != nil {
						return err
					}
				}
				return nil
			})
			if got != steps*tc.want {
				t.Errorf("%d bytes in %d steps, want %d", got, steps, steps*tc.want)
			}
		})
	}
}
