package exec

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Where the ranks' buffers lie, and which Path follows.

// A rank sends two words about its buffers: about NCCL, and whether any of them is on a device.
const (
	forNCCL = iota
	onDevice
	words
)

// resolve has all ranks exchange where their buffers of o lie, and returns the Path to follow.
// Where NCCL is to serve for the first time, resolve sets it up. If that fails on a rank, all
// take another Path.
func (x *Exec) resolve(p *path.Path, o *call.Call) (*path.Path, error) {
	w, err := x.whereBuffersAre(p, o)
	if err == nil && w.Own && x.NCCL.group == nil {
		err = x.NCCL.setUp(o, x.aboutNCCL())
		w.Own = x.NCCL.group != nil
	}
	return p.Resolve(w), err
}

// whereBuffersAre has all ranks exchange where their buffers of o lie. Every rank returns the same.
func (x *Exec) whereBuffersAre(p *path.Path, o *call.Call) (w path.Where, err error) {
	if x.placement == nil {
		x.placement = make([]uint64, words*x.Size)
	}
	mine := x.placement[words*x.Rank:][:words]
	clear(mine)
	if p.Ask == path.OwnDevices {
		mine[forNCCL], _ = x.NCCL.place(o)
	}
	if from, to := o.Operands(x.Rank); from.OnDevice() || to.OnDevice() {
		mine[onDevice] = 1
	}
	if err := x.runOnHost(new(call.Call).Allgather(mem.Of(mine), mem.Of(x.placement))); err != nil {
		return w, err
	}
	w.Own = p.Ask == path.OwnDevices
	for i := 0; i < len(x.placement); i += words {
		w.Own = w.Own && x.placement[i+forNCCL] != 0
		w.Any = w.Any || x.placement[i+onDevice] != 0
	}
	return w, nil
}

// aboutNCCL returns the words of all ranks about NCCL.
func (x *Exec) aboutNCCL() (all []uint64) {
	for i := forNCCL; i < len(x.placement); i += words {
		all = append(all, x.placement[i])
	}
	return all
}
