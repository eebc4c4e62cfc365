package comm

import (
	"context"

	"gompi/comm/internal/call"
	"gompi/comm/internal/engine"
	"gompi/comm/internal/staging"
	"gompi/internal/mem"
)

// Collectives and messages in the order of a stream. Like nonblocking ones they return at once, and
// count in the order of the rank's calls. The operation begins when the work that q has at the call
// is done, and work that is put on q later begins when the operation has ended: the stream stops
// meanwhile, and the host does the operation, or has NCCL do it. So a program can put a whole step
// on its streams without waiting. Buffers need not be of q's device. The most used operations have
// a method; StartOn of a Persistent serves for all others.
//
// If the operation fails, the stream goes on, with buffers of any content; Wait of the Request
// returns the error.
//
// Until the operation is complete no goroutine must do what may make the driver wait for the
// stopped stream: free memory of the device, close a Comm that uses it, wait for all work of the
// device, launch a kernel for the first time (the driver loads it then, unless
// CUDA_MODULE_LOADING=EAGER), or put work on a stream that is full (some 1000 kernels). The first
// long collective of a Comm allocates memory of the device, and the first messages and staged
// collectives pin memory of the host: do those before, without a stream. Whether a driver minds has
// not been seen: this never ran on a GPU.

// AllreduceOnStream is Allreduce in the order of q.
func (c *Comm) AllreduceOnStream(q Stream, send, recv Buffer, op Op) Request {
	return c.collectiveBehind(new(call.Call).Allreduce(send, recv, builtin(op)), q)
}

// BcastOnStream is Bcast in the order of q.
func (c *Comm) BcastOnStream(q Stream, root int, b Buffer) Request {
	return c.collectiveBehind(new(call.Call).Bcast(root, b), q)
}

// ReduceOnStream is Reduce in the order of q.
func (c *Comm) ReduceOnStream(q Stream, root int, send, recv Buffer, op Op) Request {
	return c.collectiveBehind(new(call.Call).Reduce(root, send, recv, builtin(op)), q)
}

// ReduceScatterOnStream is ReduceScatterBlock in the order of q.
func (c *Comm) ReduceScatterOnStream(q Stream, send, recv Buffer, op Op) Request {
	return c.collectiveBehind(new(call.Call).ReduceScatterBlock(send, recv, builtin(op)), q)
}

// AllgatherOnStream is Allgather in the order of q.
func (c *Comm) AllgatherOnStream(q Stream, send, recv Buffer) Request {
	return c.collectiveBehind(new(call.Call).Allgather(send, recv), q)
}

// AlltoallOnStream is Alltoall in the order of q.
func (c *Comm) AlltoallOnStream(q Stream, send, recv Buffer) Request {
	return c.collectiveBehind(new(call.Call).Alltoall(send, recv), q)
}

// SendOnStream is Send in the order of q. The stream goes on as soon as b may be changed again; the
// Request is complete when Send would return. The message counts in the order of the calls,
// whenever q comes to it.
func (c *Comm) SendOnStream(q Stream, to, tag int, b Buffer) Request {
	return c.messageBehind(q, sendRequest, to, tag, b)
}

// RecvOnStream is Recv in the order of q. The receive matches in the order of the calls. A message
// that arrives before q comes to it waits in host memory.
func (c *Comm) RecvOnStream(q Stream, from, tag int, b Buffer) Request {
	return c.messageBehind(q, recvRequest, from, tag, b)
}

// messageBehind starts the message of a stage at once, so that it keeps its place in the order. A
// goroutine copies between the stage and b when q comes to it. Wait returns errors, too.
func (c *Comm) messageBehind(q Stream, k requestKind, peer, tag int, b Buffer) Request {
	r := Request{c: c, kind: k, peer: int32(peer)}
	if err := c.checkMessage(k, peer, tag); err != nil {
		r.peer, r.h = -1, c.failed(err)
		return r
	}
	s, err := c.staging.Stage(b)
	if err != nil {
		r.h = c.failed(err)
		return r
	}
	hold, err := q.Hold()
	switch {
	case err != nil:
		c.staging.End(s)
		r.h = c.failed(err)
	case k == recvRequest:
		m := c.ch.Irecv(peer, tag, s.Host)
		r.h = c.e.Expect(m)
		go c.recvBehind(hold, r.h, m, s) // ends with the message, or with the communicator
	default:
		m := c.ch.IsendLater(peer, tag, s.Host)
		r.h = c.e.Expect(m)
		go c.sendBehind(hold, r.h, m, s) // so does this
	}
	return r
}

func (c *Comm) sendBehind(hold mem.StreamWait, h, m engine.Handle, s staging.Stage) {
	err := hold.Reached()
	if err == nil {
		err = mem.Copy(s.Host, s.Of)
	}
	hold.Release()
	if err == nil {
		c.ch.Supply(m)
	} else { // the receiver waits in vain
		c.ch.Break("failed before isend: " + err.Error())
	}
	_, _, sent := c.e.Wait(context.Background(), m)
	c.staging.End(s)
	if err == nil {
		err = sent
	}
	c.e.Complete(h, engine.Status{}, err)
}

func (c *Comm) recvBehind(hold mem.StreamWait, h, m engine.Handle, s staging.Stage) {
	st, _, err := c.e.Wait(context.Background(), m)
	if reached := hold.Reached(); err == nil {
		err = reached
	}
	err = c.received(s, st, err)
	hold.Release()
	c.e.Complete(h, st, err)
}

// stop stops q, if that is not nil, behind the work that it has.
func stop(q Stream) (at streamPosition) {
	if q != nil {
		at.hold, at.err = q.Hold()
	}
	return at
}

// perform runs the collective between the works of its stream.
func (t *queuedOp) perform(c *Comm, quiet bool) error {
	defer c.unwind(&t.o)
	err := t.at.reached()
	if err == nil {
		err = c.perform(context.Background(), &t.o, quiet)
	} else { // it is this rank's alone: the others wait in vain
		c.ch.Break("failed before " + t.o.String() + ": " + err.Error())
	}
	if t.at.hold != nil {
		t.at.hold.Release()
	}
	return err
}

// reached waits until the work before it is done.
func (at streamPosition) reached() error {
	if at.err != nil || at.hold == nil {
		return at.err
	}
	return at.hold.Reached()
}
