package mpirun

import (
	"bytes"
	"fmt"
	"math/bits"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A mark is a pending TTOU of a thread that blocks this signal. The kernel removes the mark, like
// all stop signals, when a CONT is sent to the process, running or not. So the process is either
// stopped by its mark, or not, because a CONT has come since the mark was set: unlike before a
// SIGSTOP, there is no moment in between in which a CONT is lost. In an orphaned process group,
// where no shell waits, the kernel does not stop a process this way: there gompirun only waits
// for the CONT.
type mark struct{ ask chan func() }

func newMark() *mark {
	m := &mark{ask: make(chan func())}
	go func() { // until the process ends
		runtime.LockOSThread() // a thread without children, which would inherit the blocked signal
		blockSignal(syscall.SIGTTOU)
		if signal.Ignored(syscall.SIGTTOU) {
			var action [8]uint64 // the default action is all zero
			unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(syscall.SIGTTOU),
				uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		}
		for do := range m.ask {
			do()
		}
	}()
	return m
}

func (m *mark) do(f func()) {
	done := make(chan struct{})
	m.ask <- func() {
		f()
		close(done)
	}
	<-done
}

// set sets the mark.
func (m *mark) set() {
	m.do(func() { unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTTOU) })
}

// stop stops this process if the mark exists and void is not closed, and removes the mark. void
// is closed before the mark is set again, so that a later mark stops nothing.
func (m *mark) stop(void <-chan struct{}) {
	m.do(func() {
		select {
		case <-void:
			return
		default:
		}
		unblock := signalSet(syscall.SIGTTOU)
		unix.PthreadSigmask(unix.SIG_UNBLOCK, &unblock, nil)
		blockSignal(syscall.SIGTTOU)
	})
}

// awaitHandlers returns when all signals of a kind that were sent before are in their channels.
//
//  1. Such a signal is pending until a thread takes it, which the kernel reports.
//  2. A thread that has taken it blocks all signals until its handler has returned. So when each
//     thread has taken a signal that was sent to it alone, no earlier handler still runs.
//     The signal is one that Go's runtime uses itself, and tolerates.
//  3. The handler has left the signal to a goroutine of package os/signal. Stop waits until that
//     goroutine is idle, for any channel.
func awaitHandlers(sig syscall.Signal) {
	for anyPending(threads(), sig) {
		time.Sleep(time.Millisecond)
	}
	all := threads()
	for _, tid := range all {
		unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
	}
	for anyPending(all, unix.SIGURG) {
		time.Sleep(time.Millisecond)
	}
	unused := make(chan os.Signal, 1)
	signal.Notify(unused, syscall.SIGCONT)
	signal.Stop(unused)
}

// threads returns the threads of this process.
func threads() (tids []int) {
	names, _ := os.ReadDir("/proc/self/task")
	for _, name := range names {
		if tid, err := strconv.Atoi(name.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// anyPending reports whether a signal is pending for one of some threads, or for the process.
func anyPending(tids []int, sig syscall.Signal) bool {
	for _, tid := range tids {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", tid))
		for _, field := range []string{"\nSigPnd:\t", "\nShdPnd:\t"} {
			_, word, _ := bytes.Cut(status, []byte(field))
			word, _, _ = bytes.Cut(word, []byte("\n"))
			if set, _ := strconv.ParseUint(string(word), 16, 64); set&(1<<(sig-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// blockSignal blocks sig on this thread, but not in processes started by other threads, until
// restore is called.
func blockSignal(sig syscall.Signal) (restore func()) {
	var old unix.Sigset_t
	set := signalSet(sig)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old) // fails only for an unknown first argument
	return func() { unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }
}

func signalSet(sig syscall.Signal) (set unix.Sigset_t) {
	n := uint(sig) - 1
	set.Val[n/bits.UintSize] |= 1 << (n % bits.UintSize)
	return set
}
