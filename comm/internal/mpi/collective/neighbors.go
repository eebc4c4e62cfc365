package collective

import (
	"gompi/comm"
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/comms"
	"gompi/comm/internal/mpi/dtypes"
	"gompi/comm/internal/mpi/errs"
	"gompi/comm/internal/mpi/p2p"
)

// A neighborhood is what goes to and comes from neighbors, each with a number in out and in.
type neighborhood struct {
	p    *Plan
	send func(i int) comm.Buffer
	recv func(i int) comm.Buffer
}

// messages has p send and receive a message for each neighbor.
func (h neighborhood) messages(c *comms.Comm) error {
	in, out := c.Degrees()
	send, recv := make([]comm.Buffer, out), make([]comm.Buffer, in)
	for i := range send {
		send[i] = h.send(i)
	}
	for i := range recv {
		recv[i] = h.recv(i)
	}
	h.p.linear = func() (_ *p2p.Request, err error) {
		h.p.begin()
		on := *c.Topology.Neighborhood
		if h.p.own != nil {
			on.Messages = h.p.own
		}
		r := p2p.NewRequest(c)
		r.Then = h.p.finish
		r.Others, err = on.IneighborAlltoallw(send, recv)
		return r, err
	}
	return nil
}

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
	if err := p.checkBoth(c, sendcount, sendtype, recvcount, recvtype); err != nil {
		return err
	}
	return neighborhood{p, all(p.out(sendbuf, sendcount, sendtype)), p.blocks(recvbuf, recvcount, recvtype, p.in)}.messages(c)
}

func (p *Plan) NeighborAllgatherv(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, counts, displs abi.Array, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := p.checkBoth(c, sendcount, sendtype, 0, recvtype); err != nil {
		return err
	}
	in, _ := c.Degrees()
	l := layoutOf(recvbuf, counts, displs, recvtype, in)
	if err := l.check(); err != nil {
		return err
	}
	return neighborhood{p, all(p.out(sendbuf, sendcount, sendtype)), l.blocks(p.in)}.messages(c)
}

func (p *Plan) NeighborAlltoall(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, c *comms.Comm) error {
	if err := p.checkBoth(c, sendcount, sendtype, recvcount, recvtype); err != nil {
		return err
	}
	return neighborhood{p, p.blocks(sendbuf, sendcount, sendtype, p.out), p.blocks(recvbuf, recvcount, recvtype, p.in)}.messages(c)
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
	return neighborhood{p, from.blocks(p.out), to.blocks(p.in)}.messages(c)
}

func (p *Plan) NeighborAlltoallw(sendbuf abi.Addr, sendcounts, sdispls abi.Array, sendtypes []abi.Handle, recvbuf abi.Addr, recvcounts, rdispls abi.Array, recvtypes []abi.Handle, c *comms.Comm) error {
	if err := p.checkNeighbors(c); err != nil {
		return err
	}
	var wrongType error
	each := func(buf abi.Addr, counts []int, displs abi.Array, types []abi.Handle, use func(abi.Addr, int, *dtypes.Datatype) comm.Buffer) func(int) comm.Buffer {
		return func(i int) comm.Buffer {
			t, n := dtypes.Registry.Find(types[i]), counts[i]
			if err := dtypes.Check(n, t); err != nil {
				wrongType = err
				return comm.Of([]byte(nil))
			}
			return use(buf.Plus(displs.Addresses(i + 1)[i]), n, t)
		}
	}
	in, out := c.Degrees()
	err := neighborhood{p, each(sendbuf, sendcounts.List(out), sdispls, sendtypes, p.out), each(recvbuf, recvcounts.List(in), rdispls, recvtypes, p.in)}.messages(c)
	if wrongType != nil {
		return wrongType
	}
	return err
}
