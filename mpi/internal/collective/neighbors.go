package collective

import (
	"gompi/internal/core"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
)

// A neighborhood is what goes to and comes from neighbors, each with a number in out and in. It is
// sent from and received into where it lies, as by messages between two ranks.
type neighborhood struct {
	p    *Plan
	send func(i int) mem.Buffer
	recv func(i int) mem.Buffer
}

// messages has p send and receive a message for each neighbor.
func (h neighborhood) messages(c *comms.Comm) error {
	send, recv := buffers(c.Topology.Destinations, h.send), buffers(c.Topology.Sources, h.recv)
	h.p.linear = func() (_ *p2p.Request, err error) {
		on := *c.Topology.Neighborhood
		if h.p.own != nil {
			on.Messages = h.p.own
		}
		r := p2p.NewRequest(c)
		r.Others, err = on.Start("ineighboralltoallw", send, recv)
		return r, err
	}
	return nil
}

// buffers returns that of each neighbor, an empty one of ProcNull.
func buffers(neighbors []int, of func(i int) mem.Buffer) []mem.Buffer {
	all := make([]mem.Buffer, len(neighbors))
	for i, rank := range neighbors {
		if rank != core.ProcNull {
			all[i] = of(i)
		}
	}
	return all
}

// bufferOf returns n elements as messages take them.
func bufferOf(buf abi.Addr, n int, t *dtypes.Datatype) mem.Buffer { return t.Buffer(buf, n) }

func (p *Plan) checkNeighbors(c *comms.Comm) error {
	if err := comms.CheckIntra(c); err != nil {
		return err
	}
	if c.Topology.Kind == 0 {
		return errs.New(errs.Topology, "the communicator has no topology")
	}
	return nil
}

// checkBoth checks what is sent and what is received.
func (p *Plan) checkBoth(c *comms.Comm, n int, t *dtypes.Datatype, m int, u *dtypes.Datatype) error {
	if err := p.checkNeighbors(c); err != nil {
		return err
	}
	if err := dtypes.Check(n, t); err != nil {
		return err
	}
	return dtypes.Check(m, u)
}

func (p *Plan) NeighborAllgather(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, c *comms.Comm) error {
	sendtype, recvtype = dtypes.Used(sendcount, sendtype), dtypes.Used(recvcount, recvtype)
	if err := p.checkBoth(c, sendcount, sendtype, recvcount, recvtype); err != nil {
		return err
	}
	return neighborhood{p, all(bufferOf(sendbuf, sendcount, sendtype)), p.blocks(recvbuf, recvcount, recvtype, bufferOf)}.messages(c)
}

func (p *Plan) NeighborAllgatherv(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, counts, displs abi.Array, recvtype *dtypes.Datatype, c *comms.Comm) error {
	sendtype = dtypes.Used(sendcount, sendtype)
	if err := p.checkBoth(c, sendcount, sendtype, 0, recvtype); err != nil {
		return err
	}
	in, _ := c.Degrees()
	l := layoutOf(recvbuf, counts, displs, recvtype, in)
	if err := l.check(); err != nil {
		return err
	}
	return neighborhood{p, all(bufferOf(sendbuf, sendcount, sendtype)), l.blocks(bufferOf)}.messages(c)
}

func (p *Plan) NeighborAlltoall(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, c *comms.Comm) error {
	sendtype, recvtype = dtypes.Used(sendcount, sendtype), dtypes.Used(recvcount, recvtype)
	if err := p.checkBoth(c, sendcount, sendtype, recvcount, recvtype); err != nil {
		return err
	}
	return neighborhood{p, p.blocks(sendbuf, sendcount, sendtype, bufferOf), p.blocks(recvbuf, recvcount, recvtype, bufferOf)}.messages(c)
}

func (p *Plan) NeighborAlltoallv(sendbuf abi.Addr, sendcounts, sdispls abi.Array, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcounts, rdispls abi.Array, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := p.checkBoth(c, 0, sendtype, 0, recvtype); err != nil {
		return err
	}
	in, out := c.Degrees()
	from, to := layoutOf(sendbuf, sendcounts, sdispls, sendtype, out), layoutOf(recvbuf, recvcounts, rdispls, recvtype, in)
	if err := from.check(); err != nil {
		return err
	}
	if err := to.check(); err != nil {
		return err
	}
	return neighborhood{p, from.blocks(bufferOf), to.blocks(bufferOf)}.messages(c)
}

func (p *Plan) NeighborAlltoallw(sendbuf abi.Addr, sendcounts, sdispls abi.Array, sendtypes []abi.Handle, recvbuf abi.Addr, recvcounts, rdispls abi.Array, recvtypes []abi.Handle, c *comms.Comm) error {
	if err := p.checkNeighbors(c); err != nil {
		return err
	}
	in, out := c.Degrees()
	from, err := eachOf(sendbuf, sendcounts.List(out), sdispls, sendtypes)
	if err != nil {
		return err
	}
	to, err := eachOf(recvbuf, recvcounts.List(in), rdispls, recvtypes)
	if err != nil {
		return err
	}
	return neighborhood{p, from, to}.messages(c)
}

// eachOf returns counts[i] elements of types[i], displs[i] bytes behind buf.
func eachOf(buf abi.Addr, counts []int, displs abi.Array, types []abi.Handle) (func(int) mem.Buffer, error) {
	for i, n := range counts {
		if err := dtypes.Check(n, usedType(n, types[i])); err != nil {
			return nil, err
		}
	}
	return func(i int) mem.Buffer {
		return usedType(counts[i], types[i]).Buffer(buf.Plus(displs.Addresses(i + 1)[i]), counts[i])
	}, nil
}
