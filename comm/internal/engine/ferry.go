package engine

import (
	"errors"
	"fmt"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/transport"
)

// Payload in the memory of devices.
//
// Transports carry host memory, and who drives them must not wait for a device. So
// the payload goes through pieces of pinned host memory, of which a message has a few,
// and a goroutine copies: some pieces are on their way while others are loaded, or
// stored. What memory the other side has makes no difference to either.
//
// A receiver asks for as many bytes as it has pieces to put them into, and for more
// when it has stored one. So what arrives always has a place, a receiver whose device
// is slow makes nobody wait but its sender, and pinned memory is bounded.

const (
	// PieceSize is the bytes of a piece, and of the longest message that goes at once. It
	// is a guess until a GPU has been measured, as depth is.
	PieceSize = 512 << 10
	// depth is the pieces of a message: some are on their way, some are copied.
	depth = 8
	// mostPieces is the pieces of all messages of a rank. One that begins when so many
	// are lent gets one nevertheless: others may wait for it.
	mostPieces = 64
)

// A Lender lends host memory that the copies of a Space reach directly.
type Lender interface {
	// Lend returns so many bytes for s. It may wait for a device.
	Lend(s mem.Space, bytes int) (mem.Buffer, error)
	// Return takes them back, at once.
	Return(s mem.Space, b mem.Buffer)
}

// A ferry is the way of one message between a device and its transport. Piece i of the
// payload is in slot i modulo their number. The fields are guarded by the Engine's
// lock, but for the slots' content, which belongs to the goroutine until a piece is
// loaded, and from when it has arrived.
type ferry struct {
	e      *Engine
	r      *Request
	sends  bool
	stir   chan struct{} // tells the goroutine that something has changed
	unit   int           // bytes of a piece
	total  int           // bytes to be copied
	slots  []mem.Buffer
	want   int             // slots to be lent
	early  []byte          // the only slot, of the scratch pool: the message has come unasked
	copied int             // pieces
	moved  int             // bytes that have arrived, or that the transport has been given
	until  int             // moved at the end of the frame that arrives
	lent   fifo.Queue[int] // pieces that the transport holds
	over   bool            // r has ended
}

// lands reports whether some of n bytes of a message go to memory that the processor
// does not reach.
func (r *Request) lands(n int) bool {
	return !r.buf.IsHost() && n > 0 && r.buf.Size() > 0 && !errors.Is(r.err, ErrType)
}

// demand tells p, with whom the payload of r waits, to send it.
func (e *Engine) demand(p *peer, r *Request) {
	r.stage = filling
	if r.lands(r.size) {
		e.embark(r, false)
	} else {
		e.clear(p, r, 0)
	}
}

// embark begins the ferry of r's payload.
func (e *Engine) embark(r *Request, sends bool) {
	f := e.newFerry(r, PieceSize)
	f.sends = sends
	f.want = max(min(mostPieces-e.lent, depth, f.pieces()), 1)
	e.lent += f.want
	e.stamp(r) // whoever ends what the Channel does finds it
	go f.run()
}

// land stores a message that came unasked, or will be in data, into r.
func (e *Engine) land(r *Request, data []byte, arrived int) {
	f := e.newFerry(r, max(len(data), 1))
	f.slots, f.early, f.moved = []mem.Buffer{mem.Bytes(data)}, data, min(arrived, f.total)
	r.asked, r.stage = r.size, filling
	f.arrived()
	go f.run()
}

func (e *Engine) newFerry(r *Request, unit int) *ferry {
	f := &ferry{e: e, r: r, stir: make(chan struct{}, 1), unit: unit, total: min(r.size, r.buf.Size())}
	r.ferry = f
	r.ch.ferries.Add(1)
	return f
}

func (f *ferry) pieces() int { return (f.total + f.unit - 1) / f.unit }

// piece returns the part of the payload that piece i is, and the memory for it.
func (f *ferry) piece(i int) (part, slot mem.Buffer) {
	lo, hi := i*f.unit, min((i+1)*f.unit, f.total)
	return f.r.buf.Raw().Slice(lo, hi), f.slots[i%len(f.slots)].Slice(0, hi-lo)
}

