package mpi

import (
	"gompi/comm"
	"gompi/internal/mem"
)

// checkData checks the arguments that mean something on this rank.
func (p *plan) check(n int, t *Datatype) error {
	if err := checkComm(p.c); err != nil {
		return err
	}
	return checkData(n, t)
}

// checkRoot returns whether this rank is the root.
func (p *plan) checkRoot(root int) (isRoot bool, err error) {
	if err := checkComm(p.c); err != nil {
		return false, err
	}
	if p.c.inter != nil {
		return root == rootHere, p.c.inter.checkRoot(root)
	}
	if root < 0 || root >= p.c.p2p.Size() {
		return false, wrong(errRoot, "root %d is not from 0 to %d", root, p.c.p2p.Size()-1)
	}
	return root == p.c.p2p.Rank(), nil
}

func (p *plan) size() int { return p.c.p2p.Size() }
func (p *plan) rank() int { return p.c.p2p.Rank() }

func (p *plan) Barrier(c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.barrier(p)
	}
	p.o.Barrier()
	return nil
}

func (p *plan) Bcast(buf Addr, n int, t *Datatype, root int, c *Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.bcast(p, buf, n, t, root)
	}
	if err := checkData(n, t); err != nil {
		return err
	}
	if isRoot {
		p.o.Bcast(root, p.out(buf, n, t))
	} else {
		p.o.Bcast(root, p.in(buf, n, t))
	}
	return nil
}

// own returns block rank of what a collective receives: what it sends in place.
func own(recvbuf Addr, n int, t *Datatype, rank int) Addr {
	return recvbuf.plus(rank * n * t.Extent())
}

func (p *plan) Gather(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, root int, c *Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.gather(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)
	}
	var recv comm.Buffer
	if isRoot {
		if err := checkData(recvcount, recvtype); err != nil {
			return err
		}
		if sendbuf == inPlace {
			sendbuf, sendcount, sendtype = own(recvbuf, recvcount, recvtype, root), recvcount, recvtype
		}
		recv = p.in(recvbuf, recvcount*p.size(), recvtype)
	}
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	p.o.Gather(root, p.out(sendbuf, sendcount, sendtype), recv)
	return nil
}

func (p *plan) Gatherv(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, counts, displs Array, recvtype *Datatype, root int, c *Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.gatherv(p, sendbuf, sendcount, sendtype, recvbuf, counts, displs, recvtype, root)
	}
	var recv comm.Buffer
	var recvCounts, recvDispls []int
	if isRoot {
		l := layoutOf(recvbuf, counts, displs, recvtype, p.size())
		if err := l.check(); err != nil {
			return err
		}
		if sendbuf == inPlace {
			sendbuf, sendcount = l.block(root)
			sendtype = recvtype
		}
		recv, recvCounts, recvDispls = l.bytes(p, true)
	}
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	p.o.Gatherv(root, p.out(sendbuf, sendcount, sendtype), recv, recvCounts, recvDispls)
	return nil
}

func (p *plan) Scatter(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, root int, c *Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.scatter(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)
	}
	var send comm.Buffer
	if isRoot {
		if err := checkData(sendcount, sendtype); err != nil {
			return err
		}
		send = p.out(sendbuf, sendcount*p.size(), sendtype)
		if recvbuf == inPlace {
			n := sendcount * sendtype.Size()
			p.o.Scatter(root, send, send.Slice(root*n, (root+1)*n))
			return nil
		}
	}
	if err := checkData(recvcount, recvtype); err != nil {
		return err
	}
	p.o.Scatter(root, send, p.in(recvbuf, recvcount, recvtype))
	return nil
}

func (p *plan) Scatterv(sendbuf Addr, counts, displs Array, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, root int, c *Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.scatterv(p, sendbuf, counts, displs, sendtype, recvbuf, recvcount, recvtype, root)
	}
	var send comm.Buffer
	var sendCounts, sendDispls []int
	if isRoot {
		l := layoutOf(sendbuf, counts, displs, sendtype, p.size())
		if err := l.check(); err != nil {
			return err
		}
		send, sendCounts, sendDispls = l.bytes(p, false)
		if recvbuf == inPlace {
			at := sendDispls[root]
			p.o.Scatterv(root, send, send.Slice(at, at+sendCounts[root]), sendCounts, sendDispls)
			return nil
		}
	}
	if err := checkData(recvcount, recvtype); err != nil {
		return err
	}
	p.o.Scatterv(root, send, p.in(recvbuf, recvcount, recvtype), sendCounts, sendDispls)
	return nil
}

