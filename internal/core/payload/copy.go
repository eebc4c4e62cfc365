package payload

import (
	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/transport"
)

// Payload in the memory of devices. Transports carry host memory, and the polling goroutine must
// not wait for a device. So the payload goes in chunks through pinned host memory: a message has a
// few such chunks, and a goroutine copies between them and the device while others are sent or
// received. The peer sees no difference. A receiver asks for as many bytes as its chunks hold, and
// for more whenever a chunk is stored. So every byte that arrives has its place, a slow device
// delays only the sender of that message, and pinned memory is bounded.

const (
	// StagingChunk is the bytes of a chunk, and of the longest message that is copied at once.
	// StagingChunk and copyDepth are guesses until a GPU has been measured.
	StagingChunk = 512 << 10
	// copyDepth is the most chunks of a message.
	copyDepth = 8
	// maxStagingChunks is the most chunks of all messages of a rank. A message that begins when
	// that many are lent gets a chunk nevertheless: others may wait for this message.
	maxStagingChunks = 64
)

// A Copy moves a message from a device to the transport, or back. Chunk i of the payload is in slot
// i modulo the number of slots. The lock guards the fields, but not the slots' content: a send's
// slot is the goroutine's until the chunk is loaded, a receive's from the chunk's arrival.
type Copy struct {
	m       *Move
	device  mem.Buffer
	sends   bool
	changed chan struct{} // wakes the goroutine: something has changed
	chunk   int           // bytes
	size    int           // of the message
	total   int           // bytes to be copied
	asked   int           // bytes that the receiver has asked for
	slots   []mem.Buffer
	want    int             // slots to be lent
	early   []byte          // the only slot, from the scratch pool, of an eager message
	copied  int             // chunks
	moved   int             // bytes that have arrived, or that the transport has been given
	until   int             // moved at the end of the frame that arrives
	lent    fifo.Queue[int] // chunks that the transport holds
	over    bool            // the message has ended
}

// ToDevice reports whether some of n bytes of a message go to memory the processor cannot access.
func (m *Move) ToDevice(n int) bool { return m.Buf.OnDevice() && n > 0 && m.Buf.Size() > 0 }

// load begins to copy the payload from the device.
func (m *Move) load() {
	c := m.newCopy(m.Buf.Size(), StagingChunk)
	c.sends, c.asked = true, m.asked
	c.start()
}

// store begins to copy the payload to the device. The sender waits for the CTS.
func (m *Move) store() { m.newCopy(m.Size, StagingChunk).start() }

// StoreEager begins to copy the payload of an eager message to the device: its first arrived
// bytes are in data, from Scratch, and the rest will follow there.
func (m *Move) StoreEager(data []byte, arrived int) {
	m.Stage = Filling
	c := m.newCopy(m.Size, max(len(data), 1))
	c.slots, c.early, c.moved, c.asked = []mem.Buffer{mem.Bytes(data)}, data, min(arrived, c.total), m.Size
	c.arrived()
	go c.run()
}

func (m *Move) newCopy(size, chunk int) *Copy {
	device := m.Buf.Raw()
	m.copy = &Copy{m: m, device: device, changed: make(chan struct{}, 1), chunk: chunk, size: size,
		total: min(size, device.Size())}
	m.owner.CopyBegins()
	return m.copy
}

// start starts c's goroutine, with slots to be lent.
func (c *Copy) start() {
	c.want = max(min(maxStagingChunks-c.m.mover.lent, copyDepth, c.chunks()), 1)
	c.m.mover.lent += c.want
	go c.run()
}

func (c *Copy) chunks() int { return (c.total + c.chunk - 1) / c.chunk }

// chunkAt returns chunk i of the payload, and the memory for this chunk.
func (c *Copy) chunkAt(i int) (part, slot mem.Buffer) {
	lo, hi := i*c.chunk, min((i+1)*c.chunk, c.total)
	return c.device.Slice(lo, hi), c.slots[i%len(c.slots)].Slice(0, hi-lo)
}

