package main

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The threads use the processor, as the kernel reports, and rest gives the processor back.
func TestThreadsCompute(t *testing.T) {
	used := make(chan os.Signal, 1)
	signal.Notify(used, syscall.SIGVTALRM)
	defer signal.Stop(used)
	processors := runtime.GOMAXPROCS(0)
	rest := compute(3)
	const enough = 300 * time.Millisecond
	if _, err := unix.Setitimer(unix.ItimerVirtual,
		unix.Itimerval{Value: unix.NsecToTimeval(int64(enough))}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-used:
	case <-time.After(time.Minute):
		t.Errorf("the threads have not used %v of processors in a minute", enough)
	}
	if got := runtime.GOMAXPROCS(0); got != processors+3 {
		t.Errorf("%d processors for Go meanwhile, want %d", got, processors+3)
	}
	rest()
	if got := runtime.GOMAXPROCS(0); got != processors {
		t.Errorf("%d processors for Go are left of %d", got, processors)
	}
}
