package collective

import (
	"gompi/internal/calls"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
)

// check checks the arguments that mean something on this rank.
func (p *Plan) check(n int, t *dtypes.Datatype) error {
	if err := comms.Check(p.c); err != nil {
		return err
	}
	return dtypes.Check(n, t)
}

// checkBlocks is check for n elements of each rank.
func (p *Plan) checkBlocks(n int, t *dtypes.Datatype) error {
	if err := comms.Check(p.c); err != nil {
		return err
	}
	return dtypes.CheckBlocks(p.c.Peers(), n, t)
}

// checkRoot returns whether this rank is the root.
func (p *Plan) checkRoot(root int) (isRoot bool, err error) {
	if err := comms.Check(p.c); err != nil {
		return false, err
	}
	if p.c.Inter != nil {
		return root == abi.RootHere, checkRemoteRoot(p.c.Inter, root)
	}
	if root < 0 || root >= p.c.P2P.Size() {
		return false, errs.New(errs.Root, "root %d is not from 0 to %d", root, p.c.P2P.Size()-1)
	}
	return root == p.c.P2P.Rank(), nil
}

func (p *Plan) size() int { return p.c.P2P.Size() }
func (p *Plan) rank() int { return p.c.P2P.Rank() }

func (p *Plan) Barrier(c *comms.Comm) error {
	if err := comms.Check(c); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Barrier}.barrier(p)
	}
	p.o.Barrier()
	return nil
}

func (p *Plan) Bcast(buf abi.Addr, n int, t *dtypes.Datatype, root int, c *comms.Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Bcast}.bcast(p, buf, n, t, root)
	}
	if err := dtypes.Check(n, t); err != nil {
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
func own(recvbuf abi.Addr, n int, t *dtypes.Datatype, rank int) abi.Addr {
	return recvbuf.Plus(rank * n * t.Extent())
}

func (p *Plan) Gather(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, root int, c *comms.Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Gather}.gather(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)
	}
	var recv mem.Buffer
	if isRoot {
		if err := p.checkBlocks(recvcount, recvtype); err != nil {
			return err
		}
		if sendbuf == abi.InPlace {
			sendbuf, sendcount, sendtype = own(recvbuf, recvcount, recvtype, root), recvcount, recvtype
		}
		recv = p.in(recvbuf, recvcount*p.size(), recvtype)
	}
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	p.o.Gather(root, p.out(sendbuf, sendcount, sendtype), recv)
	return nil
}

func (p *Plan) Gatherv(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, counts, displs abi.Array, recvtype *dtypes.Datatype, root int, c *comms.Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Gatherv}.gatherv(p, sendbuf, sendcount, sendtype, recvbuf, counts, displs, recvtype, root)
	}
	var recv mem.Buffer
	var recvCounts, recvDispls []int
	if isRoot {
		l := layoutOf(recvbuf, counts, displs, recvtype, p.size())
		if err := l.check(); err != nil {
			return err
		}
		if sendbuf == abi.InPlace {
			sendbuf, sendcount = l.block(root)
			sendtype = recvtype
		}
		recv, recvCounts, recvDispls = l.bytes(&p.ins)
	}
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	p.o.Gatherv(root, p.out(sendbuf, sendcount, sendtype), recv, recvCounts, recvDispls)
	return nil
}

func (p *Plan) Scatter(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, root int, c *comms.Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Scatter}.scatter(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)
	}
	var send mem.Buffer
	if isRoot {
		if err := p.checkBlocks(sendcount, sendtype); err != nil {
			return err
		}
		send = p.out(sendbuf, sendcount*p.size(), sendtype)
		if recvbuf == abi.InPlace {
			n := sendcount * sendtype.Size()
			p.o.Scatter(root, send, send.Slice(root*n, (root+1)*n))
			return nil
		}
	}
	if err := dtypes.Check(recvcount, recvtype); err != nil {
		return err
	}
	p.o.Scatter(root, send, p.in(recvbuf, recvcount, recvtype))
	return nil
}

func (p *Plan) Scatterv(sendbuf abi.Addr, counts, displs abi.Array, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, root int, c *comms.Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Scatterv}.scatterv(p, sendbuf, counts, displs, sendtype, recvbuf, recvcount, recvtype, root)
	}
	var send mem.Buffer
	var sendCounts, sendDispls []int
	if isRoot {
		l := layoutOf(sendbuf, counts, displs, sendtype, p.size())
		if err := l.check(); err != nil {
			return err
		}
		send, sendCounts, sendDispls = l.bytes(&p.outs)
		if recvbuf == abi.InPlace {
			at := sendDispls[root]
			p.o.Scatterv(root, send, send.Slice(at, at+sendCounts[root]), sendCounts, sendDispls)
			return nil
		}
	}
	if err := dtypes.Check(recvcount, recvtype); err != nil {
		return err
	}
	p.o.Scatterv(root, send, p.in(recvbuf, recvcount, recvtype), sendCounts, sendDispls)
	return nil
}

