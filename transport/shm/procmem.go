package shm

import "errors"

// These functions read and write the memory of other processes of this host: the kernel copies
// (process_vm_readv, process_vm_writev; cross-memory attach), without a detour through memory that
// both map.
//
// The kernel may refuse: access to a process takes the right to trace it. Processes of one user
// have that right, except where Yama (kernel.yama.ptrace_scope) reserves it for ancestors, which
// allowReading widens, or a container's filter forbids the call.

var (
	// errGone: the process does not exist.
	errGone = errors.New("no such process")
	// errUnmapped: the process, or this one, does not map all of the memory.
	errUnmapped = errors.New("no such memory")
)

// A Span is some bytes of another process.
type Span = struct {
	At  uintptr
	Len int
}
