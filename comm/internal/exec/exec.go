// Package exec carries collectives out, each along its Path: in shared memory, in a hierarchy of
// hosts, by messages, on devices, by NCCL, or staged through pinned memory. It chooses nothing.
// Who calls it has given the call its turn and its number.
package exec

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/devcoll"
	"gompi/comm/internal/engine"
	"gompi/comm/internal/hier"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmcoll"
	"gompi/comm/internal/staging"
)

// An Exec carries out the collectives of one communicator, one at a time.
type Exec struct {
	Rank, Size int
	Paths      *path.Selector
	Round      *engine.Round // messages
	Waits      Waiter        // in the midst of a collective
	Room       *shmcoll.Comm // of all ranks, nil if they share no memory
	Hier       *hier.Comm    // nil if there is none
	Devices    *devcoll.Comm // of Room, or of Hier's, nil if there is no room or no rank has any
	NCCL       *NCCL         // nil if it is not wanted
	Staging    *staging.Pool

	metDevices bool     // devices of hosts have been set up, or found not to serve
	told       []uint64 // what ranks have told of where their buffers are, by rank
}

// A Waiter waits in the midst of a collective.
type Waiter interface {
	// Attend returns when done says so, which it asks again and again.
	Attend(done func() (bool, error)) error
	// DisagreeOn breaks the communicator: a rank sends so many bytes where this one
	// expects so many.
	DisagreeOn(rank, mine, theirs int) error
}

// Do does o as its Path says.
func (x *Exec) Do(o *call.Call) (err error) {
	p := x.Paths.For(o)
	if p.Via == path.Shm && o.IsHost() {
		return x.Room.Run(p, o)
	}
	if p.Ask >= path.AllOnDevices {
		if p, err = x.resolve(p, o); err != nil {
			return err
		}
	}
	switch p.Via {
	case path.NCCL:
		return x.NCCL.do(o)
	case path.Devices:
		return x.Devices.Run(o)
	case path.Staged:
		if p.Algorithm == path.MultiLeader {
			return x.pipeShares(p, o)
		}
		return x.pipe(p, o)
	}
	return x.runStaged(p, o)
}

// runOnHost does o, all of which is in host memory.
func (x *Exec) runOnHost(o *call.Call) error { return x.run(x.Paths.For(o).OnHost(), o) }

// run does o, all of which is in host memory, by p.
func (x *Exec) run(p *path.Path, o *call.Call) error {
	switch p.Via {
	case path.Shm:
		return x.Room.Run(p, o)
	case path.Hier:
		return x.Hier.Run(p, o)
	}
	return coll.Run(x.Round, p.Algorithm, o)
}
