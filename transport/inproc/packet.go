package inproc

import (
	"bytes"
	"sync"

	"gompi/internal/world"
	"gompi/transport"
)

// copyLimit is the largest payload that Send copies: up to here the copy costs less than the
// sender's wait for the receiver.
const copyLimit = 64 << 10

// heldLimit bounds one sender's copied payload in one peer's mailbox. Further payloads are lent.
const heldLimit = 1 << 20

// A packetKind is the meaning of a packet for the receiving rank.
type packetKind uint8

const (
	frame  packetKind = iota // a frame from another rank
	copied                   // this rank's lent payload has been copied
	gone                     // rank from is gone; err is the reason
)

// A packet is an entry of a mailbox. The receiving rank owns the packet, except mu and withdrawn,
// which guard a lent payload while both ends refer to it.
type packet struct {
	next *packet

	kind  packetKind
	class uint8 // index of its pool
	lent  bool  // payload is the sender's memory
	from  world.Rank
	h     transport.Header
	err   error

	buf     []byte // pooled memory, of the class's size
	payload []byte // in buf, or the sender's memory if lent

	link  *link // the sender's, to its peer
	token uint64
	index int // in link.loans

	forgotten bool // the sender cancelled Sent; the sender's field

	mu        sync.Mutex // held while the payload is read; never while calling out
	withdrawn bool       // the sender has taken its memory back
}

// take copies the payload at off to dst. It returns false if the sender has withdrawn the payload.
func (p *packet) take(dst []byte, off int64) bool {
	if !p.lent {
		copy(dst, p.payload[off:])
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.withdrawn {
		return false
	}
	copy(dst, p.payload[off:])
	return true
}

// withdraw ends the loan of the payload. After withdraw, the receiver no longer reads the payload.
func (p *packet) withdraw() {
	p.mu.Lock()
	p.withdrawn = true
	p.payload = nil
	p.mu.Unlock()
}

// keep replaces the lent payload by a copy, and cancels the sender's Sent. When keep returns, the
// receiver no longer reads the sender's memory.
func (p *packet) keep() {
	p.forgotten = true
	p.mu.Lock()
	p.payload = bytes.Clone(p.payload)
	p.mu.Unlock()
}

// A queue is a list of packets, first in, first out.
type queue struct {
	head, tail *packet
}

func (q *queue) push(p *packet) {
	p.next = nil
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
}

func (q *queue) pop() *packet {
	p := q.head
	if p == nil {
		return nil
	}
	if q.head = p.next; q.head == nil {
		q.tail = nil
	}
	p.next = nil
	return p
}

// Packets are pooled together with their memory, in classes that are four times larger each: class
// 0 has no memory, then 256 bytes up to copyLimit.
const (
	classes    = 6
	firstClass = 256
)

type pools [classes]sync.Pool

// get returns a packet with n bytes or more in buf, n <= copyLimit.
func (ps *pools) get(n int) *packet {
	class, size := 0, 0
	for size < n {
		class++
		size = firstClass << (2 * (class - 1))
	}
	if p, ok := ps[class].Get().(*packet); ok {
		return p
	}
	return &packet{class: uint8(class), buf: make([]byte, size)}
}

// put recycles p. No references to p may remain.
func (ps *pools) put(p *packet) {
	p.payload, p.link, p.err, p.lent, p.forgotten = nil, nil, nil, false, false
	ps[p.class].Put(p)
}
