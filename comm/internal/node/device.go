package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Devices does the collectives of a Room whose members all have their buffers in
// the memory of devices: one that they share, or several that reach each other.
// What is moved never comes to the host, which only keeps the order.
//
// # Arenas
//
// The processor cannot put what others should see into a ring. In its place each
// member has an arena, memory of its device that all others have imported, in slots
// which the payloads of steps go around. Only its owner writes to it. Arenas are made
// for the first collective that wants them, are of the devices of that collective,
// and stay until the communicator is closed everywhere: a device must not free what
// another process still sees. The way is proven before it is used: each member stores
// numbers of chance in its arena, and the device of every other has to see them there,
// in a copy and in a kernel (prove). If one cannot make, export, import or see, all are
// told, and the buffers of this communicator go through host memory for good.
//
// # Steps
//
// A collective is the flow that it is in host memory, or for allreduce a share of its
// own: only the medium differs. A step is a chunk as long as a slot, and has three
// movements, each on a queue of the device of its own:
//
//	fill    a member copies into its slot what the others will read
//	reduce  of an allreduce: the lowest member on each device combines its share of
//	        the chunk, read from the slots of all, into its own slot. So one that
//	        several share does it in one launch, and of several each does its part
//	take    a member copies, or combines, from the others' slots into its buffer
//
// In a round a member starts the first movement of one step, the next of the step
// before and the last of the one before that, waits until its device has done them,
// and then stores the words of the Room that tell the others. So movements of
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
type Devices struct {
	room *Room
	ask  int         // bytes of an arena, 0 for none
	tell func(error) // is told why there are no arenas

	send, recv mem.Buffer // of the collective under way
	heard      []uint64   // where the members have their buffers

	state   deviceState
	words   []uint64 // heard, when arenas were made
	space   mem.Accelerator
	arenas  []mem.Buffer // of the members, as space sees them
	slot    int          // bytes
	workers []int        // the lowest member on each device
	queues  [movements]mem.Queue
	busy    [movements]bool
}

type deviceState uint8

const (
	untried deviceState = iota
	usable
	useless
)

// The movements of a step.
const (
	filling = iota
	reducing
	taking
	movements
)

const (
	slots = 4
	// slotLeast lets a piece for each of the most members a room can have begin
	// where kernels like it.
	slotLeast = path.MaxShared * deviceLine
	// deviceLine is what addresses in slots are multiples of.
	deviceLine = 256
	// offerSize is the size of what a member tells of its arena.
	offerSize = 512
)

// What a member tells of its buffers, if not the digest of a device's identity.
const (
	inHost    = 0
	elsewhere = 1
)

// Devices makes the Room able to Meet, with arenas of size bytes. tell is told, during
// a Meet, why there are none.
func (r *Room) Devices(size int, tell func(error)) *Devices {
	d := &r.devices
	d.room, d.ask, d.tell, d.heard = r, size, tell, make([]uint64, r.size())
	return d
}

// Meet is the beginning of a collective, after Begin, if buffers of some members may
// be in devices' memory. What this one sends lies in send, and what it receives in
// recv, both of which may be empty. It reports whether some of that is in the memory of
// a device, and whether Devices can do collectives of these buffers, which it is not
// asked unless they suit it. All members find the same.
func (d *Devices) Meet(send, recv mem.Buffer, suits bool) (some, reach bool, err error) {
	at, word := d.place(send, recv)
	if word != inHost && !suits {
		word = elsewhere
	}
	err = d.room.tellAll(8, true, func(b []byte) { putWord(b, word) }, func(j int, b []byte) { d.heard[j] = word64(b) })
	some = slices.ContainsFunc(d.heard, func(word uint64) bool { return word != inHost })
	if err != nil || slices.Contains(d.heard, inHost) || slices.Contains(d.heard, elsewhere) {
		return some, false, err
	}
	if d.state == untried {
		if err := d.furnish(at); err != nil {
			return some, false, err
		}
	}
	return some, d.state == usable && slices.Equal(d.heard, d.words), nil
}

// Run does o on devices, with what this member sends in send and what it receives in recv: what
// a Meet of all members has found that they can.
func (d *Devices) Run(o *call.Call, send, recv mem.Buffer) error {
	d.send, d.recv = send, recv
	if o.Kind == call.Allreduce {
		return d.allreduce(o.Op)
	}
	var f flow
	if err := d.room.flowOf(o, &f); err != nil {
		return err
	}
	return d.run(&f)
}

// place returns where this member has its buffers, and what it tells of that.
func (d *Devices) place(send, recv mem.Buffer) (at mem.Accelerator, word uint64) {
	if send.Len() == 0 {
		send = recv
	}
	if recv.Len() == 0 {
		recv = send
	}
	if send.Len() == 0 && d.state == usable {
		return d.space, d.words[d.room.me] // nothing is anywhere
	}
	at, ok := send.Space().(mem.Accelerator)
	switch {
	case send.IsHost() && recv.IsHost():
		return nil, inHost
	case !ok || d.ask == 0 || send.Space() != recv.Space() || d.space != nil && d.space != at:
		return nil, elsewhere
	}
	h := fnv.New64a()
	h.Write([]byte(at.Identity()))
	return at, h.Sum64() | 2
}

