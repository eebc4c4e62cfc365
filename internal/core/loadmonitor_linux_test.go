package core_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/core"

	"golang.org/x/sys/unix"
)

// moveTo binds all threads of this process to some processors.
func moveTo(t *testing.T, cpus *unix.CPUSet) {
	t.Helper()
	for range 2 { // threads that are made meanwhile are bound as their makers were
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			if err := unix.SchedSetaffinity(id, cpus); err != nil && err != unix.ESRCH {
				t.Fatal(err)
			}
		}
	}
}

// Ranks whose processors are taken away while they run stop spinning, in messages and
// in shared memory, and spin again when they are given back.
func TestRanksThatArePutOnOneProcessorStopSpinning(t *testing.T) {
	defer core.JudgeEvery(10 * time.Millisecond)()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("it takes two processors")
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	defer moveTo(t, &all)
	err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if !inside(c).Spins() {
			return errors.New("it does not spin where there is a processor for each")
		}
		for _, now := range []struct {
			cpus  *unix.CPUSet
			spins bool
		}{{&one, false}, {&all, true}} {
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
			if c.Rank() == 0 {
				moveTo(t, now.cpus)
			}
			if err := until(ctx, c, now.spins); err != nil {
				return err
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

// until lets ranks wait for each other until all are patient, or none is.
func until(ctx context.Context, c *comm.Comm, spins bool) error {
	for mine, all := []int{0}, []int{0}; all[0] < c.Size(); {
		if mine[0] = 0; inside(c).Spins() == spins {
			mine[0] = 1
		}
		if err := comm.Allreduce(ctx, c, mine, all, comm.Sum); err != nil {
			return err
		}
	}
	return nil
}
