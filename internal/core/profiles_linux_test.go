package core_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gompi/comm"
	"gompi/internal/core/network"
	"gompi/internal/core/path"
	"gompi/internal/env"
	"gompi/internal/machine"
)

// Under any profile results have the same bits, through shared memory and by messages: a profile
// chooses ways and chunks, and not in which order operands are combined.
func TestResultsAreTheSameBitsUnderAnyProfile(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		for _, tuning := range []string{"", "allreduce:circulant;reduce:binomial"} {
			if testing.Short() && (ranks == 3) == (tuning == "") {
				continue
			}
			want := bitsUnder(t, machine.None, ranks, tuning)
			for _, profile := range []string{
				"shm.ring.chunk=4k;shm.ring.bytes=64k;shm.ring.nontemporal=never;shm.read=never",
				"shm.ring.chunk=64k;shm.ring.bytes=64k;shm.ring.nontemporal=4k;shm.read=1",
				"shm.ring.chunk=64k;shm.ring.bytes=2m;shm.ring.nontemporal=never;shm.read=100k;shm.read.below=200k",
			} {
				file := filepath.Join(t.TempDir(), "profile")
				if err := os.WriteFile(file, []byte(profile), 0o644); err != nil {
					t.Fatal(err)
				}
				if p, err := machine.Read(file); err != nil || new(path.Rules).Tune(p.Settings.String()) != nil {
					t.Fatalf("%s: %v, and rules take %v: want all of it", profile, err, p.Settings)
				}
				if got := bitsUnder(t, file, ranks, tuning); got != want {
					t.Errorf("%d ranks, %q, under %s: other bits than without a profile", ranks, tuning, profile)
				}
			}
		}
	}
}

// bitsUnder returns a hash of what rank 0 gets from reductions and messages of some lengths in a
// job under a profile.
func bitsUnder(t *testing.T, profile string, ranks int, tuning string) uint64 {
	t.Setenv(env.Profile, profile)
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
		t.Fatalf("under %s: %v", profile, err)
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
