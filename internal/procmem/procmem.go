// Package procmem reads and writes the memory of other processes of this host: the kernel copies it
// (process_vm_readv, process_vm_writev; cross-memory attach), without a detour through memory that
// both map.
//
// The kernel may refuse: to reach into a process takes the right to trace it. Processes of one user
// have it, but where Yama (kernel.yama.ptrace_scope) reserves it for ancestors, which Allow widens,
// or a container's filter forbids the call.
package procmem

import "errors"

var (
	// ErrGone: there is no such process.
	ErrGone = errors.New("no such process")
	// ErrUnmapped: the process, or this one, does not map all of the memory.
	ErrUnmapped = errors.New("no such memory")
)
