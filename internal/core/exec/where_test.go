package exec

import (
	"fmt"
	"testing"

	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/core/shmcoll"
	"gompi/internal/core/shmsync"
	"gompi/internal/core/shmsync/shmsynctest"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// Where NCCL is wanted but does not serve, ranks ask each other once all the same.
func TestRanksExchangeOnceWhereTheirBuffersAre(t *testing.T) {
	const large = 512 << 10
	gpu := memtest.NewDevice("gpu")
	for _, test := range []struct {
		onDevice int // ranks from 0 on
		want     path.Via
	}{{0, path.Shm}, {1, path.Staged}, {2, path.Staged}} {
		h := shmsynctest.NewHost(2, large)
		teams := h.Teams(t, shmsync.Gate{}, func(int) {})
		err := shmsynctest.Together([]*shmsync.Team{&teams[0], &teams[1]}, func(team *shmsync.Team) error {
			b := mem.Of(make([]float32, 1_000_000))
			if team.Me() < test.onDevice {
				var err error
				if b, err = gpu.Alloc(mem.F32, b.Len()); err != nil {
					return h.Break(err)
				}
			}
			paths := path.New(path.Topology{Ranks: 2, Shared: true, Devices: true, NCCL: true, LargeBuffer: large},
				new(path.Rules))
			shared := shmcoll.New(*team, h.Heaps, nil, paths)
			x := &Exec{Rank: team.Me(), Size: 2, Paths: paths, Shared: shared}
			x.NCCL = NewNCCL(x, 0, nil, nil)
			shared.Begin(&shmsync.EncodedCall{A: 1}, 1, false)
			o := new(call.Call).Allreduce(b, b, call.Op{Kind: mem.Sum})
			p, err := x.resolve(paths.For(o), o)
			if err != nil {
				return h.Break(err)
			}
			if n := shared.Last(); p.Via != test.want || n != 1 {
				return fmt.Errorf("%d ranks on a device: %v, after %d steps: want %v, after 1", test.onDevice, p,
					n, test.want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
