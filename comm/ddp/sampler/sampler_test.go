package sampler

import (
	"fmt"
	"slices"
	"testing"
)

// drawEpoch returns the draws of size ranks from p to the end of its epoch, batch by batch, and the
// beginning of the next epoch.
func drawEpoch(s *Sampler, p Position, size int) (batches [][]int, end Position) {
	for epoch := p.Epoch; p.Epoch == epoch; {
		var batch []int
		var next Position
		for rank := range size {
			var total int
			batch, total, next = s.Next(batch, p, rank, size)
			if rank == size-1 && len(batch) != total {
				panic(fmt.Sprintf("shares hold %d samples of %d", len(batch), total))
			}
		}
		batches = append(batches, batch)
		p = next
	}
	return batches, p
}

func TestEpochDealsEverySampleAsItsTailSays(t *testing.T) {
	for _, tc := range []struct {
		n, batch      int
		tail          Tail
		batches, last int // number of batches, samples in the last
		distinct      int
	}{
		{100, 10, Short, 10, 10, 100},
		{100, 30, Short, 4, 10, 100},
		{100, 30, Drop, 3, 30, 90},
		{100, 30, Pad, 4, 30, 100},
		{100, 100, Drop, 1, 100, 100},
		{7, 16, Short, 1, 7, 7},
		{7, 16, Pad, 1, 16, 7},
		{1, 1, Drop, 1, 1, 1},
	} {
		for _, size := range []int{1, 3, 8} {
			s, err := New(tc.n, tc.batch, 5, tc.tail)
			if err != nil {
				t.Fatal(err)
			}
			batches, end := drawEpoch(s, Position{Epoch: 3}, size)
			all := slices.Concat(batches...)
			slices.Sort(all)
			distinct := slices.Compact(slices.Clone(all))
			if len(batches) != tc.batches || len(batches[len(batches)-1]) != tc.last || len(distinct) != tc.distinct {
				t.Errorf("%+v, %d ranks: %d batches, last of %d, %d distinct samples", tc, size,
					len(batches), len(batches[len(batches)-1]), len(distinct))
			}
			if all[0] < 0 || all[len(all)-1] >= tc.n {
				t.Errorf("%+v: samples from %d to %d", tc, all[0], all[len(all)-1])
			}
			if end != (Position{Epoch: 4}) || s.Steps() != tc.batches {
				t.Errorf("%+v: ends at %+v, Steps %d", tc, end, s.Steps())
			}
		}
	}
}

func TestAnyNumberOfRanksDrawsTheSameBatches(t *testing.T) {
	s, err := New(1000, 64, 1, Short)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := drawEpoch(s, Position{}, 1)
	for _, size := range []int{2, 5, 64, 100} {
		got, _ := drawEpoch(s, Position{}, size)
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%d ranks draw other batches than one", size)
		}
	}
}

func TestAnotherBatchSizeContinuesWhereOneStopped(t *testing.T) {
	small, _ := New(1000, 10, 1, Short)
	large, _ := New(1000, 90, 1, Short)
	whole, _ := drawEpoch(small, Position{}, 1)
	_, _, p := large.Next(nil, Position{}, 0, 1)
	rest, _ := drawEpoch(small, p, 3)
	if got, want := slices.Concat(rest...), slices.Concat(whole...)[90:]; !slices.Equal(got, want) {
		t.Errorf("after 90 samples the rest begins %v, want %v", got[:5], want[:5])
	}
}

func TestEpochsAndSeedsShuffleDifferently(t *testing.T) {
	seen := map[string]string{}
	for seed := range uint64(4) {
		s, _ := New(500, 500, seed, Short)
		for epoch := range int64(4) {
			order, _, _ := s.Next(nil, Position{Epoch: epoch}, 0, 1)
			name := fmt.Sprintf("seed %d epoch %d", seed, epoch)
			if other, ok := seen[fmt.Sprint(order)]; ok {
				t.Errorf("%s has the order of %s", name, other)
			}
			seen[fmt.Sprint(order)] = name
			if slices.IsSorted(order) {
				t.Errorf("%s is not shuffled", name)
			}
		}
	}
}

// A shuffle that left samples near their places would make batches of
// neighbours. The mean distance of a random permutation is a third of n.
func TestShuffleMovesSamplesFar(t *testing.T) {
	const n = 10000
	p := newPermutation(n, 1, 0)
	var sum float64
	for i := range uint64(n) {
		sum += max(float64(p.at(i))-float64(i), float64(i)-float64(p.at(i)))
	}
	if got := sum / n / n; got < 0.31 || got > 0.36 {
		t.Errorf("samples move by %.3f of the data set on average: want 1/3", got)
	}
}

func TestPermutationIsOneToOneForEveryLength(t *testing.T) {
	for n := uint64(1); n < 300; n++ {
		p := newPermutation(n, n, 7)
		seen := make([]bool, n)
		for i := range n {
			at := p.at(i)
			if seen[at] {
				t.Fatalf("of %d samples, %d comes twice", n, at)
			}
			seen[at] = true
		}
	}
}

func TestSamplerRefusesWhatCannotBeDealt(t *testing.T) {
	for _, tc := range []struct {
		n, batch int
		tail     Tail
	}{{0, 1, Short}, {1, 0, Short}, {-1, 1, Pad}, {7, 8, Drop}} {
		if s, err := New(tc.n, tc.batch, 0, tc.tail); err == nil {
			t.Errorf("New(%d, %d, %v) = %+v: want an error", tc.n, tc.batch, tc.tail, s)
		}
	}
}

func TestShardsCoverEverySampleOnce(t *testing.T) {
	for _, n := range []int{0, 1, 7, 64, 1000} {
		for size := 1; size < 20; size++ {
			at := 0
			for rank := range size {
				lo, hi := Shard(n, rank, size)
				if lo != at || hi < lo || hi-lo > n/size+1 {
					t.Fatalf("Shard(%d, %d, %d) = %d, %d", n, rank, size, lo, hi)
				}
				at = hi
			}
			if at != n {
				t.Fatalf("%d shards of %d end at %d", size, n, at)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	s, _ := New(1<<23, 1024, 1, Short)
	share := make([]int, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		share, _, _ = s.Next(share[:0], Position{Offset: 77}, 0, 1)
	}
}

func TestMicroBatchesAreTheSameOnAnyNumberOfRanks(t *testing.T) {
	for _, tail := range []Tail{Short, Drop, Pad} {
		s, err := New(103, 20, 5, tail)
		if err != nil {
			t.Fatal(err)
		}
		micro, err := s.Micro(3)
		if err != nil {
			t.Fatal(err)
		}
		for size := 1; size <= 9; size++ {
			for at, step := (Position{}), 0; step < 12; step++ {
				want, total, next := s.Next(nil, at, 0, 1)
				var all []int
				for rank := range size {
					share, n, after := micro.Next(nil, at, rank, size)
					if n != total || after != next || len(all)%3 != 0 && len(share) > 0 ||
						len(share) > 3*micro.Passes(size) {
						t.Fatalf("rank %d of %d: share of %d after %d samples, %d and %+v; want %d and %+v", rank, size,
							len(share), len(all), n, after, total, next)
					}
					all = append(all, share...)
				}
				if !slices.Equal(all, want) {
					t.Fatalf("%d ranks draw %v, want %v", size, all, want)
				}
				at = next
			}
		}
	}
	s, _ := New(103, 20, 5, Short)
	if _, err := s.Micro(0); err == nil || err.Error() != "sampler: micro-batches of 0 samples: want at least 1" {
		t.Errorf("error is %v", err)
	}
}
