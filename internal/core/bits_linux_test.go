package core_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"testing"

	"gompi/comm"
	"gompi/internal/core/network"
	"gompi/internal/ways"
)

// Under any tuning, and when ranks choose their ways by lot, results have the same bits, through
// shared memory and by messages: tuning chooses ways and chunks, and not in which order operands
// are combined.
func TestResultsAreTheSameBitsUnderAnyTuning(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		for _, algorithms := range []string{"", "allreduce:circulant;reduce:binomial"} {
			if testing.Short() && (ranks == 3) == (algorithms == "") {
				continue
			}
			want := bitsUnder(t, algorithms, ranks)
			check := func(tuning string) {
				if got := bitsUnder(t, algorithms+";"+tuning, ranks); got != want {
					t.Errorf("%d ranks, %q, under %q: other bits than without tuning", ranks, algorithms, tuning)
				}
			}
			for _, tuning := range []string{
				"shm.ring.chunk=4k;shm.ring.bytes=64k;shm.read=never",
				"shm.ring.chunk=64k;shm.ring.bytes=64k;shm.read=1",
				"shm.ring.chunk=64k;shm.ring.bytes=2m;shm.read=100k;shm.read.below=200k",
			} {
				check(tuning)
			}
			ways.AtRandom.Store(true)
			check("shm.trial=1")
			ways.AtRandom.Store(false)
		}
	}
}

// bitsUnder returns a hash of what rank 0 gets from reductions and messages of some lengths in a
// job under a tuning.
func bitsUnder(t *testing.T, tuning string, ranks int) uint64 {
	t.Helper()
	boots, s := withMemory(t, ranks)
	defer s.Close()
	var hash maphash.Hash
	hash.SetSeed(bitsSeed)
	cfg := comm.Config{Tuning: tuning}
	err := errors.Join(overFabrics(t, boots, cfg, func(int, *network.Connection) {},
		func(ctx context.Context, c *comm.Comm) error {
			for _, n := range []int{1, 3001, 20_011, 700_001} {
				send, sum := anyFloats(c.Rank(), n), make([]float32, n)
				note := func(err error) error {
					if c.Rank() == 0 {
						var b []byte
						for _, x := range sum {
							b = binary.NativeEndian.AppendUint32(b, math.Float32bits(x))
						}
						hash.Write(b)
					}
					return err
				}
				if err := errors.Join(
					note(comm.Allreduce(ctx, c, send, sum, comm.Sum)),
					note(comm.Reduce(ctx, c, 0, send, sum, comm.Sum)),
					note(around(ctx, c, send, sum)),
				); err != nil {
					return fmt.Errorf("%d elements: %w", n, err)
				}
			}
			return nil
		})...)
	if err != nil {
		t.Fatalf("under %s: %v", tuning, err)
	}
	return hash.Sum64()
}

var bitsSeed = maphash.MakeSeed()

// anyFloats are of very different sizes: a sum in another order rounds to other bits.
func anyFloats(rank, n int) []float32 {
	r, v := rand.New(rand.NewPCG(uint64(rank), uint64(n))), make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64() * math.Exp(10*r.NormFloat64()))
	}
	return v
}

// around sends send to the next rank, and receives that of the rank before.
func around(ctx context.Context, c *comm.Comm, send, recv []float32) error {
	p := c.Size()
	_, err := comm.Sendrecv(ctx, c, (c.Rank()+1)%p, 0, send, (c.Rank()+p-1)%p, 0, recv)
	return err
}
