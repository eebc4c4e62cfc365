package exec

import (
	"slices"

	"gompi/comm/internal/call"
	"gompi/comm/internal/devcoll"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Where the ranks' buffers lie, and which Path follows from it.

// A rank tells two words of its buffers: one about NCCL, one about the devices of its host.
const (
	forNCCL = iota
	forDevices
	words
)

// resolve has all ranks tell where their buffers of o lie, and returns the Path to follow. Where
// NCCL or the hosts' devices are to serve for the first time, it sets them up. If that fails on a
// rank, all take another Path.
func (x *Exec) resolve(p *path.Path, o *call.Call) (*path.Path, error) {
	w, err := x.whereBuffersAre(p, o)
	if err == nil && w.Own && x.NCCL.group == nil {
		err = x.NCCL.setUp(o, x.about(forNCCL, nil))
		w.Own = x.NCCL.group != nil
	}
	if err == nil && !x.devicesTried && p.Resolve(w).NeedsDevices() {
		w.All, err = x.setUpDevices(o)
	}
	return p.Resolve(w), err
}

// whereBuffersAre has all ranks tell where their buffers of o lie, as far as p asks. Every rank
// returns the same.
func (x *Exec) whereBuffersAre(p *path.Path, o *call.Call) (w path.Where, err error) {
	if x.told == nil {
		x.told = make([]uint64, words*x.Size)
	}
	mine := x.told[words*x.Rank:][:words]
	mine[forNCCL] = 0
	if p.Ask == path.OwnDevices {
		mine[forNCCL], _ = x.NCCL.place(o)
	}
	mine[forDevices] = x.place(o, p.MayNeedDevices())
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
	w.Apart = w.All && x.Shared != nil && x.apart()
	return w, nil
}

// apart reports whether the ranks, of one host, have told of different devices.
func (x *Exec) apart() bool {
	for i := forDevices; i < len(x.told); i += words {
		for j := forDevices; j < i; j += words {
			if x.told[i] == x.told[j] {
				return false
			}
		}
	}
	return true
}

// place returns this rank's word about the devices of its host. suits says that these may serve.
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

// about returns what all ranks, or the given ones, have told about NCCL or their host's devices.
func (x *Exec) about(thing int, ranks []int) (told []uint64) {
	for r := range x.Size {
		if ranks == nil || slices.Contains(ranks, r) {
			told = append(told, x.told[words*r+thing])
		}
	}
	return told
}

// setUpDevices sets up the devices of each host, which have all buffers of o. It reports whether
// all hosts have succeeded.
func (x *Exec) setUpDevices(o *call.Call) (can bool, err error) {
	x.devicesTried = true
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
