// Package devcoll does collectives on the GPUs of one host: a Comm does those of ranks that share
// memory, and have all their buffers in the memory of devices, one that they share, or several that
// reach each other. What is moved never comes to the host, which only keeps the order, through
// package shmsync.
//
// # Arenas
//
// The processor cannot put what others should see into a bounce buffer. In its place each
// member has an arena (arena.go), memory of its device that all others have imported, in slots
// which the payloads of steps go around. Only its owner writes to it. Arenas are made
// for the first collective that wants them, are of the devices of that collective,
// and stay until the communicator is closed everywhere: a device must not free what
// another process still sees. The way is proven before it is used (proof.go): each member stores
// numbers of chance in its arena, and the device of every other has to see them there,
// in a copy and in a kernel. If one cannot make, export, import or see, all are
// told, and the buffers of this communicator go through host memory for good.
//
// # Steps
//
// A collective is a call.Transfer, or an allreduce (steps.go). A step is a chunk as long as a slot,
// and has three movements, each on a queue of the device of its own:
//
//	fill    a member copies into its slot what the others will read
//	reduce  of an allreduce: the lowest member on each device combines its share of
//	        the chunk, read from the slots of all, into its own slot. So one that
//	        several share does it in one launch, and of several each does its part
//	take    a member copies, or combines, from the others' slots into its buffer
//
// In a round a member starts the first movement of one step, the next of the step
// before and the last of the one before that, waits until its device has done them,
// and then stores the words that tell the others. So movements of
// different chunks overlap, and no device ever waits for another: hosts do, asleep if
// it takes long, and ranks that share a device take no time from each other by waiting.
//
// A device's work is in its memory, for all who look there, when the host has seen its
// end; and the words are stored after that and loaded before the work that relies on
// them is given to the next device. A slot is filled anew four steps later: three are
// under way, and the words of a fourth may be.
//
// It is not proven on a GPU. How long chunks should be, from which length on arenas
// win, and whether a kernel that reads another device's memory beats a copy are guesses
// until one is at hand.
package devcoll

import (
	"hash/fnv"

	"gompi/comm/internal/call"
	"gompi/comm/internal/shmsync"
	"gompi/internal/mem"
)

// A Comm is the ranks of a communicator that share memory, as one of them sees them, and their
// devices. It does collectives one at a time, within those of its Team. Its methods are not for
// concurrent use.
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
	queues  [movements]mem.Queue
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
// that has no other on its host.
const (
	InHost = iota
	Elsewhere
	Alone
)

// New returns the Comm of a Team, with arenas of size bytes. tell is told, during SetUp, why
// there are none.
func New(team *shmsync.Team, size int, tell func(error)) *Comm {
	return &Comm{team: team, ask: size, tell: tell, srcs: make([]mem.Buffer, team.Size())}
}

// Place returns what this member tells of where its buffers of a collective are, both of which
// may be empty: the digest of a device that serves, else InHost or Elsewhere. Where all members tell
// digests, Run can do the collective, the first after SetUp.
func (c *Comm) Place(send, recv mem.Buffer) uint64 {
	if send.Len() == 0 {
		send = recv
	}
	if recv.Len() == 0 {
		recv = send
	}
	if send.Len() == 0 && c.state == usable {
		return c.words[c.team.Me()] // nothing is anywhere
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

// Run does o, of whose buffers all members have told digests.
func (c *Comm) Run(o *call.Call) (err error) {
	defer c.leave(&err)
	if o.Kind == call.Allreduce {
		return c.allreduce(o)
	}
	var t transfer
	o.Transfer(&t.Transfer, c.team.Me(), c.team.Size(), false, &c.blocks)
	if o.Kind.LocalCounts() {
		sent, expected := t.Lengths()
		if t.Longest, err = c.team.AgreeLengths(sent, expected, t.Lo, t.Size); err != nil {
			return err
		}
	}
	return c.run(&t)
}

// leave ends the movements of a collective: when it returns, the device does nothing with
// the collective's buffers any more.
func (c *Comm) leave(err *error) {
	if *err != nil {
		for _, q := range c.queues {
			q.Sync() // its error would be another's consequence
		}
		c.busy = [movements]bool{}
	}
}
