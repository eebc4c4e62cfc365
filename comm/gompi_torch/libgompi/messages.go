//go:build linux && cgo

package main

// #include "shim/core.h"
import "C"

import (
	"errors"
	"time"

	"gompi/internal/core"
	"gompi/internal/mem"
)

// A request is a nonblocking operation that C knows by a number.
type request struct {
	core.Request
	on *communicator
}

// payload returns the elements of a message.
func payload(m *C.struct_gompi_message) mem.Buffer { return buffer(m.buf, int(m.n), mem.Type(m._type)) }

func (c *communicator) send(m *C.struct_gompi_message) error {
	ctx, cancel := c.context()
	defer cancel()
	return c.Send(ctx, int(m.peer), int(m.tag), payload(m))
}

func (c *communicator) receive(m *C.struct_gompi_message, status *C.gompi_status) error {
	ctx, cancel := c.context()
	defer cancel()
	st, err := c.Recv(ctx, int(m.peer), int(m.tag), payload(m))
	describe(status, st)
	return err
}

func (c *communicator) probe(m *C.struct_gompi_message, status *C.gompi_status) error {
	ctx, cancel := c.context()
	defer cancel()
	st, err := c.Probe(ctx, int(m.peer), int(m.tag))
	describe(status, st)
	return err
}

// iprobe is gompi_iprobe.
func (c *communicator) iprobe(m *C.struct_gompi_message, found *C.int, status *C.gompi_status) error {
	st, ok, err := c.Iprobe(int(m.peer), int(m.tag))
	describe(status, st)
	*found = flag(ok)
	return err
}

func flag(is bool) C.int {
	if is {
		return 1
	}
	return 0
}

// start starts a message.
func (c *communicator) start(m *C.struct_gompi_message, number *C.gompi_request,
	begin func(peer, tag int, b mem.Buffer) core.Request) {
	*number = C.gompi_request(requests.add(request{begin(int(m.peer), int(m.tag), payload(m)), c}))
}

// wait is gompi_wait.
func wait(number *C.gompi_request, milliseconds int64, status *C.gompi_status) error {
	return finish(number, status, func(r request) (core.Status, bool, error) {
		ctx, cancel := r.on.context()
		if milliseconds > 0 {
			ctx, cancel = within(checked, time.Duration(min(milliseconds, maxMilliseconds))*time.Millisecond)
		}
		defer cancel()
		st, err := r.Wait(ctx)
		return st, !errors.Is(err, errTimeout) && !errors.Is(err, errInterrupted), err
	})
}

// test is gompi_test.
func test(number *C.gompi_request, done *C.int, status *C.gompi_status) error {
	err := finish(number, status, func(r request) (core.Status, bool, error) { return r.Test() })
	*done = flag(*number == 0)
	return err
}

// finish gets the outcome of a request, and removes the request if it is complete.
func finish(number *C.gompi_request, status *C.gompi_status,
	outcome func(request) (st core.Status, over bool, err error)) error {
	describe(status, core.Status{})
	if *number == 0 {
		return nil
	}
	r, ok := requests.find(int64(*number))
	if now := state.Load(); now != running {
		return outOfTurn(now)
	}
	if !ok {
		return core.BadArgument("there is no request %d: want one that is not complete, or GOMPI_REQUEST_NULL", *number)
	}
	st, over, err := outcome(r)
	if over {
		describe(status, st)
		requests.remove(int64(*number))
		*number = 0
	}
	return err
}

// describe fills in status, if C wants it.
func describe(status *C.gompi_status, st core.Status) {
	if status == nil {
		return
	}
	if st == (core.Status{}) { // there was no message
		st.Source, st.Tag = core.AnySource, core.AnyTag
	}
	*status = C.gompi_status{
		source: C.int(st.Source), tag: C.int(st.Tag), _type: C.int(st.Type),
		count: C.size_t(st.Count()), bytes: C.size_t(st.Bytes),
	}
}