func (p *plan) Allgather(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, c *Comm) error {
	if err := p.check(recvcount, recvtype); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.allgather(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)
	}
	if sendbuf == inPlace {
		sendbuf, sendcount, sendtype = own(recvbuf, recvcount, recvtype, p.rank()), recvcount, recvtype
	}
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	p.o.Allgather(p.out(sendbuf, sendcount, sendtype), p.in(recvbuf, recvcount*p.size(), recvtype))
	return nil
}

func (p *plan) Allgatherv(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, counts, displs Array, recvtype *Datatype, c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	l := layoutOf(recvbuf, counts, displs, recvtype, c.peers())
	if err := l.check(); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.allgatherv(p, sendbuf, sendcount, sendtype, l)
	}
	if sendbuf == inPlace {
		sendbuf, sendcount = l.block(p.rank())
		sendtype = recvtype
	}
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	recv, recvCounts, recvDispls := l.bytes(p, true)
	p.o.Allgatherv(p.out(sendbuf, sendcount, sendtype), recv, recvCounts, recvDispls)
	return nil
}

func (p *plan) Alltoall(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, c *Comm) error {
	if err := p.check(recvcount, recvtype); err != nil {
		return err
	}
	if sendbuf == inPlace && c.inter == nil {
		sendbuf, sendcount, sendtype = recvbuf, recvcount, recvtype
	}
	if err := checkData(sendcount, sendtype); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.alltoall(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)
	}
	p.o.Alltoall(p.out(sendbuf, sendcount*p.size(), sendtype), p.in(recvbuf, recvcount*p.size(), recvtype))
	return nil
}

func (p *plan) Alltoallv(sendbuf Addr, sendcounts, sdispls Array, sendtype *Datatype, recvbuf Addr, recvcounts, rdispls Array, recvtype *Datatype, c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	to := layoutOf(recvbuf, recvcounts, rdispls, recvtype, c.peers())
	from := to
	if sendbuf != inPlace {
		from = layoutOf(sendbuf, sendcounts, sdispls, sendtype, c.peers())
	}
	if err := from.check(); err != nil {
		return err
	}
	if err := to.check(); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.alltoallv(p, from, to)
	}
	send, sendCounts, sendDispls := from.bytes(p, false)
	recv, recvCounts, recvDispls := to.bytes(p, true)
	if mem.Overlap(send, recv) && sendbuf != inPlace { // blocks that alternate: none overlaps
		p.eachOf(c, from, to)
		return nil
	}
	p.o.Alltoallv(send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	return nil
}

// eachOf makes p an alltoallw of blocks.
func (p *plan) eachOf(c *Comm, from, to layout) {
	p.outs, p.ins = p.outs[:0], p.ins[:0]
	send, recv := make([]comm.Buffer, c.peers()), make([]comm.Buffer, c.peers())
	for i := range send {
		at, n := from.block(i)
		send[i] = p.out(at, n, from.t)
		at, n = to.block(i)
		recv[i] = p.in(at, n, to.t)
	}
	p.o.Alltoallw(send, recv)
}

func (p *plan) Alltoallw(sendbuf Addr, sendcounts, sdispls Array, sendtypes []Handle, recvbuf Addr, recvcounts, rdispls Array, recvtypes []Handle, c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	if sendbuf == inPlace {
		sendbuf, sendcounts, sdispls, sendtypes = recvbuf, recvcounts, rdispls, recvtypes
	}
	send, recv := make([]comm.Buffer, c.peers()), make([]comm.Buffer, c.peers())
	sends, sendsAt := sendcounts.list(c.peers()), sdispls.list(c.peers())
	recvs, recvsAt := recvcounts.list(c.peers()), rdispls.list(c.peers())
	for i := range send {
		t, n, at := datatypes.find(sendtypes[i]), sends[i], sendsAt[i]
		if err := checkData(n, t); err != nil {
			return err
		}
		send[i] = p.out(sendbuf.plus(at), n, t)
		t, n, at = datatypes.find(recvtypes[i]), recvs[i], recvsAt[i]
		if err := checkData(n, t); err != nil {
			return err
		}
		recv[i] = p.in(recvbuf.plus(at), n, t)
	}
	if c.inter != nil {
		return c.inter.alltoallw(p, send, recv)
	}
	p.o.Alltoallw(send, recv)
	return nil
}
