// Package procmem reads the memory of other processes of this host: the kernel copies it
// (process_vm_readv), without a detour through memory that both map.
//
// The kernel may refuse: to read a process takes the right to trace it. Processes of one user have
// it, but where Yama (kernel.yama.ptrace_scope) reserves it for ancestors, which Allow widens, or a
// container's filter forbids the call.
package procmem

import "errors"

// ErrGone: there is no such process, or it does not map all of the memory.
var ErrGone = errors.New("no such memory")
