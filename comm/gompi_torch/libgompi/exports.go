//go:build linux && cgo

package main

// #include "shim/core.h"
import "C"

import (
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/mem"
	"gompi/internal/sockets"
	"gompi/internal/version"
)

// The functions of the table that core.c fills in. gompi.h documents them; core.h lists the
// differences.

//export gompi_core_version
func gompi_core_version() *C.char { return C.CString(version.Build()) }

// on calls f with the communicator with a number.
func on(number C.gompi_comm, text *C.char, f func(*communicator) error) (code C.int) {
	defer caught(&code, text)
	c, err := find(int64(number))
	if err == nil {
		err = f(c)
	}
	return result(err, text)
}

// do is on for an f without errors.
func do(number C.gompi_comm, text *C.char, f func(*communicator)) C.int {
	return on(number, text, func(c *communicator) error {
		f(c)
		return nil
	})
}

// guarded calls f and turns a panic into an error.
func guarded(text *C.char, f func() error) (code C.int) {
	defer caught(&code, text)
	return result(f(), text)
}

//export gompi_core_init
func gompi_core_init(milliseconds C.int64_t, table *C.uint64_t, n C.size_t, text *C.char) C.int {
	return guarded(text, func() error {
		sockets.KeepInodes(unsafe.Slice((*uint64)(unsafe.Pointer(table)), int(n)))
		return join(environment(), int64(milliseconds))
	})
}

//export gompi_core_finalize
func gompi_core_finalize(text *C.char) C.int { return guarded(text, leave) }

//export gompi_core_abort
func gompi_core_abort(status C.int, reason, text *C.char) C.int {
	return on(world, text, func(c *communicator) error { return c.Abort(int(status), C.GoString(reason)) })
}

//export gompi_core_rank
func gompi_core_rank(number C.gompi_comm, rank *C.int, text *C.char) C.int {
	return do(number, text, func(c *communicator) { *rank = C.int(c.Rank()) })
}

//export gompi_core_size
func gompi_core_size(number C.gompi_comm, size *C.int, text *C.char) C.int {
	return do(number, text, func(c *communicator) { *size = C.int(c.Size()) })
}

//export gompi_core_set_timeout
func gompi_core_set_timeout(number C.gompi_comm, milliseconds C.int64_t, text *C.char) C.int {
	return on(number, text, func(c *communicator) error { return c.setLimit(int64(milliseconds)) })
}

//export gompi_core_set_site
func gompi_core_set_site(site, text *C.char) C.int {
	return do(world, text, func(c *communicator) { c.SetSite(C.GoString(site)) })
}

//export gompi_core_place
func gompi_core_place(name *C.char, place *C.int, text *C.char) C.int {
	return do(world, text, func(c *communicator) {
		*place = 0
		if c.Counts() {
			*place = C.int(newPlace(C.GoString(name)))
		}
	})
}

//export gompi_core_create_group
func gompi_core_create_group(number C.gompi_comm, ranks *C.int, n C.size_t, tag C.int, made *C.gompi_comm,
	text *C.char) C.int {
	return on(number, text, func(c *communicator) error {
		ctx, cancel := c.context()
		defer cancel()
		g, err := c.Group().Incl(list(ranks, int(n))...)
		if err != nil {
			return err
		}
		return store(made)(c.CreateGroup(ctx, g, int(tag)))
	})
}

// list returns n numbers of C.
func list(p *C.int, n int) (all []int) {
	for _, x := range unsafe.Slice(p, n) {
		all = append(all, int(x))
	}
	return all
}

//export gompi_core_dup
func gompi_core_dup(number C.gompi_comm, made *C.gompi_comm, text *C.char) C.int {
	return on(number, text, func(c *communicator) error {
		ctx, cancel := c.context()
		defer cancel()
		return store(made)(c.Dup(ctx))
	})
}

// store returns a function that stores the number of a new communicator, or 0 if there is none.
func store(made *C.gompi_comm) func(*core.Comm, error) error {
	return func(c *core.Comm, err error) error {
		*made = 0
		if err == nil && c != nil {
			*made = C.gompi_comm(newCommunicator(c))
		}
		return err
	}
}

//export gompi_core_free
func gompi_core_free(number C.gompi_comm, text *C.char) C.int {
	return guarded(text, func() error { return dissolve(int64(number)) })
}

//export gompi_core_hide
func gompi_core_hide(number C.gompi_comm, text *C.char) C.int {
	return do(number, text, func(c *communicator) { c.Hide() })
}

//export gompi_core_revoke
func gompi_core_revoke(number C.gompi_comm, reason, text *C.char) C.int {
	return do(number, text, func(c *communicator) { c.Revoke(C.GoString(reason)) })
}

//export gompi_core_alloc_local
func gompi_core_alloc_local(bytes C.size_t, memory *unsafe.Pointer, text *C.char) C.int {
	return on(world, text, func(c *communicator) (err error) {
		*memory, err = c.allocLocal(int(bytes))
		return err
	})
}

//export gompi_core_dealloc_local
func gompi_core_dealloc_local(memory unsafe.Pointer, text *C.char) C.int {
	return on(world, text, func(c *communicator) error { return c.deallocLocal(memory) })
}

// gompi_core_share gives c a byte of memory of its own until c ends: ranks of a communicator that has
// some look whether a buffer lies in shared memory.
//
//export gompi_core_share
func gompi_core_share(number C.gompi_comm, text *C.char) C.int {
	return on(number, text, func(c *communicator) error {
		ctx, cancel := c.context()
		defer cancel()
		_, err := c.Alloc(ctx, mem.TypeOf[byte](), 1)
		return err
	})
}

//export gompi_core_send
func gompi_core_send(m *C.struct_gompi_message, text *C.char) C.int {
	return on(m.comm, text, func(c *communicator) error { return c.send(m) })
}

//export gompi_core_recv
func gompi_core_recv(m *C.struct_gompi_message, status *C.gompi_status, text *C.char) C.int {
	return on(m.comm, text, func(c *communicator) error { return c.receive(m, status) })
}

//export gompi_core_isend
func gompi_core_isend(m *C.struct_gompi_message, number *C.gompi_request, text *C.char) C.int {
	return do(m.comm, text, func(c *communicator) { c.start(m, number, c.Isend) })
}

//export gompi_core_irecv
func gompi_core_irecv(m *C.struct_gompi_message, number *C.gompi_request, text *C.char) C.int {
	return do(m.comm, text, func(c *communicator) { c.start(m, number, c.Irecv) })
}

//export gompi_core_wait
func gompi_core_wait(number *C.gompi_request, milliseconds C.int64_t, status *C.gompi_status, text *C.char) C.int {
	return guarded(text, func() error { return wait(number, int64(milliseconds), status) })
}

//export gompi_core_test
func gompi_core_test(number *C.gompi_request, done *C.int, status *C.gompi_status, text *C.char) C.int {
	return guarded(text, func() error { return test(number, done, status) })
}

//export gompi_core_probe
func gompi_core_probe(m *C.struct_gompi_message, status *C.gompi_status, text *C.char) C.int {
	return on(m.comm, text, func(c *communicator) error { return c.probe(m, status) })
}

//export gompi_core_iprobe
func gompi_core_iprobe(m *C.struct_gompi_message, found *C.int, status *C.gompi_status, text *C.char) C.int {
	return on(m.comm, text, func(c *communicator) error { return c.iprobe(m, found, status) })
}

//export gompi_core_collective
func gompi_core_collective(o *C.struct_gompi_call, text *C.char) C.int {
	return on(o.comm, text, func(c *communicator) error { return c.run(o) })
}
