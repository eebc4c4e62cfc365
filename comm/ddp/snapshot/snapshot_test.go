package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/internal/mem/memtest"
)

// wantError returns an error unless err has all these parts.
func wantError(err error, parts ...string) error {
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			return fmt.Errorf("got error %q, want one with %q", fmt.Sprint(err), part)
		}
	}
	return nil
}

func TestAnyNumberOfRanksLoadsWhatAnotherSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	want := testState()
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		mine := path
		if c.Rank() != 0 {
			mine = "/nowhere/else" // the others must not touch a disk
		}
		for range 2 { // the second replaces the first
			if err := Save(ctx, c, mine, want); err != nil {
				return err
			}
		}
		return nil
	})
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("folder holds %v, %v: want the snapshot alone", entries, err)
	}
	for _, n := range []int{1, 2, 5} {
		commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
			got := emptied(want)
			loaded, err := Load(ctx, c, path, got)
			if want := (Loaded{Found: true}); err != nil || loaded != want {
				return fmt.Errorf("loaded %+v, %v, want %+v", loaded, err, want)
			}
			if !same(got, want) {
				return fmt.Errorf("loaded %+v, want %+v", got, want)
			}
			return nil
		})
	}
}

func TestRanksAgreeThatThereIsNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, encoded(t, testState()), 0o644); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		path := there // the other ranks' view does not count
		if c.Rank() == 0 {
			path = filepath.Join(dir, "missing")
		}
		s := emptied(testState())
		loaded, err := Load(ctx, c, path, s)
		if loaded != (Loaded{}) || err != nil || !same(s, emptied(testState())) {
			return fmt.Errorf("loaded %+v, %v, %+v", loaded, err, s)
		}
		return nil
	})
}

func TestEveryRankLearnsWhyASnapshotFails(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	file := encoded(t, withHook(0))
	file[len(file)/2]++
	if err := os.WriteFile(damaged, file, 0o644); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		s := emptied(withHook(0))
		if _, err := Load(ctx, c, damaged, s); wantError(err, damaged, "checksum") != nil {
			return wantError(err, damaged, "checksum")
		}
		if err := wantError(Save(ctx, c, filepath.Join(dir, "missing", "file"), s), "missing/file",
			"no such file"); err != nil {
			return err
		}
		return comm.Barrier(ctx, c) // only the file failed
	})
}

func TestFailedSaveLeavesTheOldFileAndNoOther(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		return wantError(Save(ctx, c, path, withHook(c.Rank())), path)
	})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || !entries[0].IsDir() {
		t.Errorf("folder holds %v, %v: want what it held", entries, err)
	}
}

// Ranks get their own memory, or all the average.
func TestEachRankHasItsOwnMemoryAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error { return Save(ctx, c, path, withHook(c.Rank())) })
	for size, want := range map[int]Loaded{1: {true, 3, Averaged}, 2: {true, 3, Averaged}, 3: {true, 3, Restored},
		4: {true, 3, Averaged}} {
		commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
			whose := 1 // the average of 0, 1 and 2
			if size == 3 {
				whose = c.Rank()
			}
			got := emptied(withHook(0))
			loaded, err := Load(ctx, c, path, got)
			if err != nil || loaded != want || !same(got, withHook(whose)) {
				return fmt.Errorf("loaded %+v (%v), %+v; want %+v, %+v", loaded, err, got, want, withHook(whose))
			}
			return nil
		})
	}
}

