package payload

import (
	"gompi/internal/fifo"
	"gompi/internal/mem"
)

// Payload in the memory of devices.
//
// Transports carry host memory, and the goroutine that polls must not wait for a device. So the
// payload goes in chunks through pinned host memory: a message has a few such chunks, and a
// goroutine copies between them and the device while others are sent or received. It makes no
// difference to the peer.
//
// A receiver asks for as many bytes as its chunks hold, and for more when it has stored one. So
// every byte that arrives has its place, a slow device delays only the sender of that message, and
// pinned memory is bounded.

const (
	// StagingChunk is the bytes of a chunk, and of the longest message that is copied at once. It
	// and copyDepth are guesses until a GPU has been measured.
	StagingChunk = 512 << 10
	// copyDepth is the most chunks of a message.
	copyDepth = 8
	// maxStagingChunks is the most chunks of all messages of a rank. A message that begins when
	// so many are lent gets one nevertheless: others may wait for it.
	maxStagingChunks = 64
)

// A Lender lends host memory that the copies of a Space reach directly.
type Lender interface {
	// Lend returns so many bytes for s. It may wait for a device.
	Lend(s mem.Space, bytes int) (mem.Buffer, error)
	// Return takes them back, at once.
	Return(s mem.Space, b mem.Buffer)
}

// A Message is what a Copy asks of the message whose payload it copies. The lock is held.
type Message interface {
	// Send sends the next chunk, and reports whether its memory may be used again; if not, Returned
	// follows. last says that it is the last one.
	Send(chunk mem.Buffer, last bool) bool
	// Ask asks the sender for so many chunks more, or for all that is left if that is 0.
	Ask(chunks int)
	// Arrived says that all has arrived.
	Arrived()
	// MayStore reports whether the first n bytes may be stored.
	MayStore(n int) bool
	// Loaded says that another chunk has been copied from the device.
	Loaded()
	// Copied is the last call: all is sent or stored, or the Copy was stopped, or the device has
	// failed with err.
	Copied(err error)
}

// Copies are a rank's Copies.
type Copies struct {
	Lock interface { // guards them
		Lock()
		Exit() // unlocks after something may have been sent
	}
	Lender  Lender
	Scratch *mem.Scratch
	lent    int // chunks
}

// A Copy takes one message from a device to the transport, or back. Chunk i of the payload is in
// slot i modulo the number of slots. The lock guards the fields, but not the content of the slots:
// that of a send belongs to the goroutine until the chunk is loaded, that of a receive from when it
// has arrived.
type Copy struct {
	all     *Copies
	m       Message
	device  mem.Buffer
	sends   bool
	changed chan struct{} // wakes the goroutine: something has changed
	chunk   int           // bytes
	size    int           // of the message
	total   int           // bytes of it to be copied
	asked   int           // bytes of it that the receiver has asked for
	slots   []mem.Buffer
	want    int             // slots to be lent
	early   []byte          // the only slot, from the scratch pool, of an eager message
	copied  int             // chunks
	moved   int             // bytes that have arrived, or that the transport has been given
	until   int             // moved at the end of the frame that arrives
	lent    fifo.Queue[int] // chunks that the transport holds
	over    bool            // the message has ended
}

// Load begins to copy from, of which the receiver has asked for the first asked bytes.
func (a *Copies) Load(m Message, from mem.Buffer, asked int) *Copy {
	c := a.begin(m, from, from.Size(), StagingChunk)
	c.sends, c.asked = true, asked
	c.start()
	return c
}

// Store begins to copy a message of size bytes to to, for which the sender waits to be asked.
func (a *Copies) Store(m Message, to mem.Buffer, size int) *Copy {
	c := a.begin(m, to, size, StagingChunk)
	c.start()
	return c
}

// StoreEager begins to copy an eager message to to: the first arrived bytes of it are in data, from
// a.Scratch, and the rest will be.
func (a *Copies) StoreEager(m Message, to mem.Buffer, size int, data []byte, arrived int) *Copy {
	c := a.begin(m, to, size, max(len(data), 1))
	c.slots, c.early, c.moved, c.asked = []mem.Buffer{mem.Bytes(data)}, data, min(arrived, c.total), size
	c.arrived()
	go c.run()
	return c
}

func (a *Copies) begin(m Message, device mem.Buffer, size, chunk int) *Copy {
	return &Copy{all: a, m: m, device: device, changed: make(chan struct{}, 1), chunk: chunk, size: size, total: min(size, device.Size())}
}

