// Package exec carries out the collectives of a communicator, one at a time (queue.go). Package
// path chooses the Path of each; exec follows it and chooses nothing:
//
//	Via        is done by
//	Shm        package shmcoll: all ranks on one host, through memory that they share
//	Hier       package hier: shared memory inside each host, messages between hosts
//	Messages   package coll over a round.Round
//	NCCL       NVIDIA's library, in its own stream (nccl.go)
//	Staged     one of the first three, in chunks through pinned host memory (pipeline.go)
//
// The first three take host memory: exec copies a buffer in device memory whole to host memory
// before, and back after (staged.go). Only the ranks themselves know where their buffers lie. If
// the Path depends on that, its Ask says so: the ranks exchange their answers by a collective of a
// few words, and path.Resolve returns the Path to follow (where.go).
package exec

import (
	"gompi/internal/core/call"
	"gompi/internal/core/coll"
	"gompi/internal/core/hier"
	"gompi/internal/core/path"
	"gompi/internal/core/round"
	"gompi/internal/core/shmcoll"
)

// An Exec carries out the collectives of a communicator, one at a time.
type Exec struct {
	Rank, Size int
	Paths      *path.Selector
	Round      *round.Round
	Shared     *shmcoll.Collectives // of all ranks, nil if they share no memory
	Hier       *hier.Collectives    // nil if there is none
	NCCL       *NCCL                // nil if not wanted
	Staging    *Pool

	placement []uint64 // the words of where.go, by rank
}

// Do runs o along its Path.
func (x *Exec) Do(o *call.Call) (err error) {
	p := x.Paths.For(o)
	if p.Via == path.Shm && o.IsHost() {
		return x.Shared.Run(p, o)
	}
	if p.Ask.OfDevices() {
		if p, err = x.resolve(p, o); err != nil {
			return err
		}
	}
	switch p.Via {
	case path.NCCL:
		return x.NCCL.do(o)
	case path.Staged:
		return x.runPipelined(p, o)
	}
	return x.runStaged(p, o)
}

// runOnHost runs o, whose buffers are in host memory, along the Path of host memory.
func (x *Exec) runOnHost(o *call.Call) error { return x.run(x.Paths.For(o).OnHost(), o) }

// run runs o, whose buffers are in host memory, along p.
func (x *Exec) run(p *path.Path, o *call.Call) error {
	switch p.Via {
	case path.Shm:
		return x.Shared.Run(p, o)
	case path.Hier:
		return x.Hier.Run(p, o)
	}
	return coll.Run(x.Round, p.Algorithm, o)
}
