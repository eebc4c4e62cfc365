//go:build linux && cgo

package main

import (
	"fmt"
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/mem"
)

// maxBytes is more than the memory of any process: the address space of a processor.
const maxBytes = 1 << 47

// elements returns the type with C's number typ, or an error if there is none.
func elements(typ int) (mem.Type, error) {
	if typ < 1 || typ > int(mem.F64Loc) {
		return mem.NoType, wrong("type is %d: want one of gompi_type, %d to %d", typ, mem.I8, mem.F64Loc)
	}
	return mem.Type(typ), nil
}

// buffer returns the n elements at p, in C's memory, without a copy. what is p's name for errors.
func buffer(what string, p unsafe.Pointer, n uint64, t mem.Type) (mem.Buffer, error) {
	switch {
	case n == 0:
		return mem.HostBytes(t, 0, nil), nil
	case p == nil:
		return mem.Buffer{}, wrong("%s is NULL: want %d elements of %v", what, n, t)
	case n > maxBytes/uint64(t.Size()):
		return mem.Buffer{}, wrong("%s has %d elements of %v: there is not as much memory", what, n, t)
	}
	return mem.HostBytes(t, int(n), unsafe.Slice((*byte)(p), int(n)*t.Size())), nil
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", core.ErrArgument, fmt.Sprintf(format, args...))
}
