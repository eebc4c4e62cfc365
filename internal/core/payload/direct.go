package payload

import (
	"errors"
	"slices"
	"sync"

	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// Direct is a rank's knowledge of the copies that its peers make from its memory or to it.
type Direct struct {
	Lengths
	mu         sync.Locker
	ways       map[world.Rank]*choice // of long messages from the peers that have the choice
	registrars []transport.Registrar
	oneSided   transport.OneSided // the last registrar, nil unless it is one
	flushes    uint64
	dangling   []danglingWrite
}

// A danglingWrite is a given-up buffer that a peer may have been writing to, and still may be.
type danglingWrite struct {
	peer  world.Rank
	b     mem.Buffer
	flush uint64 // number of the Flush that the peer has to answer
}

// Methods of Direct up to MayBeWritten take the lock, the others are called with it held.

// SetLengths sets d's Lengths.
func (d *Direct) SetLengths(l Lengths) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Lengths = l
}

// Register announces to the transports memory from comm.Alloc, which must not lie in Go's heap.
func (d *Direct) Register(b mem.Buffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, r := range d.registrars {
		err = errors.Join(err, r.Register(b))
	}
	return err
}

// Registers reports whether Register does something.
func (d *Direct) Registers() bool { return len(d.registrars) > 0 }

// Deregister undoes Register. A false result means that b may still be read or written.
func (d *Direct) Deregister(b mem.Buffer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := true
	for _, r := range d.registrars {
		done = r.Deregister(b) && done
	}
	return done
}

// Key returns the key by which ranks of other hosts access b, which is registered, without its
// owner; nil if they cannot.
func (d *Direct) Key(b mem.Buffer) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.oneSided == nil {
		return nil
	}
	return d.oneSided.Key(b)
}

// MayBeWritten reports whether a peer may still be writing to b, the buffer of an abandoned
// receive. The peer may until it has answered a Flush, or left.
func (d *Direct) MayBeWritten(b mem.Buffer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.dangling, func(w danglingWrite) bool { return mem.Overlap(w.b, b) })
}

// Use adds a transport that registers memory. Other transports are ignored.
func (d *Direct) Use(t transport.Transport) {
	if can := t.Capabilities(); can.Registrar != nil {
		d.registrars, d.oneSided = append(d.registrars, can.Registrar), can.OneSided
	}
}

// Source returns the place from which a peer may read b, ordinary memory, if reading can be the
// fastest way for b's length; else 0.
func (d *Direct) Source(to transport.Getter, peer world.Rank, b mem.Buffer) uint64 {
	if !b.IsHost() || !d.Has(b.Size()) && b.Size() < d.TriesFrom {
		return 0
	}
	return to.Source(peer, b.Raw())
}

// IsRead reports whether p copies b, a message of eager size, from this rank's memory. On some
// processors that takes two thirds of the time of a frame (compare-mpi on an Intel Xeon, near, 64
// KiB, in a frame and read: latency 8.6 and 5.7 us, irecv 8.7 and 5.7, bw 8.3 and 5.9). The message
// is announced like a message without credit: if p has no receive, p fetches the message at once.
// Scattered memory of such a length is announced, too, to be unpacked while more is packed.
func (d *Direct) IsRead(p *peers.Peer, b mem.Buffer) bool {
	return d.Has(b.Size()) && p.Getter != nil && (b.IsScattered() || d.Source(p.Getter, p.Rank, b) != 0)
}

// Choose begins a message of size bytes from a peer of this rank's host, and reports whether this
// rank is to copy the message. End follows with the Choice.
func (d *Direct) Choose(peer world.Rank, size int) (fetch bool, c Choice) {
	w := d.ways[peer]
	if w == nil {
		if d.ways == nil {
			d.ways = map[world.Rank]*choice{}
		}
		w = new(choice)
		d.ways[peer] = w
	}
	return w.choose(&d.Lengths, size)
}

// End ends a message that has had the choice.
func (d *Direct) End(peer world.Rank, c Choice, err error) { d.ways[peer].end(c, err) }

// GiveUp notes that a peer may be writing to b, which is given up. The result is the number of
// the Flush that asks the peer to stop.
func (d *Direct) GiveUp(peer world.Rank, b mem.Buffer) (flush uint64) {
	d.flushes++
	d.dangling = append(d.dangling, danglingWrite{peer, b, d.flushes})
	return d.flushes
}

