package shm

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allowReading lets the descendants of this process's parent read its memory, where only ancestors
// may: the ranks of a host have one parent, their agent, unless a script stands in between. The
// permission lasts until the process ends.
func allowReading() {
	const prSetPtracer = 0x59616d61
	if parent := os.Getppid(); parent > 1 { // all are descendants of 1
		unix.Prctl(prSetPtracer, uintptr(parent), 0, 0, 0) // an error means that no permission is needed
	}
}

// readMemory fills dst with memory of a process, from an address on. It blocks while the kernel
// copies, which may wait for pages of either process. errGone and errUnmapped name the missing
// part; any other error is the kernel's refusal. readMemory allocates nothing.
func readMemory(pid int, dst []byte, from uintptr) error {
	return readSpans(pid, dst, []Span{{from, len(dst)}})
}

// writeMemory is the reverse of readMemory: it stores src to memory of a process.
func writeMemory(pid int, src []byte, to uintptr) error {
	return writeSpans(pid, src, []Span{{to, len(src)}})
}

// readSpans is readMemory from consecutive spans, together as long as dst. It changes from.
func readSpans(pid int, dst []byte, from []Span) error {
	return transfer(unix.SYS_PROCESS_VM_READV, "process_vm_readv", pid, dst, from)
}

// writeSpans is the reverse of readSpans.
func writeSpans(pid int, src []byte, to []Span) error {
	return transfer(unix.SYS_PROCESS_VM_WRITEV, "process_vm_writev", pid, src, to)
}

// mostSpans is the number of spans that the kernel takes at a time (IOV_MAX).
const mostSpans = 1024

// transfer makes as few calls as the kernel allows. A Span is an iovec.
func transfer(call uintptr, name string, pid int, mine []byte, theirs []Span) error {
	for len(mine) > 0 {
		local := unix.Iovec{Base: unsafe.SliceData(mine)}
		local.SetLen(len(mine))
		some := theirs[:min(len(theirs), mostSpans)]
		n, _, errno := unix.Syscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1,
			uintptr(unsafe.Pointer(unsafe.SliceData(some))), uintptr(len(some)), 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ESRCH:
			return errGone
		case errno == unix.EFAULT || errno == 0 && n == 0:
			return errUnmapped
		case errno != 0:
			return fmt.Errorf("%s: %w", name, errno)
		}
		// the rest begins at an unmapped address, or is too long for one call
		mine, theirs = mine[n:], behind(theirs, int(n))
	}
	return nil
}

// behind returns the part of spans behind n bytes. It changes spans.
func behind(spans []Span, n int) []Span {
	for len(spans) > 0 && n >= spans[0].Len {
		n, spans = n-spans[0].Len, spans[1:]
	}
	if n > 0 {
		spans[0].At, spans[0].Len = spans[0].At+uintptr(n), spans[0].Len-n
	}
	return spans
}
