package exec

import (
	"slices"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Collectives of device memory that each rank stages whole, without asking the others.

// runStaged runs o along p, with a stage in the place of each buffer that is not in host memory.
func (x *Exec) runStaged(p *path.Path, o *call.Call) error {
	switch {
	case o.IsHost():
		return x.run(p, o)
	case o.Kind == calls.Alltoallw:
		return x.runEachStaged(p, o)
	case x.Size == 1 && copies(o.Recv, o.Send):
		return x.run(p, o)
	}
	on := *o
	if from, to := o.Operands(x.Rank); p.Via == path.Messages && x.perMessage(o, from, to) {
		on.Send, on.Recv = from, to
		return x.run(p, &on)
	}
	send, recv := o.Roles(x.Rank)
	if send == calls.Unused {
		on.Send = mem.Buffer{}
	}
	if recv == calls.Unused {
		on.Recv = mem.Buffer{}
	}
	stages, err := x.operands(&on, recv)
	defer x.Staging.End(stages[0])
	defer x.Staging.End(stages[1])
	if err != nil {
		return err
	}
	if err := x.run(p, &on); err != nil {
		return err
	}
	if !recv.Changes() || o.Recv.IsHost() {
		return nil
	}
	return mem.Copy(o.Recv, on.Recv)
}

// runEachStaged is runStaged of an alltoallw, which has a buffer for each rank.
func (x *Exec) runEachStaged(p *path.Path, o *call.Call) (err error) {
	on := *o
	each := &on.Each
	each.Send, each.Recv = slices.Clone(each.Send), slices.Clone(each.Recv)
	var stages []Stage // of received data
	for i, b := range each.Send {
		in := each.Recv[i]
		out, err := x.Staging.Load(b)
		if err != nil {
			return err
		}
		defer x.Staging.End(out)
		each.Send[i] = out.Host
		if !mem.Same(b, in) {
			if out, err = x.Staging.Get(in); err != nil {
				return err
			}
			defer x.Staging.End(out)
		}
		each.Recv[i] = out.Host
		stages = append(stages, out)
	}
	if err := x.run(p, &on); err != nil {
		return err
	}
	for _, s := range stages {
		if err := s.Store(s.Of.Size()); err != nil {
			return err
		}
	}
	return nil
}

// copies reports whether a Space can copy from src to dst. The collective of a communicator of one
// rank is only this copy.
func copies(dst, src mem.Buffer) bool {
	return src.IsHost() || dst.IsHost() || src.Space() == dst.Space()
}

// operands replaces on's buffers by stages, and returns the stages to end. If a buffer is a part of
// the other, its stage is the same part of the other's stage.
func (x *Exec) operands(on *call.Call, recv calls.Role) (stages [2]Stage, err error) {
	long, short := &on.Recv, &on.Send
	if long.Len() < short.Len() {
		long, short = short, long
	}
	if mem.Overlap(*long, *short) {
		i := int(short.Addr()-long.Addr()) / long.ElemSize()
		stages[0], err = x.Staging.Load(*long)
		if err == nil {
			*short = stages[0].Host.Slice(i, i+short.Len())
			*long = stages[0].Host
		}
		return stages, err
	}
	if stages[0], err = x.Staging.Load(on.Send); err != nil {
		return stages, err
	}
	fill := x.Staging.Load
	if recv == calls.Written {
		fill = x.Staging.Get
	}
	if stages[1], err = fill(on.Recv); err != nil {
		return stages, err
	}
	on.Send, on.Recv = stages[0].Host, stages[1].Host
	return stages, nil
}
