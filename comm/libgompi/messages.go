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

	// The outcome of a request that was complete at once: a core.Request returns its outcome once.
	known  bool
	status core.Status
	err    error
}

// payload returns the elements of a message.
func payload(m *C.struct_gompi_message) (mem.Buffer, error) {
	t, err := elements(int(m._type))
	if err != nil {
		return mem.Buffer{}, err
	}
	return buffer("buf", m.buf, uint64(m.n), t)
}

func (c *communicator) send(m *C.struct_gompi_message) error {
	b, err := payload(m)
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	return c.Send(ctx, int(m.peer), int(m.tag), b)
}

func (c *communicator) receive(m *C.struct_gompi_message, status *C.gompi_status) error {
	b, err := payload(m)
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	st, err := c.Recv(ctx, int(m.peer), int(m.tag), b)
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
	if *found = 0; ok {
		*found = 1
	}
	return err
}

// start starts a message. A wrong argument is an error at once, without a request.
func (c *communicator) start(m *C.struct_gompi_message, number *C.gompi_request,
	begin func(peer, tag int, b mem.Buffer) core.Request) error {
	*number = 0
	b, err := payload(m)
	if err != nil {
		return err
	}
	r := request{Request: begin(int(m.peer), int(m.tag), b), on: c}
	if r.Done() {
		if r.status, r.known, r.err = r.Test(); errors.Is(r.err, core.ErrArgument) {
			return r.err
		}
	}
	*number = C.gompi_request(requests.add(r))
	return nil
}

// wait is gompi_wait, and gompi_wait_for if milliseconds is not 0.
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
	if *done = 0; *number == 0 {
		*done = 1
	}
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
		return wrong("there is no request %d: want one that is not complete, or GOMPI_REQUEST_NULL", *number)
	}
	st, over, err := r.status, r.known, r.err
	if !over {
		st, over, err = outcome(r)
	}
	if over {
		describe(status, st)
		requests.remove(int64(*number))
		*number = 0
	}
	return err
}

// describe fills in status.
func describe(status *C.gompi_status, st core.Status) {
	if st == (core.Status{}) { // there was no message
		st.Source, st.Tag = core.AnySource, core.AnyTag
	}
	*status = C.gompi_status{
		source: C.int(st.Source), tag: C.int(st.Tag), _type: C.int(st.Type),
		count: C.size_t(st.Count()), bytes: C.size_t(st.Bytes),
	}
}
