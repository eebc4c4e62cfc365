package devcoll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// How members make arenas, and import those of others.

const (
	slots = 4
	// slotLeast is the least size of a slot: even with the most members, each member's part of it
	// begins at a multiple of deviceLine.
	slotLeast = path.MaxShared * deviceLine
	// deviceLine is what addresses in slots are multiples of.
	deviceLine = 256
	// offerSize is the size of an encoded offer.
	offerSize = 512
)

func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
func word64(b []byte) uint64     { return binary.NativeEndian.Uint64(b) }

// An offer is what a member tells the others of its arena.
type offer struct {
	size   uint64 // 0: there is none
	nonce  uint64 // its evidence is at its beginning
	handle []byte
}

func (o *offer) encode() []byte {
	b := make([]byte, offerSize)
	putWord(b, o.size)
	putWord(b[8:], o.nonce)
	putWord(b[16:], uint64(len(o.handle)))
	copy(b[24:], o.handle)
	return b
}

func decodeOffer(b []byte) offer {
	n := min(word64(b[16:]), offerSize-24)
	return offer{word64(b), word64(b[8:]), slices.Clone(b[24 : 24+n])}
}

// SetUp makes the arenas on the devices of the members' buffers. All members call it; words are
// what they have told in Place. It reports whether Run can do collectives, the same on all members.
func (c *Comm) SetUp(send, recv mem.Buffer, words []uint64) (can bool, err error) {
	if send.Len() == 0 {
		send = recv
	}
	c.space, c.arenas, c.words = send.Space().(mem.Accelerator), make([]mem.Buffer, c.team.Size()), words
	mine, why := c.offer()
	s, err := c.team.Exchange(mine.encode(), false)
	if err != nil {
		return false, err
	}
	offers := make([]offer, c.team.Size())
	for j := range offers {
		offers[j] = decodeOffer(c.team.Payload(j, s, 0, offerSize))
	}
	if why == nil {
		why = c.accept(offers)
	}
	can, err = c.allCan(why == nil)
	if err != nil {
		return false, err
	}
	if can {
		c.state, c.workers = usable, nil
		for j, w := range c.words {
			if slices.Index(c.words, w) == j {
				c.workers = append(c.workers, j)
			}
		}
		return true, nil
	}
	c.GiveUp() // what there is stays: to free it waits for all of the device
	if why == nil {
		why = errors.New("another rank cannot")
	}
	c.tell(why)
	return false, nil
}

// GiveUp ends the use of devices: they do no more collectives.
func (c *Comm) GiveUp() { c.state = useless }

// allCan exchanges whether a member can, and reports whether all can.
func (c *Comm) allCan(can bool) (bool, error) {
	mine := [1]byte{0}
	if can {
		mine[0] = 1
	}
	s, err := c.team.Exchange(mine[:], false)
	for j := range c.arenas {
		can = can && err == nil && c.team.Payload(j, s, 0, 1)[0] == 1
	}
	return can, err
}

// offer makes this member's arena and streams.
func (c *Comm) offer() (o offer, err error) {
	if c.ask < slots*slotLeast {
		return o, fmt.Errorf("an arena of %d bytes: want %d at least", c.ask, slots*slotLeast)
	}
	arena, err := c.space.Alloc(mem.U8, c.ask)
	if err != nil {
		return o, err
	}
	c.arenas[c.team.Me()] = arena
	for i := range c.streams {
		if c.streams[i], err = c.space.OpenStream(); err != nil {
			return o, err
		}
	}
	nonce := rand.Uint64()
	if err := c.space.Copy(arena.Slice(0, evidenceSize), mem.Bytes(evidence(nonce))); err != nil {
		return o, err
	}
	handle, err := c.space.Export(arena)
	if err == nil && len(handle) > offerSize-24 {
		err = fmt.Errorf("a handle of %d bytes: want %d at most", len(handle), offerSize-24)
	}
	if err != nil {
		return o, err
	}
	return offer{uint64(c.ask), nonce, handle}, nil
}

// accept imports the others' arenas, and tests that this member's device reads them.
func (c *Comm) accept(offers []offer) error {
	size := c.ask
	for j, o := range offers {
		if o.size == 0 {
			return fmt.Errorf("rank %d has no memory to share", j)
		}
		size = min(size, int(o.size))
	}
	c.slot = size / slots &^ (deviceLine - 1)
	for j, o := range offers {
		if j == c.team.Me() {
			continue
		}
		b, err := c.space.Import(o.handle, mem.U8, size)
		if err != nil {
			return fmt.Errorf("memory of rank %d: %w", j, err)
		}
		c.arenas[j] = b
		if err := c.prove(j, offers); err != nil {
			return fmt.Errorf("memory of rank %d: %w", j, err)
		}
	}
	return nil
}

// release closes the imported arenas and the streams.
func (c *Comm) release() {
	for i, q := range c.streams {
		if q != nil {
			q.Close() // an error is the device's, which has told it before
			c.streams[i] = nil
		}
	}
	for j, b := range c.arenas {
		if j != c.team.Me() && b.Len() > 0 {
			c.space.Free(b)
			c.arenas[j] = mem.Buffer{}
		}
	}
}

// free frees this member's arena, which no other member imports any more.
func (c *Comm) free() {
	if len(c.arenas) > 0 && c.arenas[c.team.Me()].Len() > 0 {
		c.space.Free(c.arenas[c.team.Me()])
	}
	c.arenas = nil
}

// Close ends c, in which no collective is under way or follows. It returns a function that frees
// this member's arena, to be called when all other members have left the Team.
func (c *Comm) Close() (free func()) {
	c.release()
	return c.free
}
