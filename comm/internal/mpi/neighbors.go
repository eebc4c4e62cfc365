package mpi

import "gompi/comm"

// A neighborhood is what goes to and comes from neighbors, each with a number in out and in.
type neighborhood struct {
	p    *plan
	send func(i int) comm.Buffer
	recv func(i int) comm.Buffer
}

// messages has p send and receive a message for each neighbor. In a grid a message's tag is the
// place where its receiver has the sender: two neighbors in one dimension may be one rank.
func (h neighborhood) messages(c *Comm) error {
	in, out := c.neighbors()
	send, recv := make([]comm.Buffer, len(out)), make([]comm.Buffer, len(in))
	for i := range out {
		send[i] = h.send(i)
	}
	for i := range in {
		recv[i] = h.recv(i)
	}
	h.p.linear = func() (*Request, error) {
		h.p.begin()
		r := newRequest(c)
		m := c.topology.messages
		if h.p.own != nil {
			m = h.p.own
		}
		for i, from := range in {
			if from != procNull {
				r.others = append(r.others, m.Irecv(from, c.topology.place(i), recv[i]))
			}
		}
		for i, to := range out {
			if to != procNull {
				r.others = append(r.others, m.Isend(to, c.topology.place(i^1), send[i]))
			}
		}
		r.then = h.p.finish
		return r, nil
	}
	return nil
}

// place returns the tag of a message for place i.
func (t *topology) place(i int) int {
	if t.kind == cartTopology {
		return i
	}
	return 0
}

func (p *plan) checkNeighbors(c *Comm) error {
	if err := checkIntra(c); err != nil {
		return err
	}
	if c.topology.kind == 0 {
		return wrong(errTopology, "the communicator has no topology")
	}
	return nil
}

// checkBoth checks what is sent and what is received.
func (p *plan) checkBoth(c *Comm, n int, t *Datatype, m int, u *Datatype) error {
	if err := p.checkNeighbors(c); err != nil {
		return err
	}
	if err := checkData(n, t); err != nil {
		return err
	}
	return checkData(m, u)
}

func (p *plan) NeighborAllgather(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, c *Comm) error {
	if err := p.checkBoth(c, sendcount, sendtype, recvcount, recvtype); err != nil {
		return err
	}
	return neighborhood{p, all(p.out(sendbuf, sendcount, sendtype)), p.blocks(recvbuf, recvcount, recvtype, p.in)}.messages(c)
}

func (p *plan) NeighborAllgatherv(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, counts, displs Array, recvtype *Datatype, c *Comm) error {
	if err := p.checkBoth(c, sendcount, sendtype, 0, recvtype); err != nil {
		return err
	}
	in, _ := c.neighbors()
	l := layoutOf(recvbuf, counts, displs, recvtype, len(in))
	if err := l.check(); err != nil {
		return err
	}
	return neighborhood{p, all(p.out(sendbuf, sendcount, sendtype)), l.blocks(p.in)}.messages(c)
}

func (p *plan) NeighborAlltoall(sendbuf Addr, sendcount int, sendtype *Datatype, recvbuf Addr, recvcount int, recvtype *Datatype, c *Comm) error {
	if err := p.checkBoth(c, sendcount, sendtype, recvcount, recvtype); err != nil {
		return err
	}
	return neighborhood{p, p.blocks(sendbuf, sendcount, sendtype, p.out), p.blocks(recvbuf, recvcount, recvtype, p.in)}.messages(c)
}

func (p *plan) NeighborAlltoallv(sendbuf Addr, sendcounts, sdispls Array, sendtype *Datatype, recvbuf Addr, recvcounts, rdispls Array, recvtype *Datatype, c *Comm) error {
	if err := p.checkBoth(c, 0, sendtype, 0, recvtype); err != nil {
		return err
	}
	in, out := c.neighbors()
	from, to := layoutOf(sendbuf, sendcounts, sdispls, sendtype, len(out)), layoutOf(recvbuf, recvcounts, rdispls, recvtype, len(in))
	if err := from.check(); err != nil {
		return err
	}
	if err := to.check(); err != nil {
		return err
	}
	return neighborhood{p, from.blocks(p.out), to.blocks(p.in)}.messages(c)
}

func (p *plan) NeighborAlltoallw(sendbuf Addr, sendcounts, sdispls Array, sendtypes []Handle, recvbuf Addr, recvcounts, rdispls Array, recvtypes []Handle, c *Comm) error {
	if err := p.checkNeighbors(c); err != nil {
		return err
	}
	var wrongType error
	each := func(buf Addr, counts []int, displs Array, types []Handle, use func(Addr, int, *Datatype) comm.Buffer) func(int) comm.Buffer {
		return func(i int) comm.Buffer {
			t, n := datatypes.find(types[i]), counts[i]
			if err := checkData(n, t); err != nil {
				wrongType = err
				return comm.Of([]byte(nil))
			}
			return use(buf.plus(displs.addresses(i + 1)[i]), n, t)
		}
	}
	in, out := c.neighbors()
	err := neighborhood{p, each(sendbuf, sendcounts.list(len(out)), sdispls, sendtypes, p.out), each(recvbuf, recvcounts.list(len(in)), rdispls, recvtypes, p.in)}.messages(c)
	if wrongType != nil {
		return wrongType
	}
	return err
}
