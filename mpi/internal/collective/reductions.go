package collective

import (
	"gompi/internal/calls"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/ops"
)

// checkReduction checks the arguments of a reduction.
func (p *Plan) checkReduction(n int, t *dtypes.Datatype, o *ops.Op) error {
	if err := p.check(n, t); err != nil {
		return err
	}
	if err := ops.CheckOp(o, t); err != nil {
		return err
	}
	return nil
}

// operand returns n elements that o combines.
func (p *Plan) operand(buf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op) mem.Buffer {
	return elements(&p.outs, buf, n, t, o)
}

// result returns where n combined elements go.
func (p *Plan) result(buf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op) mem.Buffer {
	return elements(&p.ins, buf, n, t, o)
}

// elements returns n elements as o combines them: where they lie, or else in list and packed.
func elements(list *[]dtypes.Staged, buf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op) mem.Buffer {
	if b, ok := o.Elements(buf, n, t); ok {
		return b
	}
	size := o.ElementSize(t)
	room := make([]byte, n*size)
	*list = append(*list, t.Stage(buf, n, room))
	return mem.HostElements(size, n, room)
}

// source returns where operands are that may be in the place of results.
func source(sendbuf, recvbuf abi.Addr) abi.Addr {
	if sendbuf == abi.InPlace {
		return recvbuf
	}
	return sendbuf
}

func (p *Plan) Reduce(sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op, root int, c *comms.Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Reduce}.reduce(p, sendbuf, recvbuf, n, t, o, root)
	}
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	var recv mem.Buffer
	if isRoot {
		recv = p.result(recvbuf, n, t, o)
	}
	p.o.Reduce(root, p.operand(source(sendbuf, recvbuf), n, t, o), recv, o.Combination(t))
	return nil
}

func (p *Plan) Allreduce(sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op, c *comms.Comm) error {
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.Allreduce}.allreduce(p, sendbuf, recvbuf, n, t, o)
	}
	p.o.Allreduce(p.operand(source(sendbuf, recvbuf), n, t, o), p.result(recvbuf, n, t, o), o.Combination(t))
	return nil
}

func (p *Plan) ReduceScatter(sendbuf, recvbuf abi.Addr, counts abi.Array, t *dtypes.Datatype, o *ops.Op, c *comms.Comm) error {
	if err := comms.Check(c); err != nil {
		return err
	}
	size, _ := comms.CommSize(c)
	ns, total := counts.List(size), 0
	for i, n := range ns {
		if n < 0 {
			return errs.New(errs.Count, "count %d is %d: want 0 or more", i, n)
		}
		total += n
	}
	if err := p.checkReduction(total, t, o); err != nil {
		return err
	}
	if c.Inter != nil {
		return across{c.Inter, calls.ReduceScatter}.reduceScatter(p, sendbuf, recvbuf, ns, total, t, o)
	}
	send := p.operand(source(sendbuf, recvbuf), total, t, o)
	p.o.ReduceScatter(send, p.result(recvbuf, ns[p.rank()], t, o), ns, o.Combination(t))
	return nil
}

func (p *Plan) ReduceScatterBlock(sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op, c *comms.Comm) error {
	if err := p.checkBlocks(n, t); err != nil {
		return err
	}
	if err := ops.CheckOp(o, t); err != nil {
		return err
	}
	if c.Inter != nil {
		ns := make([]int, c.Inter.Local.Size())
		for i := range ns {
			ns[i] = n
		}
		return across{c.Inter, calls.ReduceScatterBlock}.reduceScatter(p, sendbuf, recvbuf, ns, n*len(ns), t, o)
	}
	send := p.operand(source(sendbuf, recvbuf), n*p.size(), t, o)
	p.o.ReduceScatterBlock(send, p.result(recvbuf, n, t, o), o.Combination(t))
	return nil
}

func (p *Plan) Scan(sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op, c *comms.Comm) error {
	if err := p.checkScan(n, t, o, c); err != nil {
		return err
	}
	p.o.Scan(p.operand(source(sendbuf, recvbuf), n, t, o), p.result(recvbuf, n, t, o), o.Combination(t))
	return nil
}

func (p *Plan) Exscan(sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op, c *comms.Comm) error {
	if err := p.checkScan(n, t, o, c); err != nil {
		return err
	}
	send := p.operand(source(sendbuf, recvbuf), n, t, o)
	if p.rank() == 0 { // recvbuf means nothing there
		p.o.Exscan(send, send, o.Combination(t))
		return nil
	}
	p.o.Exscan(send, p.result(recvbuf, n, t, o), o.Combination(t))
	return nil
}

func (p *Plan) checkScan(n int, t *dtypes.Datatype, o *ops.Op, c *comms.Comm) error {
	if err := comms.CheckIntra(c); err != nil {
		return err
	}
	return p.checkReduction(n, t, o)
}
