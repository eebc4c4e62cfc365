package coll

import (
	"fmt"
	"testing"

	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// A pinning is a phantom whose messages go through pinned memory.
type pinning struct{ phantom }

func (s *pinning) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	b, err := s.phantom.Alloc(t, n)
	return mem.Device(s, b.Addr(), t, n), err
}

func (s *pinning) AllocHost(t mem.Type, n int) (mem.Buffer, error) { return mem.Host.Alloc(t, n) }
func (s *pinning) FreeHost(mem.Buffer) error                       { return nil }

// A tally is Peers that know how many messages were sent between two waits.
type tally struct {
	Peers
	now, most int
}

func (c *tally) Isend(to int, b mem.Buffer) {
	c.now++
	c.most = max(c.most, c.now)
	c.Peers.Isend(to, b)
}

func (c *tally) Wait() error {
	c.now = 0
	return c.Peers.Wait()
}

// Several blocks are on their way to and from devices, while in host memory one is
// enough; and so few that the memory which they go through is bounded.
func TestExchangesOfDevicesOverlap(t *testing.T) {
	for _, tt := range []struct{ bytes, host, device int }{
		{1 << 10, 16, 16},
		{256 << 10, 1, 16},
		{512 << 10, 1, 8},
		{3 << 20, 1, 1},
		{64 << 20, 1, 1},
	} {
		const p = 20
		newWorld(p, false).run(t, func(r *rank) error {
			for i, s := range []mem.Space{&phantom{}, &pinning{}} {
				c, want := &tally{Peers: r}, [2]int{tt.host, tt.device}[i]
				send, _ := s.Alloc(mem.U8, p*tt.bytes)
				recv, _ := s.Alloc(mem.U8, p*tt.bytes)
				if err := Alltoall(c, path.Pairwise, send, recv); err != nil {
					return err
				}
				if c.most != want {
					return fmt.Errorf("blocks of %d bytes in %T: %d at a time, want %d", tt.bytes, s, c.most, want)
				}
			}
			return nil
		})
	}
}
