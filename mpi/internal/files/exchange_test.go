package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/core"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/typemap"
)

// owned returns a filetype of the bytes of a tile that belong to a rank, nil if none does.
func owned(owners []int, rank int) (*typemap.Type, error) {
	var lengths, at []int
	for i, o := range owners {
		switch {
		case o != rank:
		case i > 0 && owners[i-1] == rank:
			lengths[len(lengths)-1]++
		default:
			lengths, at = append(lengths, 1), append(at, i)
		}
	}
	if at == nil {
		return nil, nil
	}
	blocks, err := typemap.Hindexed(lengths, at, typemap.Named("MPI_BYTE"))
	if err != nil {
		return nil, err
	}
	return typemap.Resized(blocks, 0, len(owners))
}

// An exchange writes the bytes of each rank, and no others, and reads them as far as the file goes,
// whoever owns what and however many ranks move it.
func TestExchangesMoveTheirBytes(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		ranks := 1 + r.IntN(4)
		owners := make([]int, 1+r.IntN(40))
		for i := range owners {
			owners[i] = r.IntN(ranks+1) - 1 // -1: nobody
		}
		disp, tiles := r.IntN(100), 1+r.IntN(60)
		aggregators, window, alignment := 1+r.IntN(ranks), 1+r.IntN(300), 1+r.IntN(70)
		length := disp + tiles*len(owners)
		stored := make([]byte, length+r.IntN(50))
		for i := range stored {
			stored[i] = byte(r.Uint32())
		}
		name := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(name, stored, 0o600); err != nil {
			t.Fatal(err)
		}
		seeds := r.Uint64()
		cut := r.IntN(len(stored) + 1)
		parts := make([][]byte, ranks)
		want := bytes.Clone(stored)
		for i := range tiles * len(owners) {
			if o := owners[i%len(owners)]; o >= 0 {
				want[disp+i] = byte(rand.New(rand.NewPCG(seeds, uint64(i))).Uint32())
				parts[o] = append(parts[o], want[disp+i])
			}
		}
		commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
			file, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer file.Close()
			a := &access{f: &File{name: name, fd: int(file.Fd())}, v: bytesFrom(disp), write: true}
			data := append(bytes.Clone(parts[c.Rank()]), 0)
			filetype, err := owned(owners, c.Rank())
			if err != nil {
				return err
			}
			if filetype != nil {
				if a.v, err = newView(disp, typemap.Named("MPI_BYTE"), filetype, native); err != nil {
					return err
				}
				a.n, a.count = len(data)-1, len(data)-1
			}
			a.buf, a.t = addressOf(data), &dtypes.Datatype{Type: typemap.Named("MPI_BYTE")}
			if moved, err := newExchange(team{(*core.Comm)(c), ctx}, a, disp, length, aggregators, window,
				alignment).move(); moved != a.n || err != nil {
				return fmt.Errorf("%d bytes are written, %w: want %d", moved, err, a.n)
			}
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
				return errors.Join(err, errors.New("the file is not what was written"))
			}
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err := os.Truncate(name, int64(cut)); err != nil {
					return err
				}
			}
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
			a.write = false
			left := 0
			for left < a.n && a.v.offset(left) < cut {
				left++
			}
			clear(data)
			moved, err := newExchange(team{(*core.Comm)(c), ctx}, a, disp, length, aggregators, window,
				alignment).move()
			if err != nil || moved != left || !bytes.Equal(data[:left], parts[c.Rank()][:left]) ||
				slices.Max(data[left:]) != 0 {
				return fmt.Errorf("%d bytes are read, %w: want %d, and what was written", moved, err, left)
			}
			runtime.KeepAlive(data)
			return nil
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// One aggregator that cannot write has all ranks fail.
func TestAnExchangeFailsOnAllRanks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		flags := os.O_RDWR
		if c.Rank() == 1 {
			flags = os.O_RDONLY
		}
		file, err := os.OpenFile(name, flags, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		filetype, err := owned([]int{0, 1, 2}, c.Rank())
		if err != nil {
			return err
		}
		v, err := newView(0, typemap.Named("MPI_BYTE"), filetype, native)
		if err != nil {
			return err
		}
		data := make([]byte, 100)
		a := &access{f: &File{name: name, fd: int(file.Fd())}, v: v, write: true, n: 100,
			buf: addressOf(data), count: 100, t: &dtypes.Datatype{Type: typemap.Named("MPI_BYTE")}}
		if moved, err := newExchange(team{(*core.Comm)(c), ctx}, a, 0, 300, 3, 10, 1).move(); moved != 0 || err == nil {
			return fmt.Errorf("%d bytes are written, %v: want an error", moved, err)
		}
		runtime.KeepAlive(data)
		return nil
	})
}
