package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
	"gompi/internal/atomicfile"
)

// A State is everything that a job needs to continue as if it had never stopped. Save reads, and
// Load writes, the memory to which Slices and Hook refer.
type State struct {
	Step     int64            // steps done
	Position sampler.Position // of the Sampler
	Seed     uint64           // of the Sampler
	Slices   []ddp.Slice      // the same on all ranks: parameters and the optimiser's memory
	Hook     ddp.Memory       // from ddp.MemoryOf; empty without a StatefulHook
	// BucketOrder is the DDP's, for Options.BucketOrder of the next DDP; nil: unknown, or not
	// saved.
	BucketOrder []int
}

// Save writes s to the file at path. It is collective, between two steps. Rank 0 writes, and all
// get the same error. The file is always the old one or the whole new one: Save writes under
// another name, flushes to the disk and renames. A new file has the permissions of the umask; an
// old one keeps its own, and stays behind a symbolic link. If a kill during Save leaves a copy, the
// next Save removes it.
//
// Save costs a gather to rank 0 of each of Hook.Own. In the file they take Size()*4 bytes for each
// number of a rank.
func Save(ctx context.Context, c *comm.Comm, path string, s *State) error {
	if err := save(ctx, c, path, s); err != nil {
		return fmt.Errorf("snapshot %s: %w", path, err)
	}
	return nil
}

func save(ctx context.Context, c *comm.Comm, path string, s *State) error {
	if err := s.check(); err != nil {
		return err
	}
	own := &gatherer{c: c, slices: s.Hook.Own}
	if c.Rank() != 0 {
		if err := own.rest(ctx); err != nil {
			return err
		}
	}
	return ddp.OnRankZero(ctx, c, func() error {
		err := atomicfile.Replace(path, func(w io.Writer) error {
			return encode(w, s, c.Size(), func() ([]byte, error) { return own.next(ctx) })
		})
		if err != nil {
			_ = own.rest(ctx) // the other ranks send all they have
		}
		return err
	})
}

// Loaded is the result of Load.
type Loaded struct {
	Found bool // the file exists; else the rest is zero
	Ranks int  // number of ranks in the saved Hook's memory; 0 without
	Hook  HookMemory
}

// Load reads a file of Save into s and describes it. The Slices of s must have the saved names,
// types and lengths. Load is collective, and comes before the first step. Only rank 0 reads; all
// ranks get the same result. If the file is damaged, or another model's, s is unchanged.
//
// Load costs a broadcast of all Slices, and a scatter or, with another number of ranks, a broadcast
// of each of Hook.Own.
func Load(ctx context.Context, c *comm.Comm, path string, s *State) (Loaded, error) {
	var r *reader // nil on other ranks, or without a file
	err := s.check()
	if err == nil {
		err = ddp.OnRankZero(ctx, c, func() (err error) {
			r, err = open(path, s)
			return err
		})
	}
	defer r.close()
	var l Loaded
	if err == nil {
		l, err = spread(ctx, c, r, s)
	}
	if err == nil && l.Hook.inUse() {
		err = loadOwn(ctx, c, r, l.Ranks, s.Hook.Own)
	}
	if err != nil {
		return Loaded{}, fmt.Errorf("snapshot %s: %w", path, err)
	}
	return l, nil
}

// spread sends rank 0's State, without ranks' own memory, to the others.
func spread(ctx context.Context, c *comm.Comm, r *reader, s *State) (l Loaded, err error) {
	numbers := make([]int64, 8)
	if r != nil {
		numbers = []int64{1, int64(r.head.Ranks), int64(r.hookMemory(c.Size(), s)), s.Step, s.Position.Epoch,
			s.Position.Offset, int64(s.Seed), int64(len(s.BucketOrder))}
	}
	if err := comm.Bcast(ctx, c, 0, numbers); err != nil {
		return l, err
	}
	if numbers[0] == 0 {
		return l, nil
	}
	l = Loaded{true, int(numbers[1]), HookMemory(numbers[2])}
	s.Step, s.Position, s.Seed = numbers[3], sampler.Position{Epoch: numbers[4], Offset: numbers[5]}, uint64(numbers[6])
	if c.Rank() != 0 {
		s.BucketOrder = append([]int(nil), make([]int, numbers[7])...) // nil if there is none
	}
	if err := comm.Bcast(ctx, c, 0, s.BucketOrder); err != nil {
		return l, err
	}
	slices := s.Slices
	if l.Hook.inUse() {
		slices = s.shared()
	}
	for _, slice := range slices {
		if err := c.Bcast(ctx, 0, slice.Data); err != nil {
			return l, err
		}
	}
	return l, nil
}

// shared returns all slices that are the same on all ranks.
func (s *State) shared() []ddp.Slice {
	return append(s.Slices[:len(s.Slices):len(s.Slices)], s.Hook.Shared...)
}

// check returns an error unless s can be saved.
func (s *State) check() error {
	for _, own := range s.Hook.Own {
		if t := own.Data.Type(); t != comm.TypeOf[float32]() || !own.Data.IsHost() {
			return fmt.Errorf("%q, of which each rank has its own, is of %v in %s: want float32 in host memory",
				own.Name, t, own.Data.Space().Name())
		}
	}
	return nil
}

// open returns a reader that has read into s all but ranks' own memory, nil if there is no file.
func open(path string, s *State) (*reader, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(f, s)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}
