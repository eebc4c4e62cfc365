package coll

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Some ranks, in an order of their own, do what as many ranks alone would do; what is
// to be done in the meantime is done once.
func TestASubsetIsACommunicatorOfItsOwn(t *testing.T) {
	members := []int{5, 0, 6, 2}
	newWorld(7, machine{}, true).run(t, func(r *rank) error {
		me, times := slices.Index(members, r.me), 0
		if me < 0 {
			return nil
		}
		s := &Subset{Peers: r, Ranks: members, Me: me, Meantime: func() error { times++; return nil }}
		all := make([]int64, len(members))
		if err := Allgather(s, path.Circulant, mem.Of([]int64{int64(r.me)}), mem.Of(all)); err != nil {
			return err
		}
		sum := []int64{int64(r.me)}
		if err := Allreduce(s, path.RecursiveDoubling, mem.Of(sum), mem.Of(sum), call.Op{Kind: mem.Sum}); err != nil {
			return err
		}
		if !slices.Equal(all, []int64{5, 0, 6, 2}) || sum[0] != 13 || times != 1 {
			return fmt.Errorf("gathered %v, summed up to %d, with %d times something in the meantime: want %v, 13, 1", all, sum[0], times, members)
		}
		return nil
	})
}

func TestWhatFailsInTheMeantimeFailsTheWait(t *testing.T) {
	failed := errors.New("failed")
	newWorld(2, machine{}, false).run(t, func(r *rank) error {
		s := &Subset{Peers: r, Ranks: []int{1, 0}, Me: 1 - r.me, Meantime: func() error { return failed }}
		if err := Barrier(s, path.Dissemination); !errors.Is(err, failed) {
			return fmt.Errorf("got %v, want that it %w", err, failed)
		}
		return nil
	})
}
