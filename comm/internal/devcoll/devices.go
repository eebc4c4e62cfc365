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
	"slices"

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
	heard  []uint64     // where the members have their buffers
	srcs   []mem.Buffer // by member
	blocks call.Scratch
}

type state uint8

const (
	untried state = iota
	usable
	useless
)

// What a member tells of its buffers, if not the digest of a device's identity.
const (
	inHost    = 0
	elsewhere = 1
)

// New returns the Comm of a Team, with arenas of size bytes. tell is told, during a Meet, why there
// are none.
func New(team *shmsync.Team, size int, tell func(error)) *Comm {
	return &Comm{team: team, ask: size, tell: tell, heard: make([]uint64, team.Size()), srcs: make([]mem.Buffer, team.Size())}
}

// Meet is the beginning of a collective, after the Team's Begin, if buffers of some members may
// be in devices' memory. What this one sends lies in send, and what it receives in
// recv, both of which may be empty. It reports whether some of that is in the memory of
// a device, and whether Run can do collectives of these buffers, which it is not
// asked unless they suit it. All members find the same.
func (c *Comm) Meet(send, recv mem.Buffer, suits bool) (some, reach bool, err error) {
	at, word := c.place(send, recv)
	if word != inHost && !suits {
		word = elsewhere
	}
	var mine [8]byte
	putWord(mine[:], word)
	s, err := c.team.Exchange(mine[:], true)
	if err != nil {
		return false, false, err
	}
	for j := range c.heard {
		c.heard[j] = word64(c.team.Payload(j, s, 0, len(mine)))
	}
	some = slices.ContainsFunc(c.heard, func(word uint64) bool { return word != inHost })
	if slices.Contains(c.heard, inHost) || slices.Contains(c.heard, elsewhere) {
		return some, false, nil
	}
	if c.state == untried {
		if err := c.setUp(at); err != nil {
			return some, false, err
		}
	}
	return some, c.state == usable && slices.Equal(c.heard, c.words), nil
}

// place returns where this member has its buffers, and what it tells of that.
func (c *Comm) place(send, recv mem.Buffer) (at mem.Accelerator, word uint64) {
	if send.Len() == 0 {
		send = recv
	}
	if recv.Len() == 0 {
		recv = send
	}
	if send.Len() == 0 && c.state == usable {
		return c.space, c.words[c.team.Me()] // nothing is anywhere
	}
	at, ok := send.Space().(mem.Accelerator)
	switch {
	case send.IsHost() && recv.IsHost():
		return nil, inHost
	case !ok || c.ask == 0 || send.Space() != recv.Space() || c.space != nil && c.space != at:
		return nil, elsewhere
	}
	h := fnv.New64a()
	h.Write([]byte(at.Identity()))
	return at, h.Sum64() | 2
}

// Run does o, of buffers that a Meet of all members has found that it can.
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
