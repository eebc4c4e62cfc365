package lease

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// New returns a Lease that is not lent. lock guards the Lease, and its Lock recalls the Lease.
func New(lock sync.Locker) (*Lease, error) {
	size := int(unsafe.Sizeof(Record{}))
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = unix.Madvise(mem, unix.MADV_WIPEONFORK)
	}
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes for short messages from C: %w", size, err)
	}
	return &Lease{rec: (*Record)(unsafe.Pointer(&mem[0])), lock: lock}, nil
}

// yieldProcessor gives the processor to other threads.
func yieldProcessor() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
