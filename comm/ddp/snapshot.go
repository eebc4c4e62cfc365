package ddp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gompi/comm"
)

// A Snapshot is what a job needs to go on as if it had never stopped.
type Snapshot struct {
	Step     int64    // steps done
	Position Position // of the Sampler
	Seed     uint64   // of the Sampler
	Slices   []Slice  // parameters and what the optimiser remembers
}

// A Slice is a named part of a model's or an optimiser's state: numbers of any type in
// host or device memory. What is saved of one can be loaded into the other.
type Slice struct {
	Name string
	Data comm.Buffer
}

// Save writes s to the file at path. Rank 0 writes, once; the others wait and
// get the same error. Whatever happens, the file is either the old one or the
// new one in full: it is written under another name, flushed to the disk and
// renamed.
func Save(ctx context.Context, c *comm.Comm, path string, s *Snapshot) error {
	return OnRankZero(ctx, c, func() error {
		if err := replace(path, s); err != nil {
			return fmt.Errorf("snapshot %s: %w", path, err)
		}
		return nil
	})
}

// Load reads what Save wrote into s, whose Slices must have the names and
// lengths of those saved, and reports whether there was a file. Only rank 0
// reads, so no other host needs the file; all ranks get the same answer. If
// the file is damaged, or of another model, s is unchanged.
func Load(ctx context.Context, c *comm.Comm, path string, s *Snapshot) (found bool, err error) {
	err = OnRankZero(ctx, c, func() error {
		if found, err = read(path, s); err != nil {
			return fmt.Errorf("snapshot %s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if err := spread(ctx, c, &found, s); err != nil {
		return false, fmt.Errorf("ddp: snapshot %s: %w", path, err)
	}
	return found, nil
}

// spread sends found and, if it is true, s from rank 0 to the others.
func spread(ctx context.Context, c *comm.Comm, found *bool, s *Snapshot) error {
	numbers := []int64{0, s.Step, s.Position.Epoch, s.Position.Offset, int64(s.Seed)}
	if *found {
		numbers[0] = 1
	}
	if err := comm.Bcast(ctx, c, 0, numbers); err != nil {
		return err
	}
	*found = numbers[0] == 1
	if !*found {
		return nil
	}
	s.Step, s.Position, s.Seed = numbers[1], Position{numbers[2], numbers[3]}, uint64(numbers[4])
	for _, slice := range s.Slices {
		if err := c.Bcast(ctx, 0, slice.Data); err != nil {
			return err
		}
	}
	return nil
}

func read(path string, s *Snapshot) (found bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return true, decode(f, s)
}

// replace writes s to a new file that then takes the place of path. Both the
// file and the folder that names it are flushed, so that the order of the two
// survives a power failure.
func replace(path string, s *Snapshot) error {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+".*")
	if err != nil {
		return err
	}
	err = errors.Join(encode(f, s), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
