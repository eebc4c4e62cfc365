package payload

import (
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// A Stage is how far an operation on a message has come.
type Stage uint8

const (
	Complete  Stage = iota
	Posted          // a receive without a message
	Queued          // a send that may not leave yet, or a message whose peer is a suspect
	Filling         // a receive whose payload is on its way
	Fetching        // a receive that copies its payload from the sender's memory
	Landing         // a receive whose payload is there, to be stored by a device
	Announced       // a send by rendezvous whose receiver has not asked for the whole payload yet
	Leaving         // a send whose buffer the transport holds
	Storing         // a send that copies its payload to the receiver's memory
)

// A Move moves the payload of a message, at either of its ends: between a buffer, and frames or
// the memory of the peer. The owner of the message decides when a Move begins, hands it the
// transports' deliveries, and completes the operation after the Move.
type Move struct {
	Stage   Stage
	exposed bool        // the other side may know where Buf lies
	offered bool        // the other side may Get the message
	choice  Choice      // of a receive
	Token   uint64      // by which frames and transports name this end; 0 if none does
	Peer    *peers.Peer // the other side; nil if not known yet, or if this rank
	Buf     mem.Buffer  // the memory to send from, or to receive into
	Size    int         // bytes of the message
	marks
	combine *Combine  // of a receive that reduces
	chunks  [2][]byte // of scattered memory, packed, or of a receive before it reduces or unpacks them
	copy    *Copy     // of a device's memory, while its goroutine runs
	before  *Move     // the send whose place in a device's memory a receive takes
	after   *Move     // the inverse
	mover   *Mover
	owner   Owner
}

// The marks of a Move record how much has moved, and how the peer names the Move.
type marks struct {
	other uint64 // by rendezvous: the other side's token
	place uint64 // place of the other side's buffer, or 0
	asked int    // bytes of the message that the receiver has asked for
	got   int    // bytes stored so far, or given to the transport
	until int    // got at the end of the frame that arrives
	due   int    // frames that the transport holds
	turn  int    // which of the chunks is packed next
}

// An Owner is the operation of a Move. Its methods are called with the lock held.
type Owner interface {
	// CopyBegins reports that a goroutine begins to copy the payload from or to a device.
	CopyBegins()
	// CopyEnds reports that the goroutine has ended, with err if the device has failed. stranded
	// reports that the peer then waits in vain.
	CopyEnds(err error, stranded bool)
}

// Init makes m a Move of v.
func (m *Move) Init(v *Mover, o Owner) { m.mover, m.owner = v, o }

// Begin prepares m for another message.
func (m *Move) Begin(s Stage, b mem.Buffer) {
	m.Stage, m.Peer, m.Buf, m.Size, m.marks = s, nil, b, 0, marks{}
	m.exposed, m.combine, m.before, m.after = false, nil, nil, nil
}

// End ends m, whose message has moved, or will not because of err. A false result means that a
// device is still copying: then CopyEnds follows.
func (m *Move) End(err error) bool {
	if m.copy != nil || m.choice != NoChoice {
		return m.end(err)
	}
	if m.chunks[0] != nil {
		m.endChunks(err)
	}
	if m.offered {
		m.offered = false
		m.Peer.Offered--
	}
	m.Stage = Complete
	return true
}

func (m *Move) end(err error) bool {
	if m.copy != nil {
		m.forget()
		m.copy.Stop()
		return false
	}
	m.mover.End(m.Peer.Rank, m.choice, err)
	m.endChunks(err)
	m.Stage, m.choice = Complete, NoChoice
	return true
}

// GiveUp releases m's memory from the transport and the peer. ended: the peer's process has ended.
func (m *Move) GiveUp(ended bool) {
	if m.Peer == nil {
		return
	}
	m.forget()
	m.Recall(ended)
}

// forget makes the transport forget m's memory.
func (m *Move) forget() {
	if m.Token != 0 && m.Peer != nil {
		m.Peer.Forget(m.Token)
	}
}

// HalfWay reports whether m needs an answer of the peer.
func (m *Move) HalfWay() bool {
	return m.Peer != nil && (m.Stage == Announced || m.Stage == Filling || m.Stage == Fetching)
}

// Waits reports whether m needs something of p.
func (m *Move) Waits(p *peers.Peer) bool {
	return m.Peer == p && (m.Stage == Posted || m.Stage == Queued || m.Stage == Announced || m.Stage == Filling)
}

// Asked reports whether the receiver of m has asked for payload.
func (m *Move) Asked() bool { return m.asked > 0 }

// Moved returns a number that grows while the payload of m moves in frames.
func (m *Move) Moved() int { return m.asked + m.got }

// Await has m end with the next Sent for its token.
func (m *Move) Await(p *peers.Peer) { m.Stage, m.Peer, m.due = Leaving, p, 1 }

// Give sends b, of m's payload, with h, and reports whether b may be reused; if not, Sent follows.
func (m *Move) Give(h *transport.Header, b mem.Buffer) bool {
	if m.Peer.Post(h, b, m.Token) {
		return true
	}
	m.due++
	return false
}

// give is Give for payload that a CTS has asked for.
func (m *Move) give(b mem.Buffer) bool {
	return m.Give(m.Peer.Frame(transport.Header{Kind: transport.Data, A: m.other}), b)
}

// Cleared handles a CTS frame for m, which is Announced. A CTS asks for the payload, or for more
// of the payload, and may name the place to store it at. done reports that all has left.
func (m *Move) Cleared(h *transport.Header) (done bool) {
	m.other, m.place = h.B, h.Seq
	if h.Tag > 0 {
		m.asked = min(m.asked+int(h.Tag)*StagingChunk, m.Size)
	} else {
		m.asked = m.Size
	}
	switch {
	case m.copy != nil:
		m.copy.Asked(m.asked)
	case m.Buf.OnDevice():
		m.load()
	case m.Buf.IsScattered():
		return m.supplyPacked()
	case m.place != 0 && m.Peer.Direct != nil && m.got == 0 && m.asked == m.Size:
		// A place counts only for a whole message of which nothing was sent: so the next Sent is
		// of this copy, whatever the peer sends.
		m.Stage = Storing
		m.Peer.Put(m.place, m.Buf.Raw(), m.Token)
	default:
		return m.supply()
	}
	return false
}

// supply sends the part of the payload that a CTS has asked for.
func (m *Move) supply() (done bool) {
	part := m.Buf.Raw().Slice(m.got, m.asked)
	if m.got = m.asked; m.got == m.Size {
		m.Stage = Leaving
	}
	m.give(part)
	return m.left()
}

// left reports whether all of a send has left.
func (m *Move) left() bool { return m.Stage == Leaving && m.due == 0 && m.copy == nil }

// Sent handles that a transport has released memory of m. done reports that all of m has moved.
// lost, if not nil, is why the peer cannot be reached: then the caller decides the fate of m.
func (m *Move) Sent(err error) (done bool, lost error) {
	switch {
	case m.Stage == Fetching || m.Stage == Storing:
		return m.reached(err)
	case m.due == 0:
		return false, nil
	case err != nil:
		return false, err
	}
	if m.released(); m.got < m.asked && m.Buf.IsScattered() {
		return m.supplyPacked(), nil
	}
	return m.left(), nil
}

// released notes that the transport has released the buffer of a frame.
func (m *Move) released() {
	if m.due > 0 {
		m.due--
	}
	if m.copy != nil {
		m.copy.Returned()
	}
}

// Hang keeps m, whose peer Sent has reported as lost, until its fate is known.
func (m *Move) Hang() {
	if m.released(); m.copy == nil {
		m.Stage = Queued
	}
}

// Fetch gets the payload of an announced message: m copies the payload from the announced place, if
// any, or requests it with the token.
func (m *Move) Fetch(token, place uint64) {
	p := m.Peer
	m.other = token
	switch whole := m.Size <= m.Buf.Size() && m.Buf.IsHost() && p.Direct != nil; {
	case whole && place != 0 && p.Getter != nil && m.fetches(place):
		m.Stage = Fetching
		m.expose()
		p.Get(place, m.Buf.Raw().Slice(0, m.Size), m.Token)
	case whole:
		m.clear(m.expose())
	default:
		m.Request(token)
	}
}

// Request asks for the payload of a message that was announced with a token.
func (m *Move) Request(token uint64) {
	m.Stage, m.other = Filling, token
	if !m.ToDevice(m.Size) {
		m.clear(0)
		return
	}
	m.store()
}

// clear asks the sender of an announced message for the payload, in frames or at a place.
func (m *Move) clear(place uint64) {
	m.Stage, m.asked = Filling, m.Size
	m.Peer.SendHeader(transport.Header{Kind: transport.CTS, A: m.other, B: m.Token, Seq: place})
}

// Expects reports whether m waits for a Data frame with n bytes.
func (m *Move) Expects(n int64) bool {
	if m.Stage != Filling || n == 0 && m.Size > 0 {
		return false
	}
	if m.copy != nil {
		return n <= int64(m.copy.Expected())
	}
	return n <= int64(m.asked-m.got)
}

// Arrives begins a frame of n bytes of payload, and returns the memory for the first of them. done
// reports that the rest of the message does not fit, and is dropped.
func (m *Move) Arrives(n int) (window mem.Buffer, done bool) {
	m.Stage, m.until = Filling, m.got+n
	if m.copy == nil && m.ToDevice(n) {
		m.StoreEager(m.mover.Scratch.Get(n), 0)
	}
	if m.copy != nil {
		return m.copy.Arrives(n), false
	}
	switch {
	case n == 0:
	case m.combine != nil:
		m.chunks[0] = m.mover.Scratch.Get(min(n, arriveChunk))
	case m.Buf.IsScattered():
		m.chunks[0] = m.mover.Scratch.Get(min(n, unpackChunk))
	}
	window = m.window()
	return window, window.Len() == 0
}

// Filled notes that the window has been filled. The result is the next window, or that the message
// is done, as far as the message fits.
func (m *Move) Filled() (window mem.Buffer, done bool, err error) {
	if m.copy != nil {
		return m.copy.Filled(), false, nil
	}
	window = m.window()
	if m.chunks[0] != nil {
		err = m.put(m.got, window)
	}
	m.got += window.Size()
	if done = m.got == min(m.Size, m.Buf.Size()) || err != nil; done {
		return mem.Buffer{}, true, err
	}
	if m.got == m.until { // of a message in several frames
		m.endChunks(nil)
	}
	return m.window(), false, nil
}

// window returns the memory for the next bytes, and moves no mark. Empty: the rest does not fit.
func (m *Move) window() mem.Buffer {
	end := min(m.until, m.Buf.Size())
	if c := m.chunks[0]; c != nil {
		return mem.Bytes(c[:min(len(c), end-m.got)])
	}
	return m.Buf.Raw().Slice(m.got, end)
}

// Store stores a whole payload, of a message that does not go ToDevice.
func (m *Move) Store(data []byte) error {
	if m.combine == nil && m.Buf.IsHost() {
		copy(m.Buf.HostSlice(), data)
		return nil
	}
	if m.combine == nil {
		data = data[:min(len(data), m.Buf.Size())]
	}
	return m.put(0, mem.Bytes(data))
}
