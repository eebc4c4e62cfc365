package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"gompi/comm"

	"golang.org/x/sys/unix"
)

// slicesIn tells this test binary that it is a test's own process: slices and GOMAXPROCS are
// a process's.
const slicesIn = "GOMPI_TEST_SLICES"

func needSlices(t *testing.T) {
	t.Helper()
	if s, err := sliceOf(0); s == 0 {
		t.Skipf("the scheduler does not tell the slices of threads (Linux 6.12 does): %v", err)
	}
}

// inProcess runs this test again in a process of its own, with some variables set, and
// reports whether this is that process.
func inProcess(t *testing.T, vars ...string) bool {
	t.Helper()
	if os.Getenv(slicesIn) != "" {
		return true
	}
	needSlices(t)
	test := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	test.Env = append(append(os.Environ(), slicesIn+"=1"), vars...)
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// The threads of a process that is a rank ask for the processor for short times, and so
// do those that start later and wait for messages; what it starts does not.
func TestThreadsOfRanksHaveShortSlices(t *testing.T) {
	if !inProcess(t, "GOMAXPROCS=1") {
		return
	}
	usual, _ := sliceOf(0)
	before, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(before) == 0 {
		t.Fatal(before, err)
	}
	errs := overTCP(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			return errors.Join(slicesOf(before, 100*time.Microsecond), sliceOfChild(usual), comm.Barrier(ctx, c))
		}
		return comm.Barrier(ctx, c)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); n != 2 {
		t.Errorf("GOMAXPROCS became %d, want 2", n)
	}
	if err := errors.Join(overTCP(t, 2, waitInNewThread)...); err != nil {
		t.Error(err)
	}
}

// waitInNewThread waits for messages until the thread that does has short slices.
func waitInNewThread(ctx context.Context, c *comm.Comm) error {
	if c.Rank() == 1 { // answers, late
		for {
			v := []int{0}
			if _, err := comm.Recv(ctx, c, 0, comm.AnyTag, v); err != nil || v[0] == 0 {
				return err
			}
			runtime.Gosched()
			if err := comm.Send(ctx, c, 0, 0, v); err != nil {
				return err
			}
		}
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and so its thread ends with it
		done <- func() error {
			tid := unix.Gettid()
			for ctx.Err() == nil {
				if s, err := sliceOf(tid); err != nil || s == 100*time.Microsecond {
					return errors.Join(err, comm.Send(ctx, c, 1, 0, []int{0}))
				}
				if _, err := comm.Sendrecv(ctx, c, 1, 0, []int{1}, 1, 0, []int{0}); err != nil {
					return err
				}
			}
			return fmt.Errorf("a new thread waits with the usual slices: %w", ctx.Err())
		}()
	}()
	return <-done
}

// Init leaves alone what it is told to.
func TestSchedulingIsKept(t *testing.T) {
	if !inProcess(t, "GOMPI_KEEP_SCHEDULING=1", "GOMAXPROCS=1") {
		return
	}
	usual, _ := sliceOf(0)
	err := errors.Join(overTCP(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for range 10 { // the ranks wait, on threads of theirs
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
		}
		threads, err := filepath.Glob("/proc/self/task/*")
		return errors.Join(err, slicesOf(threads, usual))
	})...)
	if err != nil {
		t.Error(err)
	}
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("GOMAXPROCS became %d, want 1", n)
	}
}

// slicesOf is an error for each of some threads that has another slice. Those that have
// ended have none.
func slicesOf(threads []string, want time.Duration) (err error) {
	for _, thread := range threads {
		tid, wrong := strconv.Atoi(filepath.Base(thread))
		if s, gone := sliceOf(tid); wrong != nil || gone == nil && s != want {
			err = errors.Join(err, fmt.Errorf("thread %d has slices of %v (%v), want %v", tid, s, wrong, want))
		}
	}
	return err
}

// sliceOfChild is an error if a process that this one starts has another slice.
func sliceOfChild(want time.Duration) error {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	s, err := sliceOf(child.Process.Pid)
	in.Close()
	if err == nil && s != want {
		err = fmt.Errorf("a process of a rank's has slices of %v, want %v", s, want)
	}
	return errors.Join(err, child.Wait())
}

// sliceOf returns the slice of a thread, 0 if Linux has none.
func sliceOf(tid int) (time.Duration, error) {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return 0, err
	}
	return time.Duration(a.Runtime), nil
}
