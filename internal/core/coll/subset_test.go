package coll

import (
	"fmt"
	"slices"
	"testing"

	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Some ranks, in an order of their own, do what as many ranks alone would do.
func TestASubsetIsACommunicatorOfItsOwn(t *testing.T) {
	members := []int{5, 0, 6, 2}
	newWorld(7, true).run(t, func(r *rank) error {
		me := slices.Index(members, r.me)
		if me < 0 {
			return nil
		}
		s := &Subset{Peers: r, Ranks: members, Me: me}
		all := make([]int64, len(members))
		if err := Allgather(s, path.Circulant, mem.Of([]int64{int64(r.me)}), mem.Of(all)); err != nil {
			return err
		}
		sum := []int64{int64(r.me)}
		if err := Allreduce(s, path.RecursiveDoubling, mem.Of(sum), mem.Of(sum), call.Op{Kind: mem.Sum}); err != nil {
			return err
		}
		if !slices.Equal(all, []int64{5, 0, 6, 2}) || sum[0] != 13 {
			return fmt.Errorf("gathered %v, summed up to %d: want %v, 13", all, sum[0], members)
		}
		return nil
	})
}
