package mpi

import (
	"gompi/comm"
	"gompi/comm/internal/door"
)

// Collectives of intercommunicators (MPI 4.0, section 6.2.3): data goes from one group to the
// other. All are an alltoallw over both groups, in which most buffers are empty; reductions first
// combine within a group. A step of one may follow another of the next only in the order of the
// calls, so they run one after the other: on a goroutine if they are nonblocking.

// do runs a blocking collective, behind those that were started.
func (x *inter) do(steps func() error) error {
	x.mu.Lock()
	if !x.running {
		x.mu.Unlock()
		return steps()
	}
	x.mu.Unlock()
	over := make(chan error, 1)
	x.push(func() { over <- steps() })
	return <-over
}

// enqueue starts a collective, and returns the request for it.
func (x *inter) enqueue(steps func() error) comm.Request {
	d := door.Of[comm.Request](x.both)
	r := d.Promise()
	x.push(func() { d.Complete(r, steps()) })
	return r
}

func (x *inter) push(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, f)
	if !x.running {
		x.running = true
		go x.run()
	}
}

func (x *inter) run() {
	for {
		x.mu.Lock()
		if len(x.queue) == 0 {
			x.running = false
			x.mu.Unlock()
			return
		}
		f := x.queue[0]
		x.queue = x.queue[1:]
		x.mu.Unlock()
		f()
	}
}

func (x *inter) checkRoot(root int) error {
	if root == rootHere || root == procNull || root >= 0 && root < x.remote.Size() {
		return nil
	}
	return wrong(errRoot, "root %d is not from 0 to %d, and not MPI_ROOT or MPI_PROC_NULL", root, x.remote.Size()-1)
}

// exchange makes p an exchange in which rank i of the remote group gets to(i), and gives what comes
// to from(i). nil is nothing.
func (x *inter) exchange(p *plan, to, from func(i int) comm.Buffer) error {
	send, recv := make([]comm.Buffer, x.both.Size()), make([]comm.Buffer, x.both.Size())
	for i, r := range x.remote.Translate(x.both.Group()) {
		if to != nil {
			send[r] = to(i)
		}
		if from != nil {
			recv[r] = from(i)
		}
	}
	for i := range send { // comm wants a type
		if send[i].Type() == 0 {
			send[i] = comm.Of([]byte(nil))
		}
		if recv[i].Type() == 0 {
			recv[i] = comm.Of([]byte(nil))
		}
	}
	steps := p.steps
	p.steps = func() error {
		if steps != nil {
			if err := steps(); err != nil {
				return err
			}
		}
		p.begin()
		if err := x.both.Alltoallw(forever, send, recv); err != nil {
			return err
		}
		p.end()
		return nil
	}
	return nil
}

// all returns the same buffer for each rank, one that of a single one.
func all(b comm.Buffer) func(int) comm.Buffer { return func(int) comm.Buffer { return b } }

func only(rank int, b comm.Buffer) func(int) comm.Buffer {
	return func(i int) comm.Buffer {
		if i == rank {
			return b
		}
		return comm.Buffer{}
	}
}

func (x *inter) barrier(p *plan) error {
	p.steps = func() error { return x.both.Barrier(forever) }
	return nil
}

func (x *inter) bcast(p *plan, buf Addr, n int, t *Datatype, root int) error {
	if root == procNull {
		return x.exchange(p, nil, nil)
	}
	if err := checkData(n, t); err != nil {
		return err
	}
	if root == rootHere {
		return x.exchange(p, all(p.out(buf, n, t)), nil)
	}
	return x.exchange(p, nil, only(root, p.in(buf, n, t)))
}

// blocks returns the blocks of n elements each that come, or go.
func (p *plan) blocks(buf Addr, n int, t *Datatype, use func(Addr, int, *Datatype) comm.Buffer) func(int) comm.Buffer {
	return func(i int) comm.Buffer { return use(own(buf, n, t, i), n, t) }
}

func (l *layout) blocks(use func(Addr, int, *Datatype) comm.Buffer) func(int) comm.Buffer {
	return func(i int) comm.Buffer {
		at, n := l.block(i)
		return use(at, n, l.t)
	}
}

func (x *inter) gather(p *plan, sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, root int) error {
	switch root {
	case procNull:
		return x.exchange(p, nil, nil)
	case rootHere:
		if err := checkData(recvcount, recvtype); err != nil {
			return err
		}
		return x.exchange(p, nil, p.blocks(recvbuf, recvcount, recvtype, p.in))
	}
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	return x.exchange(p, only(root, p.out(sendbuf, sendcount, sendtype)), nil)
}

func (x *inter) gatherv(p *plan, sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, counts, displs Array, recvtype *Datatype, root int) error {
	if root != rootHere {
		return x.gather(p, sendbuf, sendcount, sendtype, 0, 0, nil, root)
	}
	l := layoutOf(recvbuf, counts, displs, recvtype, x.remote.Size())
	if err := l.check(); err != nil {
		return err
	}
	return x.exchange(p, nil, l.blocks(p.in))
}