// start starts c's goroutine, with slots to be lent.
func (c *Copy) start() {
	c.want = max(min(maxStagingChunks-c.all.lent, copyDepth, c.chunks()), 1)
	c.all.lent += c.want
	go c.run()
}

func (c *Copy) chunks() int { return (c.total + c.chunk - 1) / c.chunk }

// chunkAt returns the part of the payload that chunk i is, and the memory for it.
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

// run copies until the message has been sent or stored, or has failed. It holds the lock except
// while it copies or waits.
func (c *Copy) run() {
	slots, err := c.alloc()
	lock := c.all.Lock
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
			c.m.Loaded()
		}
	}
	c.end(err)
	lock.Exit()
}

// alloc returns the slots, which it may have to wait for.
func (c *Copy) alloc() (slots []mem.Buffer, err error) {
	slots = c.slots
	for len(slots) < c.want && err == nil {
		var b mem.Buffer
		if b, err = c.all.Lender.Lend(c.device.Space(), StagingChunk); err == nil {
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
		ok = c.moved >= end && c.m.MayStore(end)
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

// HasLoaded reports whether the first n bytes of a send have been copied from the device.
func (c *Copy) HasLoaded(n int) bool { return c.copied*c.chunk >= min(n, c.total) }

// Again makes the Copy look once more whether it may store.
func (c *Copy) Again() { c.wake() }

// advance sends the chunks that are loaded and asked for, or asks for as many as there are slots
// for.
func (c *Copy) advance() {
	if c.sends {
		c.push()
	} else {
		c.ask()
	}
}

// given returns how many chunks the transport has been given.
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
		if !c.m.Send(slot, c.moved == c.total) {
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
	case n >= c.total: // what does not fit is dropped
		c.asked = c.size
		c.m.Ask(0)
	case n > c.asked:
		chunks := (n - c.asked) / c.chunk
		c.asked = n
		c.m.Ask(chunks)
	}
}

// Expected returns how many bytes were asked for and have not come.
func (c *Copy) Expected() int { return c.asked - c.moved }

// Arrives begins a frame of n bytes. It returns where the first of them go, as Filled does.
func (c *Copy) Arrives(n int) mem.Buffer {
	c.until = c.moved + n
	return c.window()
}

// window returns where the next bytes go; an empty one means that they are dropped.
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
		c.m.Arrived()
	}
	if c.moved%c.chunk == 0 || c.moved == c.total {
		c.wake()
	}
}

// Returned notes that the transport has done with the oldest chunk that it holds.
func (c *Copy) Returned() {
	c.lent.Pop()
	c.wake()
}

// Stop ends c after the copy that is being made: until that ends the memory is in use.
func (c *Copy) Stop() {
	c.over = true
	c.wake()
}

// Eager reports whether c copies an eager message, whose sender does not wait.
func (c *Copy) Eager() bool { return c.early != nil }

// end returns the slots.
func (c *Copy) end(err error) {
	for _, s := range c.slots {
		if c.early != nil {
			c.all.Scratch.Put(c.early)
		} else {
			c.all.Lender.Return(c.device.Space(), s)
		}
	}
	if c.all.lent -= c.want; c.over {
		err = nil
	}
	c.m.Copied(err)
}

// Between begins to copy n bytes inside this rank, at least on one side in a device's memory. When
// they are copied it calls over, with the lock held.
func (a *Copies) Between(to, from mem.Buffer, n int, over func(error)) *Copy {
	go func() {
		err := a.copyAnyMemory(to.Slice(0, n), from.Slice(0, n))
		a.Lock.Lock()
		defer a.Lock.Exit()
		over(err)
	}()
	return &Copy{changed: make(chan struct{}, 1)}
}

// copyAnyMemory copies src to dst, by way of host memory if they are on different devices.
func (a *Copies) copyAnyMemory(dst, src mem.Buffer) error {
	if dst.IsHost() || src.IsHost() || dst.Space() == src.Space() {
		return mem.Copy(dst, src)
	}
	chunk, err := a.Lender.Lend(src.Space(), StagingChunk)
	if err != nil {
		return err
	}
	defer a.Lender.Return(src.Space(), chunk)
	for lo := 0; lo < src.Len() && err == nil; lo += StagingChunk {
		hi := min(lo+StagingChunk, src.Len())
		here := chunk.Slice(0, hi-lo)
		if err = mem.Copy(here, src.Slice(lo, hi)); err == nil {
			err = mem.Copy(dst.Slice(lo, hi), here)
		}
	}
	return err
}
