// Package inproc carries frames between ranks that are goroutines of one process: for tests,
// simulation and programs that are parallel in themselves.
//
// Each rank has one mailbox, a queue. All other ranks append packets to the queue, and the rank's
// Poll empties it. One queue keeps the order of every sender without any state per pair. Send
// copies payloads of up to 64 KiB into pooled memory. Larger payloads stay at the sender; the
// receiver's Poll copies them once, straight to their destination. No lock is held while anything
// blocks, and no clock is read, so that ranks may live in a testing/synctest bubble.
//
// Cost: 0.1-0.2 us for a small frame. A rank takes about 300 bytes until it communicates, and then
// about 100 for each peer.
package inproc

import (
	"sync"
	"sync/atomic"

	"gompi/internal/world"
	"gompi/transport"
)

// A World is a set of ranks that can reach each other. Its methods may be
// called from any goroutine.
type World struct {
	mailboxes []mailbox
	pools     pools
}

// NewWorld returns a World of n ranks. Frames to a rank wait until its Transport exists.
func NewWorld(n int) *World {
	return &World{mailboxes: make([]mailbox, n)}
}

// Transport returns the transport of the given rank, which delivers to sink and wakes p. Transport
// is called once for each rank.
func (w *World) Transport(rank world.Rank, sink transport.Sink, p transport.Parker) transport.Transport {
	b := &w.mailboxes[rank]
	b.mu.Lock()
	b.parker = p
	b.mu.Unlock()
	eagerSink, _ := sink.(transport.EagerSink)
	return &endpoint{net: w, rank: rank, mailbox: b, sink: sink, eagerSink: eagerSink,
		links: make(map[world.Rank]*link)}
}

// Kill ends rank as if its process had died: every other rank gets Lost(rank, ErrCut) after the
// rank's last frames, and the rank itself loses all others at its next Poll. Kill is for tests.
func (w *World) Kill(rank world.Rank) {
	w.mailboxes[rank].shut(transport.ErrCut)
	for i := range w.mailboxes {
		if i != int(rank) {
			w.mailboxes[i].put(&packet{kind: gone, from: rank, err: transport.ErrCut})
		}
	}
}

// A mailbox holds the packets for a rank.
type mailbox struct {
	news atomic.Bool // queue or end have changed since the last take

	mu     sync.Mutex // held for a few instructions only
	queue  queue
	armed  bool // wake parker at the next change
	parker transport.Parker
	end    error // why put fails
}

// put adds p, or returns the reason for refusing p.
func (b *mailbox) put(p *packet) error {
	b.mu.Lock()
	if err := b.end; err != nil {
		b.mu.Unlock()
		return err
	}
	b.queue.push(p)
	b.changed()
	return nil
}

// shut closes the mailbox: put fails from then on.
func (b *mailbox) shut(why error) {
	b.mu.Lock()
	if b.end == nil {
		b.end = why
	}
	b.changed()
}

// changed unlocks b, and wakes its rank if the mailbox is armed.
func (b *mailbox) changed() {
	b.news.Store(true)
	p := b.parker
	wake := b.armed
	b.armed = false
	b.mu.Unlock()
	if wake {
		p.Wake()
	}
}

// take empties the mailbox.
func (b *mailbox) take() (q queue, end error) {
	b.mu.Lock()
	q, end = b.queue, b.end
	b.queue = queue{}
	b.news.Store(false)
	b.mu.Unlock()
	return q, end
}

// arm asks for a wake-up at the next change. arm returns false if b has changed already.
func (b *mailbox) arm() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = !b.news.Load()
	return b.armed
}

func (b *mailbox) disarm() {
	b.mu.Lock()
	b.armed = false
	b.mu.Unlock()
}