func (f *ferry) prod() {
	select {
	case f.stir <- struct{}{}:
	default:
	}
}

// run copies until the message has been sent or stored, or is over. It keeps the lock
// but where it copies or waits.
func (f *ferry) run() {
	slots, err := f.board()
	e := f.e
	e.progress.Lock()
	f.slots = slots
	for err == nil && !f.over {
		if f.advance(); f.done() {
			break
		}
		load, copies := f.next()
		e.progress.Exit()
		if copies {
			err = load()
		} else {
			<-f.stir
		}
		e.progress.Lock()
		if copies && err == nil {
			f.copied++
			f.makeRoom()
		}
	}
	f.disembark(err)
	e.progress.Exit()
}

// board returns the slots.
func (f *ferry) board() (slots []mem.Buffer, err error) {
	slots = f.slots
	for len(slots) < f.want && err == nil {
		var b mem.Buffer
		if b, err = f.e.cfg.Lender.Lend(f.r.buf.Space(), PieceSize); err == nil {
			slots = append(slots, b)
		}
	}
	return slots, err
}

// done reports whether all has been stored, or has left.
func (f *ferry) done() bool {
	return f.copied == f.pieces() && (!f.sends || f.moved == f.total && f.lent.Len() == 0)
}

// next returns the copy that can be made now.
func (f *ferry) next() (copy func() error, ok bool) {
	i := f.copied
	if i == f.pieces() {
		return nil, false
	}
	if f.sends {
		held := f.given()
		if f.lent.Len() > 0 {
			held = f.lent.Front()
		}
		ok = i-held < len(f.slots)
	} else {
		end := min((i+1)*f.unit, f.total)
		ok = f.moved >= end && f.r.before.hasLoaded(end)
	}
	if !ok {
		return nil, false
	}
	part, slot := f.piece(i)
	if f.sends {
		return func() error { return mem.Copy(slot, part) }, true
	}
	return func() error { return mem.Copy(part, slot) }, true
}

// hasLoaded reports whether the first n bytes of a send are out of the device's memory.
// None are of one for which nobody is ready, all of no send.
func (r *Request) hasLoaded(n int) bool {
	if r == nil || r.stage == complete {
		return true
	}
	return r.ferry != nil && r.ferry.copied*r.ferry.unit >= min(n, r.size)
}

// makeRoom has the receive go on that takes the place of what is sent.
func (f *ferry) makeRoom() {
	if r := f.r.after; r != nil && r.ferry != nil {
		r.ferry.prod()
	}
}

// advance sends what is loaded and asked for, or asks for what there is room for.
func (f *ferry) advance() {
	if f.sends {
		f.push()
	} else {
		f.ask()
	}
}

// given returns how many pieces the transport has been given.
func (f *ferry) given() int { return (f.moved + f.unit - 1) / f.unit }

// push sends what is loaded and asked for.
func (f *ferry) push() {
	e, r := f.e, f.r
	for i := f.given(); i < f.copied && r.asked >= min((i+1)*f.unit, f.total) && !f.over; i++ {
		_, slot := f.piece(i)
		f.moved += slot.Size()
		if f.moved == f.total {
			r.stage = leaving
		}
		e.h = transport.Header{Kind: transport.Data, A: r.other}
		if !e.give(e.peer(r.peer), r, slot) {
			f.lent.Push(i)
		}
	}
}

// ask asks for what there is room for.
func (f *ferry) ask() {
	e, r := f.e, f.r
	if r.asked == r.size {
		return
	}
	p, n := e.peer(r.peer), (f.copied+len(f.slots))*f.unit
	switch {
	case n >= f.total: // what does not fit is dropped
		e.clear(p, r, 0)
	case n > r.asked:
		e.h = transport.Header{Kind: transport.Clear, A: r.other, B: r.token, Tag: int32((n - r.asked) / PieceSize)}
		r.asked = n
		e.post(p, mem.Buffer{}, 0)
	}
}