// The memory of a Hook is no reason to refuse a file: one may begin with a Hook, or end with one.
func TestMemoryThatDoesNotFitIsLeftAlone(t *testing.T) {
	other := func() *State {
		s := withHook(0)
		s.Hook.Own[2].Name = "other.error/b"
		return s
	}
	for _, tc := range []struct {
		name        string
		saved, into *State
		want        HookMemory
	}{
		{"none in the file", testState(), withHook(0), Absent},
		{"another in the file", other(), withHook(0), Absent},
		{"none is wanted", withHook(0), testState(), Unused},
		{"none at all", testState(), testState(), NoMemory},
	} {
		path := filepath.Join(t.TempDir(), "snapshot")
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error { return Save(ctx, c, path, tc.saved) })
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			s := emptied(tc.into)
			loaded, err := Load(ctx, c, path, s)
			if err != nil || loaded.Hook != tc.want || !sameSlices(s.Slices, tc.saved.Slices) {
				return fmt.Errorf("%s: %v, %v; want %v, and the slices of the file", tc.name, loaded.Hook, err, tc.want)
			}
			s.Slices, s.Step, s.Position, s.Seed, s.BucketOrder = emptied(tc.into).Slices, 0,
				emptied(tc.into).Position, 0, nil
			if !same(s, emptied(tc.into)) {
				return fmt.Errorf("%s: the memory of the hook has changed: %+v", tc.name, s.Hook)
			}
			return nil
		})
	}
}

func TestMemoryOfOtherNumbersIsRefused(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		s := &State{Hook: ddp.Memory{Own: []ddp.Slice{{Name: "e", Data: comm.Of([]int32{1})}}}}
		_, err := Load(ctx, c, "nowhere", s)
		const want = `"e", of which each rank has its own, is of int32 in host: want float32 in host memory`
		return errors.Join(wantError(err, want), wantError(Save(ctx, c, "/nowhere/file", s), want))
	})
}

func TestSnapshotsGoFromDeviceToHostAndBack(t *testing.T) {
	device := memtest.NewDevice("device")
	path := filepath.Join(t.TempDir(), "snapshot")
	odd := make([]float32, chunk+1)
	for i := range odd {
		odd[i] = float32(i)
	}
	numbers := [][]float32{{1, 2, 3}, {}, odd}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		var saved, back, host State
		for i, n := range numbers {
			name := fmt.Sprint(i)
			host.Slices = append(host.Slices, ddp.Slice{Name: name, Data: comm.Of(make([]float32, len(n)))})
			for _, s := range []*State{&saved, &back} {
				b, err := device.Alloc(comm.TypeOf[float32](), len(n))
				if err != nil {
					return err
				}
				s.Slices = append(s.Slices, ddp.Slice{Name: name, Data: b})
			}
			if err := device.Copy(saved.Slices[i].Data, comm.Of(n)); err != nil {
				return err
			}
		}
		if err := Save(ctx, c, path, &saved); err != nil {
			return err
		}
		for _, s := range []*State{&host, &back} {
			if loaded, err := Load(ctx, c, path, s); !loaded.Found || err != nil {
				return fmt.Errorf("loaded %+v: %v", loaded, err)
			}
			for i, want := range numbers {
				got := make([]float32, len(want))
				if err := device.Copy(comm.Of(got), s.Slices[i].Data); err != nil || !slices.Equal(got, want) {
					return fmt.Errorf("slice %d was not loaded as it was saved (%v)", i, err)
				}
			}
		}
		return nil
	})
}

// A rank that does not come ends Save on the others, and leaves the old file.
func TestRankThatDiesEndsSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for dead := range 3 {
		errs := commtest.Ranks(t.Context(), 3, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == dead {
				return errors.New("a reason of its own")
			}
			return Save(ctx, c, path, withHook(c.Rank()))
		})
		for rank, err := range errs {
			if rank != dead && (wantError(err, path, fmt.Sprintf("rank %d", dead)) != nil ||
				!errors.Is(err, comm.ErrRevoked)) {
				t.Errorf("rank %d is dead: rank %d gets %v", dead, rank, err)
			}
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
			t.Errorf("rank %d is dead: the file holds %q (%v)", dead, data, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("rank %d is dead: the folder holds %v (%v)", dead, entries, err)
		}
	}
}

// The disk may fail after the checksum was found right, while other ranks wait for their part.
func TestEveryRankLearnsThatItsMemoryCannotBeRead(t *testing.T) {
	for _, ranks := range []int{2, 3} { // that have saved
		commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
			var r *reader
			if c.Rank() == 0 {
				r = &reader{in: strings.NewReader("short")}
			}
			err := loadOwn(ctx, c, r, ranks, withHook(0).Hook.Own)
			return errors.Join(wantError(err, "EOF"), comm.Barrier(ctx, c))
		})
	}
}