func (c *Copy) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// run copies until the message has been sent or stored, or has failed. run holds the lock except
// while copying or waiting.
func (c *Copy) run() {
	slots, err := c.alloc()
	lock := c.m.mover.lock
	lock.Lock()
	c.slots = slots
	for err == nil && !c.over {
		if c.advance(); c.done() {
			break
		}
		load, copies := c.next()
		lock.Exit()
		if copies {
			err = load()
		} else {
			<-c.changed
		}
		lock.Lock()
		if copies && err == nil {
			c.copied++
			c.m.loaded()
		}
	}
	c.end(err)
	lock.Exit()
}

// alloc returns the slots, and waits for them if necessary.
func (c *Copy) alloc() (slots []mem.Buffer, err error) {
	slots = c.slots
	for len(slots) < c.want && err == nil {
		var b mem.Buffer
		if b, err = c.m.mover.Lender.Lend(c.device.Space(), StagingChunk); err == nil {
			slots = append(slots, b)
		}
	}
	return slots, err
}

// done reports whether all has been stored, or has left.
func (c *Copy) done() bool {
	return c.copied == c.chunks() && (!c.sends || c.moved == c.total && c.lent.Len() == 0)
}

// next returns the copy that can be made now.
func (c *Copy) next() (copy func() error, ok bool) {
	i := c.copied
	if i == c.chunks() {
		return nil, false
	}
	if c.sends {
		held := c.given()
		if c.lent.Len() > 0 {
			held = c.lent.Front()
		}
		ok = i-held < len(c.slots)
	} else {
		end := min((i+1)*c.chunk, c.total)
		ok = c.moved >= end && c.m.mayStore(end)
	}
	if !ok {
		return nil, false
	}
	part, slot := c.chunkAt(i)
	if c.sends {
		return func() error { return mem.Copy(slot, part) }, true
	}
	return func() error { return mem.Copy(part, slot) }, true
}

// hasLoaded reports whether the first n bytes of a send have been copied from the device.
func (c *Copy) hasLoaded(n int) bool { return c.copied*c.chunk >= min(n, c.total) }

// advance sends loaded chunks that are asked for or, receiving, asks for a chunk per free slot.
func (c *Copy) advance() {
	if c.sends {
		c.push()
	} else {
		c.ask()
	}
}

// given returns the number of chunks that were handed to the transport.
func (c *Copy) given() int { return (c.moved + c.chunk - 1) / c.chunk }

// Asked notes that the receiver has asked for the first n bytes.
func (c *Copy) Asked(n int) {
	c.asked = n
	c.push()
	c.wake()
}

// push sends the chunks that are loaded and asked for.
func (c *Copy) push() {
	for i := c.given(); i < c.copied && c.asked >= min((i+1)*c.chunk, c.total) && !c.over; i++ {
		_, slot := c.chunkAt(i)
		c.moved += slot.Size()
		if !c.m.sendChunk(slot, c.moved == c.total) {
			c.lent.Push(i)
		}
	}
}

// ask asks for as many bytes as there are slots for.
func (c *Copy) ask() {
	if c.asked == c.size {
		return
	}
	switch n := (c.copied + len(c.slots)) * c.chunk; {
	case n >= c.total: // the excess is dropped
		c.asked = c.size
		c.m.askFor(0)
	case n > c.asked:
		chunks := (n - c.asked) / c.chunk
		c.asked = n
		c.m.askFor(chunks)
	}
}

// Expected returns the number of bytes that were asked for and have not arrived.
func (c *Copy) Expected() int { return c.asked - c.moved }

// Arrives begins a frame of n bytes. Like Filled, Arrives returns the memory for the first of them.
func (c *Copy) Arrives(n int) mem.Buffer {
	c.until = c.moved + n
	return c.window()
}

// window returns the memory for the next bytes, empty if these bytes are dropped.
func (c *Copy) window() mem.Buffer {
	at := c.moved % c.chunk
	n := min(c.chunk-at, min(c.until, c.total)-c.moved)
	if n == 0 {
		return mem.Buffer{}
	}
	return c.slots[c.moved/c.chunk%len(c.slots)].Slice(at, at+n)
}

// Filled notes that the window has been filled, and returns the next.
func (c *Copy) Filled() mem.Buffer {
	c.moved += c.window().Size()
	c.arrived()
	return c.window()
}