// arrives begins a frame of n bytes.
func (f *ferry) arrives(n int) mem.Buffer {
	f.until = f.moved + n
	return f.window()
}

// window returns where the next bytes go; an empty one means that they are dropped.
func (f *ferry) window() mem.Buffer {
	at := f.moved % f.unit
	n := min(f.unit-at, min(f.until, f.total)-f.moved)
	if n == 0 {
		return mem.Buffer{}
	}
	return f.slots[f.moved/f.unit%len(f.slots)].Slice(at, at+n)
}

// filled takes note that the window has been filled, and returns the next.
func (f *ferry) filled() mem.Buffer {
	f.moved += f.window().Size()
	f.arrived()
	return f.window()
}

// arrived has the goroutine store a piece that is there.
func (f *ferry) arrived() {
	if f.moved == f.total {
		f.r.stage = landing
	}
	if f.moved%f.unit == 0 || f.moved == f.total {
		f.prod()
	}
}

// returned takes note that the transport has let go of the oldest piece it holds.
func (f *ferry) returned() {
	f.lent.Pop()
	f.prod()
}

// stop ends the message with err, when a copy that is being made has ended: until then
// the memory is in use.
func (f *ferry) stop(r *Request, err error) {
	if r.err == nil {
		r.err = err
	}
	if rd := r.round; rd != nil && rd.err == nil {
		rd.err = r.err
	}
	f.e.forget(r)
	f.over = true
	f.prod()
}

// disembark gives back what the ferry had and finishes the message. If a device has
// failed, the other side waits in vain.
func (f *ferry) disembark(err error) {
	e, r := f.e, f.r
	failed := err != nil && !f.over
	if failed {
		f.stop(r, err)
	}
	r.ferry = nil
	for _, s := range f.slots {
		if f.early != nil {
			e.scratch.put(f.early)
		} else {
			e.cfg.Lender.Return(r.buf.Space(), s)
		}
	}
	e.lent -= f.want
	ch := r.ch
	ch.ferries.Done()
	if failed && f.early == nil {
		ch.breakUp(verdict{rank: e.cfg.Rank, cause: fmt.Sprintf("failed on a message under way: %v", err)})
	}
	e.finish(r, nil)
}

// forget makes the transport let go of r's memory.
func (e *Engine) forget(r *Request) {
	if r.token == 0 {
		return
	}
	if r.peer >= 0 && e.peer(r.peer).tr != nil {
		e.peer(r.peer).tr.Forget(r.peer, r.token)
	}
	e.slots.release(r.token)
	r.token = 0
}

// cross copies a message of n bytes from this rank to itself, s to r. One of the two at
// least is in a device's memory.
func (e *Engine) cross(r, s *Request, n int) {
	f := e.newFerry(r, PieceSize)
	s.ferry = f
	r.stage, s.stage = landing, leaving
	go func() {
		err := e.carry(r.buf.Raw().Slice(0, n), s.buf.Raw().Slice(0, n))
		e.progress.Lock()
		defer e.progress.Exit()
		r.ferry, s.ferry = nil, nil
		r.ch.ferries.Done()
		e.finish(s, err)
		e.finish(r, err)
	}()
}

// carry copies src to dst, through host memory if they are on different devices.
func (e *Engine) carry(dst, src mem.Buffer) error {
	if dst.IsHost() || src.IsHost() || dst.Space() == src.Space() {
		return mem.Copy(dst, src)
	}
	piece, err := e.cfg.Lender.Lend(src.Space(), PieceSize)
	if err != nil {
		return err
	}
	defer e.cfg.Lender.Return(src.Space(), piece)
	for lo := 0; lo < src.Len() && err == nil; lo += PieceSize {
		hi := min(lo+PieceSize, src.Len())
		here := piece.Slice(0, hi-lo)
		if err = mem.Copy(here, src.Slice(lo, hi)); err == nil {
			err = mem.Copy(dst.Slice(lo, hi), here)
		}
	}
	return err
}
