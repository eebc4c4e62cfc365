// Package devcoll does collectives on the GPUs of one host: those of ranks that share memory and
// whose buffers are all in the memory of devices, of one that they share, or of several that reach
// each other. Payload never comes to the host, which only orders the steps, through package
// shmsync.
//
// # Arenas
//
// An arena is a member's bounce buffer (arena.go): memory of its device that all other members have
// imported, as a ring of slots for the payloads of steps. Only its owner writes to it. The first
// collective that needs arenas makes them, on the devices of its buffers. They stay until all
// members have closed the communicator: a device must not free memory that another process has
// imported.
//
// Members test the arenas before they use them (proof.go): each stores random bytes in its arena,
// and the device of every other member has to read them, by a copy and by a kernel. If one member
// cannot make, export, import or read an arena, all are told, and the buffers of this communicator
// go through host memory for good.
//
// # Steps
//
// A collective is a call.Transfer, or an allreduce (steps.go). A step is a chunk as long as a slot,
// and has three movements, each on its own stream of the device:
//
//	fill    a member copies into its slot what the others will read
//	reduce  of an allreduce: the lowest member on each device combines its share of
//	        the chunk, read from the slots of all, into its own slot. So one that
//	        several share does it in one launch, and of several each does its part
//	take    a member copies, or combines, from the others' slots into its buffer
//
// In a round a member starts the first movement of one step, the second of the step before, and the
// last of the one before that. It waits until its device has done them, and then stores the flags
// of shmsync. So movements of different chunks overlap, and no device waits for another. The
// processors wait, asleep if it takes long, and a rank that waits takes no time from others on its
// device.
//
// The result of a device's work is visible to all devices when the host has seen its end. A flag is
// stored after that, and loaded before the work that depends on it is given to the next device. A
// slot is filled again four steps later: three steps are under way, and the flags of a fourth may
// be.
//
// This ran on one H200 that up to 8 ranks share, never on several GPUs. The length of chunks, and
// whether a kernel that reads another device's memory beats a copy, are guesses.
package devcoll

import (
	"hash/fnv"

	"gompi/comm/internal/call"
	"gompi/comm/internal/shmsync"
	"gompi/internal/mem"
)

// A Comm does collectives on the devices of the members of a Team, within the Team's collectives
// and one at a time. It is not for concurrent use.
type Comm struct {
	team *shmsync.Team
	ask  int         // bytes of an arena, 0 for none
	tell func(error) // is told why there are no arenas

	state   state
	words   []uint64 // where the members had their buffers when arenas were made
	space   mem.Accelerator
	arenas  []mem.Buffer // of the members, as space sees them
	slot    int          // bytes
	workers []int        // the lowest member on each device
	streams [movements]mem.Stream
	busy    [movements]bool

	// Scratch, kept to save allocations.
	srcs   []mem.Buffer // by member
	blocks call.Scratch
}

type state uint8

const (
	untried state = iota
	usable
	useless
)

// What a member tells of its buffers, if not the digest of a device's identity. Alone is for a rank
// that is alone on its host.
const (
	InHost = iota
	Elsewhere
	Alone
)

// New returns the Comm of a Team, with arenas of size bytes. SetUp calls tell with the reason if
// there can be none.
func New(team *shmsync.Team, size int, tell func(error)) *Comm {
	return &Comm{team: team, ask: size, tell: tell, srcs: make([]mem.Buffer, team.Size())}
}

// Place returns what this member tells of its buffers of a collective: the digest of their device,
// or InHost or Elsewhere. Either buffer may be empty. If all members tell digests, Run can do the
// collective, the first one after SetUp.
func (c *Comm) Place(send, recv mem.Buffer) uint64 {
	if send.Len() == 0 {
		send = recv
	}
	if recv.Len() == 0 {
		recv = send
	}
	if send.Len() == 0 && c.state == usable {
		return c.words[c.team.Me()] // empty buffers are anywhere
	}
	at, ok := send.Space().(mem.Accelerator)
	switch {
	case send.IsHost() && recv.IsHost():
		return InHost
	case !ok || c.ask == 0 || c.state == useless || send.Space() != recv.Space() || c.space != nil && c.space != at:
		return Elsewhere
	}
	h := fnv.New64a()
	h.Write([]byte(at.Identity()))
	return h.Sum64() | Alone
}

// Run runs o, for which all members have told digests.
func (c *Comm) Run(o *call.Call) (err error) {
	defer c.leave(&err)
	if o.Kind == call.Allreduce {
		return c.allreduce(o)
	}
	var t transfer
	o.Transfer(&t.Transfer, c.team.Me(), c.team.Size(), false, &c.blocks)
	if o.Kind.LocalCounts() {
		sent, expected, longest := t.Lengths()
		if t.Longest, err = c.team.AgreeLengths(sent, expected, longest, t.Lo); err != nil {
			return err
		}
	}
	return c.run(&t)
}

// leave ends the movements of a collective. When it returns, the device touches the collective's
// buffers no more.
func (c *Comm) leave(err *error) {
	if *err != nil {
		for _, q := range c.streams {
			q.Sync() // its error would be another's consequence
		}
		c.busy = [movements]bool{}
	}
}
