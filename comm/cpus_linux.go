package comm

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// affinity returns the processors that this process may run on.
func affinity() cpuset {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return nil
	}
	var s cpuset
	for cpu := range len(mask) * 64 {
		if mask.IsSet(cpu) {
			for len(s) <= cpu/8 {
				s = append(s, 0)
			}
			s[cpu/8] |= 1 << (cpu % 8)
		}
	}
	return s
}

// yield gives the processor to another goroutine, or to another process. It is
// an ordinary system call and not a raw one: it may last as long as the other
// has things to do.
func yield() {
	runtime.Gosched()
	unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
