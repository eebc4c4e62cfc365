package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/core/network"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
)

// A rig is a job of goroutine ranks whose surroundings a test can change.
type rig struct {
	boots []boot.Boot
	net   *inproc.World
	cfg   comm.Config
	// connect makes a rank's transport.
	connect func(rank world.Rank, s transport.Sink, p *inproc.Parker) transport.Transport
}

func newRig(p int) *rig {
	r := &rig{boots: boot.Group(p), net: inproc.NewWorld(p)}
	r.connect = func(rank world.Rank, s transport.Sink, p *inproc.Parker) transport.Transport {
		return r.net.Transport(rank, s, p)
	}
	return r
}

// run runs fn on all ranks and returns what each returned.
func (r *rig) run(ctx context.Context, fn rankFunc) []error {
	errs := make([]error, len(r.boots))
	var all sync.WaitGroup
	for rank := range errs {
		all.Go(func() {
			c, err := joinBy(ctx, r.cfg, r.fabric(world.Rank(rank)))
			if err == nil {
				err = errors.Join(fn(ctx, c), c.Close(ctx))
			}
			errs[rank] = err
		})
	}
	all.Wait()
	return errs
}

func (r *rig) fabric(rank world.Rank) network.Connection {
	p := inproc.NewParker()
	return network.Connection{Fabric: network.Fabric{
		Boot: r.boots[rank], Parker: p, Yield: runtime.Gosched,
		Connect: func(s transport.Sink, _ func()) ([]transport.Transport, error) {
			return []transport.Transport{r.connect(rank, s, p)}, nil
		},
	}}
}

// onHosts makes the ranks live on the given hosts.
func (r *rig) onHosts(hosts []string, nodeOf ...int32) {
	for rank, b := range r.boots {
		in := b.Info()
		in.Hosts, in.Nodes, in.NodeOf, in.Node = hosts, len(hosts), nodeOf, int(nodeOf[rank])
	}
}

func TestSplitHostFollowsTheHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(6)
		r.onHosts([]string{"ash", "elm"}, 0, 1, 0, 1, 1, 0)
		parts := [][]int{{0, 2, 5}, {1, 3, 4}}
		err := errors.Join(r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
			h, err := c.SplitHost(ctx)
			if err != nil {
				return err
			}
			defer h.Close(ctx)
			node := r.boots[c.Rank()].Info().Node
			if err := equal("ranks of a host", h.Group().Translate(c.Group()), parts[node]); err != nil {
				return err
			}
			for i := range h.Size() {
				if got, want := h.Host(i), []string{"ash", "elm"}[node]; got != want {
					return fmt.Errorf("host of %v's rank %d: %q, want %q", h, i, got, want)
				}
			}
			if c.Host(-1) != "" || c.Host(6) != "" || c.Host(4) != "elm" {
				return fmt.Errorf("hosts %q, %q, %q", c.Host(-1), c.Host(6), c.Host(4))
			}
			return comm.Barrier(ctx, h)
		})...)
		if err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsNameOperationRankPeerAndHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(3)
		r.onHosts([]string{"ash", "elm"}, 0, 1, 1)
		r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 2 {
				return comm.Send(ctx, c, 0, 3, []int{1, 2})
			}
			if c.Rank() == 0 {
				_, err := comm.Recv(ctx, c, 2, 3, make([]int, 1))
				var e *comm.Error
				if !errors.As(err, &e) || e.Op != "recv" || e.Comm != "world" || e.Rank != 0 || e.Peer != 2 ||
					e.Host != "elm" || e.Site == "" {
					t.Errorf("got %+v", err)
				}
				if want := "recv at " + e.Site + ": rank 0 of world: peer 2 (host elm): message longer than the buffer: 16 bytes for a buffer of 8"; err.Error() != want {
					t.Errorf("got  %q\nwant %q", err, want)
				}
			}
			return nil
		})
	})
}
