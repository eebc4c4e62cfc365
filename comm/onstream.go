package comm

import "context"

// The collectives in the order of a stream. They are called like the nonblocking ones,
// whose order among the ranks' calls they keep, and return at once; the collective
// begins when the work that q has at that time is done, and what is put on q later
// begins when the collective has ended. So a program can put all of a step on its
// streams without ever waiting. Buffers need not be of q's device.
//
// A collective that fails lets q go on too, with buffers that hold anything: the
// Request tells. Until it is done nobody in the process must free memory of the
// device, close a Comm that uses it, or wait for all of its work, since drivers may
// keep from working whoever else needs them to end the collective. The same goes for
// kernels that are launched for the first time, if the driver loads them only then
// (CUDA_MODULE_LOADING=LAZY, its default), and for work that finds q full: a CUDA
// stream takes some 1000. The first long collective of a Comm takes memory of its
// device: if it is none of these, no stream stops meanwhile. Whether a driver minds has
// not been seen: this never ran on a GPU.

// AllreduceOnStream is Allreduce in the order of q.
func (c *Comm) AllreduceOnStream(q Queue, send, recv Buffer, op Op) Request {
	var o operation
	o.allreduce(send, recv, builtin(op))
	return c.collectiveBehind(&o, q)
}

// BcastOnStream is Bcast in the order of q.
func (c *Comm) BcastOnStream(q Queue, root int, b Buffer) Request {
	var o operation
	o.bcast(root, b)
	return c.collectiveBehind(&o, q)
}

// ReduceOnStream is Reduce in the order of q.
func (c *Comm) ReduceOnStream(q Queue, root int, send, recv Buffer, op Op) Request {
	var o operation
	o.reduce(root, send, recv, builtin(op))
	return c.collectiveBehind(&o, q)
}

// ReduceScatterOnStream is ReduceScatterBlock in the order of q.
func (c *Comm) ReduceScatterOnStream(q Queue, send, recv Buffer, op Op) Request {
	var o operation
	o.reduceScatterBlock(send, recv, builtin(op))
	return c.collectiveBehind(&o, q)
}

// AllgatherOnStream is Allgather in the order of q.
func (c *Comm) AllgatherOnStream(q Queue, send, recv Buffer) Request {
	var o operation
	o.allgather(send, recv)
	return c.collectiveBehind(&o, q)
}

// AlltoallOnStream is Alltoall in the order of q.
func (c *Comm) AlltoallOnStream(q Queue, send, recv Buffer) Request {
	var o operation
	o.alltoall(send, recv)
	return c.collectiveBehind(&o, q)
}

// perform runs the collective whose turn it is, between the works of its stream.
func (t *turn) perform(c *Comm) error {
	if t.hold != nil {
		defer t.hold.Release()
		if err := t.hold.Reached(); err != nil {
			c.ch.Break("failed before " + t.o.call.String() + ": " + err.Error())
			return err
		}
	}
	return c.perform(context.Background(), &t.o, true)
}
