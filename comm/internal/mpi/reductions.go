package mpi

import (
	"gompi/comm"
	"gompi/comm/internal/mpi/datatype"
	"gompi/internal/mem"
)

// checkReduction checks the arguments of a reduction.
func (p *plan) checkReduction(n int, t *Datatype, o *Op) error {
	if err := p.check(n, t); err != nil {
		return err
	}
	if err := checkOp(o, t); err != nil {
		return err
	}
	if lb, extent := t.TrueExtent(); lb < t.Lb() || lb+extent > t.Ub() {
		return wrong(errUnsupported, "a reduction of a datatype with data outside its bounds")
	}
	return nil
}

// isSolid reports whether elements of an array of t may be copied as a whole, with what is between
// their parts.
func isSolid(t *Datatype) bool {
	if b := t.Basic(); b != nil && b.Class == datatype.Pair {
		return true
	}
	at, ok := t.Contiguous(2)
	return ok && at == t.Lb()
}

// elements returns n elements of t in memory as o combines them, if they need not be spread.
func (o *Op) elements(buf Addr, n int, t *Datatype) (comm.Buffer, bool) {
	if typ, ok := o.native(t); ok {
		return mem.HostBytes(typ, n, buf.bytes(n*t.Size())), true
	}
	if !isSolid(t) {
		return comm.Buffer{}, false
	}
	return mem.HostElements(t.Extent(), n, buf.plus(t.Lb()).bytes(n*t.Extent())), true
}

// operand returns n elements that o combines.
func (p *plan) operand(buf Addr, n int, t *Datatype, o *Op) comm.Buffer {
	b, ok := o.elements(buf, n, t)
	if !ok {
		room := make([]byte, n*t.Extent())
		p.outs = append(p.outs, departure{t: t, buf: buf, n: n, room: room, spread: true})
		b = mem.HostElements(t.Extent(), n, room)
	}
	return b
}

// result returns where n combined elements go.
func (p *plan) result(buf Addr, n int, t *Datatype, o *Op) comm.Buffer {
	b, ok := o.elements(buf, n, t)
	if !ok {
		room := make([]byte, n*t.Extent())
		p.ins = append(p.ins, landing{t: t, buf: buf, n: n, room: room, spread: true})
		b = mem.HostElements(t.Extent(), n, room)
	}
	return b
}

// source returns where operands are that may be in the place of results.
func source(sendbuf, recvbuf Addr) Addr {
	if sendbuf == inPlace {
		return recvbuf
	}
	return sendbuf
}

func (p *plan) Reduce(sendbuf, recvbuf Addr, n int, t *Datatype, o *Op, root int, c *Comm) error {
	isRoot, err := p.checkRoot(root)
	if err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.reduce(p, sendbuf, recvbuf, n, t, o, root)
	}
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	var recv comm.Buffer
	if isRoot {
		recv = p.result(recvbuf, n, t, o)
	}
	p.o.Reduce(root, p.operand(source(sendbuf, recvbuf), n, t, o), recv, o.combination(t))
	return nil
}

func (p *plan) Allreduce(sendbuf, recvbuf Addr, n int, t *Datatype, o *Op, c *Comm) error {
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.allreduce(p, sendbuf, recvbuf, n, t, o)
	}
	p.o.Allreduce(p.operand(source(sendbuf, recvbuf), n, t, o), p.result(recvbuf, n, t, o), o.combination(t))
	return nil
}

func (p *plan) ReduceScatter(sendbuf, recvbuf Addr, counts Array, t *Datatype, o *Op, c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	size, _ := CommSize(c)
	ns, total := counts.list(size), 0
	for i, n := range ns {
		if n < 0 {
			return wrong(errCount, "count %d is %d: want 0 or more", i, n)
		}
		total += n
	}
	if err := p.checkReduction(total, t, o); err != nil {
		return err
	}
	if c.inter != nil {
		return c.inter.reduceScatter(p, sendbuf, recvbuf, ns, total, t, o)
	}
	send := p.operand(source(sendbuf, recvbuf), total, t, o)
	p.o.ReduceScatter(send, p.result(recvbuf, ns[p.rank()], t, o), ns, o.combination(t))
	return nil
}

func (p *plan) ReduceScatterBlock(sendbuf, recvbuf Addr, n int, t *Datatype, o *Op, c *Comm) error {
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	if c.inter != nil {
		ns := make([]int, c.inter.local.Size())
		for i := range ns {
			ns[i] = n
		}
		return c.inter.reduceScatter(p, sendbuf, recvbuf, ns, n*len(ns), t, o)
	}
	send := p.operand(source(sendbuf, recvbuf), n*p.size(), t, o)
	p.o.ReduceScatterBlock(send, p.result(recvbuf, n, t, o), o.combination(t))
	return nil
}

func (p *plan) Scan(sendbuf, recvbuf Addr, n int, t *Datatype, o *Op, c *Comm) error {
	if err := p.checkScan(n, t, o, c); err != nil {
		return err
	}
	p.o.Scan(p.operand(source(sendbuf, recvbuf), n, t, o), p.result(recvbuf, n, t, o), o.combination(t))
	return nil
}

func (p *plan) Exscan(sendbuf, recvbuf Addr, n int, t *Datatype, o *Op, c *Comm) error {
	if err := p.checkScan(n, t, o, c); err != nil {
		return err
	}
	send := p.operand(source(sendbuf, recvbuf), n, t, o)
	if p.rank() == 0 { // recvbuf means nothing there
		p.o.Exscan(send, send, o.combination(t))
		return nil
	}
	p.o.Exscan(send, p.result(recvbuf, n, t, o), o.combination(t))
	return nil
}

func (p *plan) checkScan(n int, t *Datatype, o *Op, c *Comm) error {
	if err := checkIntra(c); err != nil {
		return err
	}
	return p.checkReduction(n, t, o)
}
