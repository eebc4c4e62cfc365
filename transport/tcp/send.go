package tcp

import (
	"bytes"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/sockets"
	"gompi/internal/world"
	"gompi/transport"
)

const (
	// stageSize: a frame up to this size is assembled in one piece, which costs less than the
	// kernel's gathering of two.
	stageSize = 4 << 10

	// copyLimit is the largest rest of a payload copied if the socket does not take it at once.
	copyLimit = 64 << 10

	// heldLimit bounds the copied payload per peer.
	heldLimit = 1 << 20

	// flushRounds bounds the work of one flush.
	flushRounds = 4
	flushBytes  = 1 << 20 // per round
)

// A frame is queued: not sent, or only in part.
type frame struct {
	head  [transport.HeaderSize]byte
	sent  int    // bytes of head that have left
	body  []byte // the part of the payload that has not left
	block []byte // pooled memory of body; nil if body is the caller's
	token uint64
	lent  bool // Sent is due
}

// An outbox is the queue of one peer's frames.
type outbox struct {
	fifo.Queue[frame]
	copied int // bytes in blocks
}

// next removes the first frame and frees its block.
func (t *Transport) next(p *peer) frame {
	f := p.out.Pop()
	if f.block != nil {
		p.out.copied -= cap(f.block)
		t.blocks.put(f.block)
	}
	if !f.lent {
		t.waiting--
	}
	return f
}

// Send implements transport.Transport.
func (t *Transport) Send(rank world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	h.Len = int64(b.Size())
	p := t.peer(rank)
	if p.lost || p.cause != nil || t.closing {
		return true
	}
	body := b.HostSlice()
	sent, joins := 0, p.joins(h.Kind, len(body))
	if p.gathering && !joins {
		t.flushBurst(p) // before this frame, which may then leave at once
	}
	if p.conn != nil && p.conn.seal == nil && p.out.Empty() && !joins {
		var errno syscall.Errno
		sent, errno = t.write(p.conn.fd, h, body)
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			sent = 0
		case errno != 0:
			t.broken(p, errno)
			return true
		case sent == transport.HeaderSize+len(body):
			t.noteSent(p, h.Kind)
			return true
		}
		t.watch(p.conn, poll.Read|poll.Write)
	}
	t.want(p)
	first := p.out.Empty()
	reusable := t.enqueue(p, h, body, sent, token)
	switch {
	case joins:
		t.gathered(p)
	case p.conn == nil || p.conn.seal == nil:
	case first && reusable: // else flushSealed might call Sent, which Send must not
		if t.flushSealed(p); p.out.Empty() {
			t.noteSent(p, h.Kind)
		}
	default:
		t.watch(p.conn, poll.Read|poll.Write)
	}
	return reusable
}

// write sends as much of a frame as the socket takes.
func (t *Transport) write(fd int, h *transport.Header, body []byte) (int, syscall.Errno) {
	h.Encode(t.stage[:])
	if n := transport.HeaderSize + len(body); n <= stageSize {
		copy(t.stage[transport.HeaderSize:], body)
		return sockets.Send(fd, t.stage[:n])
	}
	t.vec.Add(t.stage[:transport.HeaderSize])
	t.vec.Add(body)
	n, errno := t.vec.Send(fd)
	t.vec.Reset()
	return n, errno
}

// enqueue queues the unsent part of a frame. enqueue reports whether body may be reused.
func (t *Transport) enqueue(p *peer, h *transport.Header, body []byte, sent int, token uint64) bool {
	f := p.out.Push(frame{})
	h.Encode(f.head[:])
	f.sent = min(sent, transport.HeaderSize)
	f.body = body[sent-f.sent:]
	f.token = token
	if n := len(f.body); n > 0 {
		if n > copyLimit || p.out.copied+n > heldLimit {
			f.lent = true
			return false
		}
		f.block = t.blocks.get(n)
		p.out.copied += cap(f.block)
		copy(f.block, f.body)
		f.body = f.block
	}
	t.waiting++
	return true
}

// Forget implements transport.Transport.
func (t *Transport) Forget(rank world.Rank, token uint64) {
	p := t.peer(rank)
	p.in.Forget(token)
	frames := p.out.Items()
	for i := range frames {
		if f := &frames[i]; f.lent && f.token == token {
			f.body = bytes.Clone(f.body)
			f.lent = false
			t.waiting++
		}
	}
}

// flush writes queued frames to p and returns the number of frames sent.
func (t *Transport) flush(p *peer) int {
	if p.conn != nil && p.conn.seal != nil {
		return t.flushSealed(p)
	}
	n := 0
	for range flushRounds {
		if p.conn == nil || p.out.Empty() || p.cause != nil {
			break
		}
		want := t.gather(&p.out)
		sent, errno := t.vec.Send(p.conn.fd)
		t.vec.Reset()
		if errno == unix.EAGAIN || errno == unix.EINTR {
			break
		}
		if errno != 0 {
			t.broken(p, errno)
			return n + 1
		}
		n += t.left(p, sent)
		if sent < want {
			break
		}
	}
	t.watchQueue(p)
	return n
}

// watchQueue watches p's socket for writing while frames are queued.
func (t *Transport) watchQueue(p *peer) {
	switch {
	case p.conn == nil:
	case p.out.Empty() || p.cause != nil:
		t.watch(p.conn, poll.Read)
	default:
		t.watch(p.conn, poll.Read|poll.Write)
	}
}

// gather puts the front of the queue into t.vec and returns its size.
func (t *Transport) gather(o *outbox) int {
	frames := o.Items()
	for i := 0; i < len(frames) && t.vec.Len() < flushBytes; i++ {
		f := &frames[i]
		t.vec.Add(f.head[f.sent:])
		if !t.vec.Add(f.body) {
			break
		}
	}
	return t.vec.Len()
}

// left removes n sent bytes from the front of the queue and returns the number of completed frames.
func (t *Transport) left(p *peer, n int) int {
	done := 0
	for !p.out.Empty() {
		f := &p.out.Items()[0]
		k := min(n, len(f.head)-f.sent)
		f.sent += k
		n -= k
		k = min(n, len(f.body))
		f.body = f.body[k:]
		n -= k
		if f.sent < len(f.head) || len(f.body) > 0 {
			break
		}
		done++
		if f := t.next(p); f.lent {
			t.sink.Sent(f.token, nil)
		}
	}
	return done
}

// broken notes that writes to p fail. Bytes from p can still be read; p is lost at their end.
func (t *Transport) broken(p *peer, errno syscall.Errno) {
	p.cause = errno
	_ = unix.Shutdown(p.conn.fd, unix.SHUT_RDWR) // makes sure that reading ends
}

// blocks is memory for copied payloads, in classes four times larger each, up to copyLimit.
type blocks struct {
	free [blockClasses][][]byte
}

const (
	blockClasses = 5
	firstBlock   = 256
	freeBlocks   = 32 // kept per class: 2.7 MiB in all
)

func blockClass(n int) (class, size int) {
	size = firstBlock
	for size < n {
		size *= 4
		class++
	}
	return class, size
}

func (bs *blocks) get(n int) []byte {
	class, size := blockClass(n)
	free := bs.free[class]
	if k := len(free); k > 0 {
		b := free[k-1]
		bs.free[class] = free[:k-1]
		return b[:n]
	}
	return make([]byte, n, size)
}

func (bs *blocks) put(b []byte) {
	class, _ := blockClass(cap(b))
	if len(bs.free[class]) < freeBlocks {
		bs.free[class] = append(bs.free[class], b)
	}
}
