package procmem

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Allow lets the descendants of this process's parent read its memory, where only ancestors may:
// the ranks of a host have one parent, their agent, unless a script stands in between. It is
// undone by nothing but the end of the process.
func Allow() {
	const prSetPtracer = 0x59616d61
	if parent := os.Getppid(); parent > 1 { // all are descendants of 1
		unix.Prctl(prSetPtracer, uintptr(parent), 0, 0, 0) // an error says that nothing need be allowed
	}
}

// Read fills dst with memory of a process, from an address on. It blocks while the kernel copies,
// which may wait for pages of either. ErrGone says that not all of that memory is there; any other
// error is the kernel's refusal. It allocates nothing.
func Read(pid int, dst []byte, from uintptr) error {
	for len(dst) > 0 {
		local := unix.Iovec{Base: unsafe.SliceData(dst)}
		local.SetLen(len(dst))
		remote := unix.RemoteIovec{Base: from, Len: len(dst)}
		n, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EFAULT || errno == unix.ESRCH || errno == 0 && n == 0:
			return ErrGone
		case errno != 0:
			return fmt.Errorf("process_vm_readv: %w", errno)
		}
		dst, from = dst[n:], from+n // the rest begins where nothing is mapped, or is too long for one call
	}
	return nil
}