func (x *inter) scatter(p *plan, sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, root int) error {
	switch root {
	case procNull:
		return x.exchange(p, nil, nil)
	case rootHere:
		if err := checkData(sendcount, sendtype); err != nil {
			return err
		}
		return x.exchange(p, p.blocks(sendbuf, sendcount, sendtype, p.out), nil)
	}
	if err := checkData(recvcount, recvtype); err != nil {
		return err
	}
	return x.exchange(p, nil, only(root, p.in(recvbuf, recvcount, recvtype)))
}

func (x *inter) scatterv(p *plan, sendbuf Addr, counts, displs Array, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, root int) error {
	if root != rootHere {
		return x.scatter(p, 0, 0, nil, recvbuf, recvcount, recvtype, root)
	}
	l := layoutOf(sendbuf, counts, displs, sendtype, x.remote.Size())
	if err := l.check(); err != nil {
		return err
	}
	return x.exchange(p, l.blocks(p.out), nil)
}

func (x *inter) allgather(p *plan, sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype) error {
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	return x.exchange(p, all(p.out(sendbuf, sendcount, sendtype)), p.blocks(recvbuf, recvcount, recvtype, p.in))
}

func (x *inter) allgatherv(p *plan, sendbuf Addr, sendcount int, sendtype *Datatype, l layout) error {
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	return x.exchange(p, all(p.out(sendbuf, sendcount, sendtype)), l.blocks(p.in))
}

func (x *inter) alltoall(p *plan, sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype) error {
	return x.exchange(p, p.blocks(sendbuf, sendcount, sendtype, p.out), p.blocks(recvbuf, recvcount, recvtype, p.in))
}

func (x *inter) alltoallv(p *plan, from, to layout) error {
	return x.exchange(p, from.blocks(p.out), to.blocks(p.in))
}

func (x *inter) alltoallw(p *plan, send, recv []comm.Buffer) error {
	return x.exchange(p, func(i int) comm.Buffer { return send[i] }, func(i int) comm.Buffer { return recv[i] })
}

// combined makes the first step of p a reduction within the local group to its rank 0, and returns
// the result, which the other group gets.
func (x *inter) combined(p *plan, sendbuf Addr, n int, t *Datatype, o *Op) *plan {
	first := &plan{c: &Comm{p2p: x.local}}
	operand := first.operand(sendbuf, n, t, o)
	room := make([]byte, operand.Size())
	result := comm.Of(room).As(operand)
	first.o.Reduce(0, operand, result, o.combination(t))
	p.steps = func() error { return first.block(nil) }
	p.combined = room
	return p
}

// sent returns the combined elements that rank 0 of the local group sends, from element lo on.
func (x *inter) sent(p *plan, t *Datatype, o *Op, lo, n int) comm.Buffer {
	if x.local.Rank() != 0 {
		return comm.Buffer{}
	}
	size := elementSize(t, o)
	return comm.Of(p.combined[lo*size : (lo+n)*size])
}

// elementSize returns how far apart elements are that o combines.
func elementSize(t *Datatype, o *Op) int {
	if typ, ok := o.native(t); ok {
		return typ.Size()
	}
	return t.Extent()
}

func (x *inter) reduce(p *plan, sendbuf, recvbuf Addr, n int, t *Datatype, o *Op, root int) error {
	if root == procNull {
		return x.exchange(p, nil, nil)
	}
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	if root == rootHere {
		return x.exchange(p, nil, only(0, p.result(recvbuf, n, t, o).Raw()))
	}
	x.combined(p, sendbuf, n, t, o)
	return x.exchange(p, only(root, x.sent(p, t, o, 0, n)), nil)
}

func (x *inter) allreduce(p *plan, sendbuf, recvbuf Addr, n int, t *Datatype, o *Op) error {
	x.combined(p, sendbuf, n, t, o)
	return x.exchange(p, all(x.sent(p, t, o, 0, n)), only(0, p.result(recvbuf, n, t, o).Raw()))
}

// reduceScatter gives each rank its part of what the other group has combined. counts are those of
// the local group, so that the other's are asked for.
func (x *inter) reduceScatter(p *plan, sendbuf, recvbuf Addr, counts []int, total int, t *Datatype, o *Op) error {
	x.combined(p, sendbuf, total, t, o)
	mine := counts[x.local.Rank()]
	recv := only(0, p.result(recvbuf, mine, t, o).Raw())
	reduce := p.steps
	p.steps = func() error {
		theirs := make([]int64, x.both.Size())
		if err := reduce(); err != nil {
			return err
		}
		if err := x.both.Allgather(forever, comm.Of([]int64{int64(mine)}), comm.Of(theirs)); err != nil {
			return err
		}
		at := 0
		places := x.remote.Translate(x.both.Group())
		q := &plan{c: p.c}
		err := x.exchange(q, func(i int) comm.Buffer {
			n := int(theirs[places[i]])
			at += n
			return x.sent(p, t, o, at-n, n)
		}, recv)
		if err != nil {
			return err
		}
		if err := q.steps(); err != nil {
			return err
		}
		p.end()
		return nil
	}
	return nil
}
