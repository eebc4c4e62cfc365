package collective

import (
	"cmp"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/mem"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
)

// Neighbor fills in p as the neighborhood collective k: a message to and from each neighbor, from
// and into the program's buffers.
func (p *Plan) Neighbor(k calls.Kind, a *Args) error {
	c, row := p.c, &calls.Table[k]
	if err := c.CheckIntra(); err != nil {
		return err
	}
	if c.Topology.Kind == 0 {
		return errs.New(errs.Topology, "the communicator has no topology")
	}
	in, out := c.Degrees()
	from, to := p.vectorOf(&row.Send, false, &a.Send, out), p.vectorOf(&row.Recv, false, &a.Recv, in)
	if row.Recv.Layout == calls.Apart { // MPI_Aint
		from.displs, to.displs = a.Send.Displs.AddressList(out), a.Recv.Displs.AddressList(in)
	}
	if err := checkNeighbors(&from, &to); err != nil {
		return err
	}
	send, recv := from.messages(c.Topology.Destinations), to.messages(c.Topology.Sources)
	p.linear = func() (_ *p2p.Request, err error) {
		on := *c.Topology.Neighborhood
		if p.own != nil {
			on.Messages = p.own
		}
		r := p2p.NewRequest(c)
		r.Others, err = on.Start("ineighboralltoallw", send, recv)
		return r, err
	}
	return nil
}

func checkNeighbors(from, to *vector) error {
	for _, v := range []*vector{from, to} {
		if v.layout <= calls.Even {
			v.t = dtypes.Used(v.n, v.t)
		}
	}
	if from.layout == calls.Placed { // types before counts
		if err := cmp.Or(dtypes.Check(0, from.t), dtypes.Check(0, to.t)); err != nil {
			return err
		}
	}
	return cmp.Or(from.check(), to.check())
}

// messages returns the block of each neighbor in place, empty for ProcNull.
func (v *vector) messages(neighbors []int) []mem.Buffer {
	all := make([]mem.Buffer, len(neighbors))
	for i, rank := range neighbors {
		if rank != core.ProcNull {
			at, n, t := v.block(i)
			all[i] = t.Buffer(at, n)
		}
	}
	return all
}
