package comm_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/comm"
)

// The threads of a process that is a rank ask for the processor for short times, and so
// do those that start later.
func TestThreadsOfRanksHaveShortSlices(t *testing.T) {
	if s, err := sliceOf(0); s == 0 {
		t.Skipf("the scheduler does not tell the slices of threads (Linux 6.12 does): %v", err)
	}
	err := errors.Join(overTCP(t, 2, func(ctx context.Context, c *comm.Comm) error {
		var started, ended sync.WaitGroup
		var end = make(chan struct{})
		for range 20 {
			started.Add(1)
			ended.Go(func() {
				runtime.LockOSThread()
				started.Done()
				<-end
			})
		}
		started.Wait()
		err := longSlices()
		close(end)
		ended.Wait()
		return err
	})...)
	if err != nil {
		t.Error(err)
	}
}

// longSlices is an error for each thread of this process that has not the shortest slice.
func longSlices() error {
	threads, err := filepath.Glob("/proc/self/task/*")
	if len(threads) < 20 {
		err = fmt.Errorf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		tid, wrong := strconv.Atoi(filepath.Base(thread))
		if s, gone := sliceOf(tid); wrong != nil || gone == nil && s != 100*time.Microsecond {
			err = errors.Join(err, fmt.Errorf("thread %d has slices of %v (%v), want 100us", tid, s, wrong))
		}
	}
	return err
}

// sliceOf returns the slice of a thread, 0 if Linux has none.
func sliceOf(tid int) (time.Duration, error) {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return 0, err
	}
	return time.Duration(a.Runtime), nil
}