// Flushed notes that a peer has stopped writing to the buffers given up before a Flush.
func (d *Direct) Flushed(peer world.Rank, flush uint64) {
	d.dangling = slices.DeleteFunc(d.dangling, func(w danglingWrite) bool { return w.peer == peer && w.flush <= flush })
}

// The payload of an announced message need not travel in frames if one side can reach the memory of
// the other. If the receiver can read the sender's buffer, an RTS carries the buffer's place, the
// receiver copies from there and answers Done. Else, if the sender can write to the receiver's
// buffer, a CTS carries the place of that buffer, the sender copies to it and sends Done. That
// takes a single copy, and no more frames than Data does. Data frames serve buffers that neither
// side reaches, and messages longer than the receiver's buffer. A message short enough to be eager
// is sent eagerly from such memory too, unless the receiver reads it sooner: its sender need not
// wait for the receive, and programs count on that. A side that gives up a message whose place was
// sent recalls all its places. A rank that copies from or to such a place then learns that the copy
// is void. If its own message was given up, an error is on its way. If another message was, its own
// goes in Data frames.

// expose returns the place of m's buffer, 0 if none, and notes that the peer may know the place:
// the caller sends it, or a transport that copies from the peer may send it to ask for help.
func (m *Move) expose() (place uint64) {
	p := m.Peer
	if p.Direct != nil && m.Buf.IsHost() {
		place = p.Direct.Place(p.Rank, m.Buf.Raw())
	}
	m.exposed = place != 0
	return place
}

// Source is expose for the buffer of a send, which a peer only reads.
func (m *Move) Source() (place uint64) {
	p := m.Peer
	if p.Getter == nil {
		return 0
	}
	if place = m.expose(); place == 0 {
		place = m.mover.Source(p.Getter, p.Rank, m.Buf)
		m.exposed = place != 0
	}
	if m.exposed {
		m.offered = true
		p.Offered++
	}
	return place
}

// fetches reports whether m is to be copied from a place that the peer has sent.
func (m *Move) fetches(place uint64) (fetch bool) {
	if m.Peer.Getter.Maps(place) {
		return true
	}
	fetch, m.choice = m.mover.Choose(m.Peer.Rank, m.Size)
	return fetch
}

// reached ends a message that this rank has copied directly. If the place was recalled, the message
// goes by frames instead. Else the peer is lost.
func (m *Move) reached(err error) (done bool, lost error) {
	switch {
	case err == nil:
		m.Peer.SendHeader(transport.Header{Kind: transport.Done, A: m.other})
		return true, nil
	case !errors.Is(err, transport.ErrRecalled):
		return false, err
	case m.Stage == Storing:
		return m.supply(), nil
	}
	if m.choice == Timed {
		m.choice = Spoilt
	}
	m.clear(0)
	return false, nil
}

// MayBeReached reports whether p may have copied the message, as p reports.
func (m *Move) MayBeReached(p *peers.Peer) bool {
	return m.exposed && m.Peer == p && (m.Stage == Announced || m.Stage == Filling)
}

// Recall takes back the place of m's buffer, if the peer may know it. If the peer may be writing to
// it, or helping to, a Flush asks for an answer after the last write. A lost peer whose process
// lives may continue to write, and cannot be asked: ended states that the process does not live.
func (m *Move) Recall(ended bool) {
	if !m.exposed {
		return
	}
	m.Peer.Direct.Recall()
	if ended || m.Stage != Filling && m.Stage != Fetching {
		return
	}
	flush := m.mover.GiveUp(m.Peer.Rank, m.Buf.Raw())
	if m.Peer.Lost == nil {
		m.Peer.SendHeader(transport.Header{Kind: transport.Flush, A: flush})
	}
}

// AnswerFlush answers a Flush of p at once: this rank copies nothing while a frame arrives, and
// checks before each chunk of a copy whether its place was recalled.
func AnswerFlush(p *peers.Peer, h *transport.Header) {
	if p.Reachable() {
		p.SendHeader(transport.Header{Kind: transport.Flushed, A: h.A})
	}
}