// tellAll is a step in which every member tells n bytes, which say writes, and hear is
// given those of all. first is for a collective's first step.
func (r *Room) tellAll(n int, first bool, say func(b []byte), hear func(member int, b []byte)) error {
	r.step++
	s := r.step
	r.lay(s, n, false)
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	if h.call.A = 0; first {
		r.sign(h)
	}
	say(r.payload(r.me, s, 0, n))
	r.publish(h, s)
	if err := r.assemble(s); err != nil {
		return err
	}
	for j := range r.parts {
		switch {
		case j == r.me:
		case first:
			_, err = r.meet(j, s)
		default:
			err = r.await(&r.head(j, s).step, s, j)
		}
		if err != nil {
			return err
		}
		hear(j, r.payload(j, s, 0, n))
	}
	r.free = s - 1 // all have begun this step: they have read what was before
	return nil
}

func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
func word64(b []byte) uint64     { return binary.NativeEndian.Uint64(b) }

// An offer is what a member tells of its arena.
type offer struct {
	size   uint64 // 0: there is none
	nonce  uint64 // its evidence is at its beginning
	handle []byte
}

func (o *offer) encode(b []byte) {
	putWord(b, o.size)
	putWord(b[8:], o.nonce)
	putWord(b[16:], uint64(len(o.handle)))
	copy(b[24:], o.handle)
}

func decodeOffer(b []byte) offer {
	n := min(word64(b[16:]), offerSize-24)
	return offer{word64(b), word64(b[8:]), slices.Clone(b[24 : 24+n])}
}

// furnish makes the arenas, with all members.
func (d *Devices) furnish(at mem.Accelerator) error {
	r := d.room
	d.space, d.arenas, d.words = at, make([]mem.Buffer, r.size()), slices.Clone(d.heard)
	mine, why := d.offer()
	offers := make([]offer, r.size())
	if err := r.tellAll(offerSize, false, mine.encode, func(j int, b []byte) { offers[j] = decodeOffer(b) }); err != nil {
		return err
	}
	if why == nil {
		why = d.accept(offers)
	}
	all := true
	say := func(b []byte) {
		if b[0] = 1; why != nil {
			b[0] = 0
		}
	}
	if err := r.tellAll(1, false, say, func(_ int, b []byte) { all = all && b[0] == 1 }); err != nil {
		return err
	}
	if all {
		d.state, d.workers = usable, nil
		for j, w := range d.words {
			if slices.Index(d.words, w) == j {
				d.workers = append(d.workers, j)
			}
		}
		return nil
	}
	d.state = useless // what there is stays: to free it waits for all of the device
	if why == nil {
		why = errors.New("another rank cannot")
	}
	d.tell(why)
	return nil
}

// offer makes this member's arena and queues.
func (d *Devices) offer() (o offer, err error) {
	if d.ask < slots*slotLeast {
		return o, fmt.Errorf("an arena of %d bytes: want %d at least", d.ask, slots*slotLeast)
	}
	arena, err := d.space.Alloc(mem.U8, d.ask)
	if err != nil {
		return o, err
	}
	d.arenas[d.room.me] = arena
	for i := range d.queues {
		if d.queues[i], err = d.space.NewQueue(); err != nil {
			return o, err
		}
	}
	nonce := rand.Uint64()
	if err := d.space.Copy(arena.Slice(0, evidenceSize), mem.Bytes(evidence(nonce))); err != nil {
		return o, err
	}
	handle, err := d.space.Export(arena)
	if err == nil && len(handle) > offerSize-24 {
		err = fmt.Errorf("a handle of %d bytes: want %d at most", len(handle), offerSize-24)
	}
	if err != nil {
		return o, err
	}
	return offer{uint64(d.ask), nonce, handle}, nil
}

// accept imports the others' arenas, and proves that they are seen.
func (d *Devices) accept(offers []offer) error {
	size := d.ask
	for j, o := range offers {
		if o.size == 0 {
			return fmt.Errorf("rank %d has no memory to share", j)
		}
		size = min(size, int(o.size))
	}
	d.slot = size / slots &^ (deviceLine - 1)
	for j, o := range offers {
		if j == d.room.me {
			continue
		}
		b, err := d.space.Import(o.handle, mem.U8, size)
		if err != nil {
			return fmt.Errorf("memory of rank %d: %w", j, err)
		}
		d.arenas[j] = b
		if err := d.prove(j, offers); err != nil {
			return fmt.Errorf("memory of rank %d: %w", j, err)
		}
	}
	return nil
}

// release lets go of what belongs to others, and of the queues.
func (d *Devices) release() {
	for i, q := range d.queues {
		if q != nil {
			q.Close() // an error is the device's, which has told it before
			d.queues[i] = nil
		}
	}
	for j, b := range d.arenas {
		if j != d.room.me && b.Len() > 0 {
			d.space.Free(b)
			d.arenas[j] = mem.Buffer{}
		}
	}
}

// free frees the own arena, which nobody else sees any more.
func (d *Devices) free() {
	if len(d.arenas) > 0 && d.arenas[d.room.me].Len() > 0 {
		d.space.Free(d.arenas[d.room.me])
	}
	d.arenas = nil
}

// Close ends Devices. It returns what frees the own arena, for when no other member
// is in the room any more. No collective may be under way, nor follow.
func (d *Devices) Close() (free func()) {
	d.release()
	return d.free
}