// arrived wakes the goroutine when a chunk is complete.
func (c *Copy) arrived() {
	if c.moved == c.total {
		c.m.Stage = Landing
	}
	if c.moved%c.chunk == 0 || c.moved == c.total {
		c.wake()
	}
}

// Returned notes that the transport has released the oldest chunk that it holds.
func (c *Copy) Returned() {
	c.lent.Pop()
	c.wake()
}

// Stop ends c after the running copy, which uses the memory until its end.
func (c *Copy) Stop() {
	c.over = true
	c.wake()
}

// end returns the slots.
func (c *Copy) end(err error) {
	for _, s := range c.slots {
		if c.early != nil {
			c.m.mover.Scratch.Put(c.early)
		} else {
			c.m.mover.Lender.Return(c.device.Space(), s)
		}
	}
	if c.m.mover.lent -= c.want; c.over {
		err = nil
	}
	c.m.copied(err)
}

// Between begins to copy n bytes inside this rank, from or to a device's memory.
func (v *Mover) Between(to, from *Move, n int) {
	c := &Copy{changed: make(chan struct{}, 1)}
	to.Stage, from.Stage = Landing, Leaving
	dst, src := to.Buf.Raw().Slice(0, n), from.Buf.Raw().Slice(0, n)
	for _, m := range []*Move{from, to} {
		m.copy = c
		m.owner.CopyBegins()
	}
	go func() {
		err := v.copyAnyMemory(dst, src)
		v.lock.Lock()
		defer v.lock.Exit()
		for _, m := range []*Move{from, to} {
			m.copy = nil
			m.owner.CopyEnds(err, false)
		}
	}()
}

// copyAnyMemory copies src to dst, by way of host memory if they are on different devices.
func (v *Mover) copyAnyMemory(dst, src mem.Buffer) error {
	if dst.IsHost() || src.IsHost() || dst.Space() == src.Space() {
		return mem.Copy(dst, src)
	}
	chunk, err := v.Lender.Lend(src.Space(), StagingChunk)
	if err != nil {
		return err
	}
	defer v.Lender.Return(src.Space(), chunk)
	for lo := 0; lo < src.Len() && err == nil; lo += StagingChunk {
		hi := min(lo+StagingChunk, src.Len())
		here := chunk.Slice(0, hi-lo)
		if err = mem.Copy(here, src.Slice(lo, hi)); err == nil {
			err = mem.Copy(dst.Slice(lo, hi), here)
		}
	}
	return err
}

// sendChunk sends the next chunk, and reports whether the chunk's memory may be used again; if
// not, Returned follows. last states that this chunk is the last.
func (m *Move) sendChunk(chunk mem.Buffer, last bool) bool {
	if last {
		m.Stage = Leaving
	}
	return m.give(chunk)
}

// askFor asks the sender for that many chunks more, or for all that is left if that is 0.
func (m *Move) askFor(chunks int) {
	m.Peer.SendHeader(transport.Header{Kind: transport.CTS, A: m.other, B: m.Token, Tag: int32(chunks)})
}

// Follow orders m after s, a send to the same peer, if m receives into the buffer of s: m stores
// each chunk only after s has loaded it.
func (m *Move) Follow(s *Move) {
	if s != m && s.Peer == m.Peer && s.Stage != Complete && mem.Same(s.Buf, m.Buf) {
		m.before, s.after = s, m
	}
}

// mayStore reports whether the first n bytes may be stored.
func (m *Move) mayStore(n int) bool {
	s := m.before
	return s == nil || s.Stage == Complete || s.copy != nil && s.copy.hasLoaded(n)
}

// loaded reports that another chunk has been copied from the device.
func (m *Move) loaded() {
	if m.after != nil && m.after.copy != nil {
		m.after.copy.wake()
	}
}

// copied ends the Copy: all is sent or stored, it was stopped, or the device has failed with err.
func (m *Move) copied(err error) {
	eager := m.copy.early != nil
	if m.copy = nil; err != nil {
		m.forget()
	}
	m.owner.CopyEnds(err, err != nil && !eager)
}