func (p *Plan) Allgather(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := p.checkBlocks(recvcount, recvtype); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Allgather}.allgather(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)
	}
	if sendbuf == abi.InPlace {
		sendbuf, sendcount, sendtype = own(recvbuf, recvcount, recvtype, p.rank()), recvcount, recvtype
	}
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	p.o.Allgather(p.out(sendbuf, sendcount, sendtype), p.in(recvbuf, recvcount*p.size(), recvtype))
	return nil
}

func (p *Plan) Allgatherv(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, counts, displs abi.Array, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := comms.Check(c); err != nil {
		return err
	}
	l := layoutOf(recvbuf, counts, displs, recvtype, c.Peers())
	if err := l.check(); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Allgatherv}.allgatherv(p, sendbuf, sendcount, sendtype, l)
	}
	if sendbuf == abi.InPlace {
		sendbuf, sendcount = l.block(p.rank())
		sendtype = recvtype
	}
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	recv, recvCounts, recvDispls := l.bytes(&p.ins)
	p.o.Allgatherv(p.out(sendbuf, sendcount, sendtype), recv, recvCounts, recvDispls)
	return nil
}

func (p *Plan) Alltoall(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := p.checkBlocks(recvcount, recvtype); err != nil {
		return err
	}
	if sendbuf == abi.InPlace && c.Inter == nil {
		sendbuf, sendcount, sendtype = recvbuf, recvcount, recvtype
	}
	if err := p.checkBlocks(sendcount, sendtype); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Alltoall}.alltoall(p, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)
	}
	p.o.Alltoall(p.out(sendbuf, sendcount*p.size(), sendtype), p.in(recvbuf, recvcount*p.size(), recvtype))
	return nil
}

func (p *Plan) Alltoallv(sendbuf abi.Addr, sendcounts, sdispls abi.Array, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcounts, rdispls abi.Array, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := comms.Check(c); err != nil {
		return err
	}
	to := layoutOf(recvbuf, recvcounts, rdispls, recvtype, c.Peers())
	from := to
	if sendbuf != abi.InPlace {
		from = layoutOf(sendbuf, sendcounts, sdispls, sendtype, c.Peers())
	}
	if err := from.check(); err != nil {
		return err
	}
	if err := to.check(); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Alltoallv}.alltoallv(p, from, to)
	}
	send, sendCounts, sendDispls := from.bytes(&p.outs)
	recv, recvCounts, recvDispls := to.bytes(&p.ins)
	if mem.Overlap(send, recv) && sendbuf != abi.InPlace { // blocks that alternate: none overlaps
		p.eachOf(c, from, to)
		return nil
	}
	p.o.Alltoallv(send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	return nil
}

// eachOf makes p an alltoallw of blocks.
func (p *Plan) eachOf(c *comms.Comm, from, to layout) {
	p.outs, p.ins = p.outs[:0], p.ins[:0]
	send, recv := make([]mem.Buffer, c.Peers()), make([]mem.Buffer, c.Peers())
	for i := range send {
		at, n := from.block(i)
		send[i] = p.out(at, n, from.t)
		at, n = to.block(i)
		recv[i] = p.in(at, n, to.t)
	}
	p.o.Alltoallw(send, recv)
}

// usedType returns the datatype of n elements of one of many ranks.
func usedType(n int, h abi.Handle) *dtypes.Datatype { return dtypes.Used(n, dtypes.Registry.Find(h)) }

func (p *Plan) Alltoallw(sendbuf abi.Addr, sendcounts, sdispls abi.Array, sendtypes []abi.Handle, recvbuf abi.Addr, recvcounts, rdispls abi.Array, recvtypes []abi.Handle, c *comms.Comm) error {
	if err := comms.Check(c); err != nil {
		return err
	}
	if sendbuf == abi.InPlace {
		sendbuf, sendcounts, sdispls, sendtypes = recvbuf, recvcounts, rdispls, recvtypes
	}
	send, recv := make([]mem.Buffer, c.Peers()), make([]mem.Buffer, c.Peers())
	sends, sendsAt := sendcounts.List(c.Peers()), sdispls.List(c.Peers())
	recvs, recvsAt := recvcounts.List(c.Peers()), rdispls.List(c.Peers())
	for i := range send {
		n, at := sends[i], sendsAt[i]
		t := usedType(n, sendtypes[i])
		if err := dtypes.Check(n, t); err != nil {
			return err
		}
		send[i] = p.out(sendbuf.Plus(at), n, t)
		n, at = recvs[i], recvsAt[i]
		t = usedType(n, recvtypes[i])
		if err := dtypes.Check(n, t); err != nil {
			return err
		}
		recv[i] = p.in(recvbuf.Plus(at), n, t)
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Alltoallw}.alltoallw(p, send, recv)
	}
	p.o.Alltoallw(send, recv)
	return nil
}
