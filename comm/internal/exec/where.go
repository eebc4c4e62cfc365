package exec

import (
	"slices"

	"gompi/comm/internal/call"
	"gompi/comm/internal/devcoll"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Where buffers are, and what that means for the Path of a call.

// What a rank tells of its buffers is a word about NCCL, and one about the devices of its host.
const (
	forNCCL = iota
	forDevices
	words
)

// resolve returns the Path that is taken when all ranks have told where their buffers lie. If by
// that NCCL or the hosts' devices serve for the first time, they are set up, which may fail.
func (x *Exec) resolve(p *path.Path, o *call.Call) (*path.Path, error) {
	w, err := x.whereBuffersAre(p, o)
	if err == nil && w.Own && x.NCCL.group == nil {
		err = x.NCCL.meet(o, x.about(forNCCL, nil))
		w.Own = x.NCCL.group != nil
	}
	if err == nil && w.All && !w.Own && !x.metDevices {
		w.All, err = x.meetDevices(o)
	}
	return p.Resolve(w), err
}

// whereBuffersAre has all ranks tell where their buffers of o lie, as far as p asks.
func (x *Exec) whereBuffersAre(p *path.Path, o *call.Call) (w path.Where, err error) {
	if x.told == nil {
		x.told = make([]uint64, words*x.Size)
	}
	mine := x.told[words*x.Rank:][:words]
	mine[forNCCL] = 0
	if p.Ask == path.OwnDevices {
		mine[forNCCL], _ = x.NCCL.place(o)
	}
	mine[forDevices] = x.place(o, p.Asks(path.AllOnDevices))
	if err := x.runOnHost(new(call.Call).Allgather(mem.Of(mine), mem.Of(x.told))); err != nil {
		return w, err
	}
	w.Own, w.All = true, true
	for i := 0; i < len(x.told); i += words {
		at := x.told[i+forDevices]
		w.Own = w.Own && x.told[i+forNCCL] != 0
		w.All = w.All && at != devcoll.InHost && at != devcoll.Elsewhere
		w.Any = w.Any || at != devcoll.InHost
	}
	return w, nil
}

// place returns what this rank tells of its buffers about the devices of its host. suits says that
// these may serve.
func (x *Exec) place(o *call.Call, suits bool) uint64 {
	from, to := o.Operands(x.Rank)
	switch {
	case suits && x.Devices != nil:
		return x.Devices.Place(from, to)
	case from.IsHost() && to.IsHost():
		return devcoll.InHost
	case suits && from.Space() == to.Space():
		return devcoll.Alone
	}
	return devcoll.Elsewhere
}

// about returns what has been told about one thing: by all ranks, or by some.
func (x *Exec) about(thing int, ranks []int) (told []uint64) {
	for r := range x.Size {
		if ranks == nil || slices.Contains(ranks, r) {
			told = append(told, x.told[words*r+thing])
		}
	}
	return told
}

// meetDevices sets up the devices of each host, on which all buffers of o are. All hosts have to
// succeed.
func (x *Exec) meetDevices(o *call.Call) (can bool, err error) {
	x.metDevices = true
	all := []int32{1} // of a rank that is alone on its host, too
	if x.Devices != nil {
		var members []int
		if x.Hier != nil {
			members = x.Hier.Members()
		}
		from, to := o.Operands(x.Rank)
		if can, err = x.Devices.SetUp(from, to, x.about(forDevices, members)); err != nil {
			return false, err
		}
		if !can {
			all[0] = 0
		}
	}
	err = x.runOnHost(new(call.Call).Allreduce(mem.Of(all), mem.Of(all), call.Op{Kind: mem.Min}))
	if can = all[0] == 1; !can && x.Devices != nil {
		x.Devices.GiveUp()
	}
	return can && err == nil, err
}
