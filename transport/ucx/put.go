package ucx

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

// Messages between memory from comm.Alloc go without a copy: the sender's Put stores the payload in
// the receiver's buffer. Both buffers lie in regions, memory that core has registered and keeps
// until Deregister reports that UCX is done. A put is one or more active messages, its parts, which
// begin with the place. The receiver checks the place when a part arrives: after Recall the
// receiver drops the part. So no peer has a key to this rank's memory, except while UCX transfers a
// part. From other memory parts are copied into chunks, like frames.
//
// The receiver answers the last part, when all have been stored or dropped. Only then the sender
// reports Sent. The parts are in the order of all messages to a peer, so a later frame is delivered
// after the put.

// A region is registered memory; size 0 means unused.
type region struct {
	base uintptr
	size int
}

// A put has not been answered.
type put struct {
	place uint64
	src   []byte
	id    int // of src's region, -1 if none
	sent  int // bytes
	token uint64
}

// puts are the puts to one peer, in order.
type puts struct {
	fifo.Queue[put]
	sent    int  // number of puts whose parts have all been sent
	dropped bool // the peer's present put: a part was dropped
}

var errRegions = errors.New("UCX: too many registered regions of memory, or one too long")

// Register makes b, which must not be memory of Go's heap, reachable by puts. Register costs a
// registration with the devices, which locks the memory. If that fails, Register fails, and
// messages with b are copied like others.
func (t *Transport) Register(b mem.Buffer) error {
	if t.closed { // all ranks use TCP
		return nil
	}
	body := b.HostSlice()
	id := slices.IndexFunc(t.regions, func(r region) bool { return r.size == 0 })
	if id < 0 {
		id = len(t.regions)
	}
	if t.closing || len(body) == 0 || len(body) > ucp.MostRegion || id == ucp.Regions {
		return errRegions
	}
	if err := t.ucp.Register(id, body); err != nil {
		return fmt.Errorf("UCX does not register %d bytes: %w", len(body), explain(err, lockLimit()))
	}
	if id == len(t.regions) {
		t.regions = append(t.regions, region{})
	}
	t.regions[id] = region{uintptr(unsafe.Pointer(unsafe.SliceData(body))), len(body)}
	return nil
}

// Deregister undoes Register. Deregister returns false if UCX may still read or write b: then b
// must stay unchanged until the process ends.
func (t *Transport) Deregister(b mem.Buffer) bool {
	id, _ := t.find(b.HostSlice())
	if t.closed || id < 0 {
		return !t.leaked
	}
	if !t.ucp.Deregister(id) {
		return false
	}
	t.regions[id] = region{}
	return true
}

// find returns b's region and its offset there, or -1.
func (t *Transport) find(b []byte) (id, offset int) {
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for id, r := range t.regions {
		if off := base - r.base; off < uintptr(r.size) && len(b) <= r.size-int(off) {
			return id, int(off)
		}
	}
	return -1, 0
}

// Place implements transport.Direct.
func (t *Transport) Place(peer world.Rank, b mem.Buffer) uint64 {
	if b.Size() == 0 || !b.IsHost() || !t.Reaches(peer) || t.closing {
		return 0
	}
	id, offset := t.find(b.HostSlice())
	if id < 0 {
		return 0
	}
	return ucp.Place(t.ucp.Recalls(), id, offset)
}

// Recall implements transport.Direct.
func (t *Transport) Recall() {
	if !t.closed {
		t.ucp.Recall()
	}
}

// Put implements transport.Direct.
func (t *Transport) Put(peer world.Rank, place uint64, src mem.Buffer, token uint64) {
	p := t.peer(peer)
	if p.lost || t.closing {
		return // the holder of the message knows of the loss, or will
	}
	x := p.puts.Push(put{})
	*x = put{place: place, src: src.HostSlice(), token: token}
	x.id, _ = t.find(x.src)
	t.unsent++
}

// flushPuts sends as many parts of puts as UCX accepts, and returns their number.
func (t *Transport) flushPuts() int {
	n := 0
	for _, p := range t.used {
		for p.open && p.puts.sent < p.puts.Len() {
			x := &p.puts.Items()[p.puts.sent]
			if !t.sendPart(p, x) {
				break
			}
			n++
			if x.sent == len(x.src) {
				p.puts.sent++
				t.unsent--
			}
		}
	}
	return n
}

// sendPart sends the next part of a put. sendPart returns false if UCX refuses the part.
func (t *Transport) sendPart(p *peer, x *put) bool {
	size := ucp.ChunkSize
	if x.id >= 0 {
		size = ucp.PartSize
	}
	part := x.src[x.sent:min(len(x.src), x.sent+size)]
	ucp.PutHead(t.ucp.Header(), x.place, x.sent, x.sent+len(part) == len(x.src))
	if x.id >= 0 && !t.ucp.Put(int(p.rank), x.id, part) || x.id < 0 && !t.ucp.Send(int(p.rank), ucp.Put, part) {
		return false
	}
	x.sent += len(part)
	return true
}

// onPut answers p's put after its last part.
func (t *Transport) onPut(p *peer, m *ucp.Message) {
	p.puts.dropped = p.puts.dropped || m.Dropped
	if ucp.LastPart(m.Head) {
		answer := []byte{0}
		if p.puts.dropped {
			answer[0] = 1
		}
		p.puts.dropped = false
		t.ucp.Send(int(p.rank), ucp.Stored, answer)
	}
}

// onStored ends the put that p has answered.
func (t *Transport) onStored(p *peer, m *ucp.Message) {
	if p.puts.sent == 0 || len(m.Head) != 1 {
		t.lose(p, fmt.Errorf("%w: the answer to no put", transport.ErrProtocol))
		return
	}
	p.puts.sent--
	var err error
	if m.Head[0] != 0 {
		err = transport.ErrRecalled
	}
	t.endPut(p.puts.Pop(), err)
}

// endPut reports the end of a put that was not forgotten.
func (t *Transport) endPut(x put, err error) {
	if x.token != 0 {
		t.sink.Sent(x.token, err)
	}
}

// forgetPut stops the put with a token from reading its source, except where UCX is already reading
// from a region.
func (t *Transport) forgetPut(p *peer, token uint64) {
	items := p.puts.Items()
	i := slices.IndexFunc(items, func(x put) bool { return x.token == token })
	if i < 0 {
		return
	}
	items[i].token = 0
	if i >= p.puts.sent { // an empty last part ends the put
		items[i].src, items[i].sent, items[i].id = nil, 0, -1
	}
}

// endPuts ends all puts to p.
func (t *Transport) endPuts(p *peer, err error) {
	t.unsent -= p.puts.Len() - p.puts.sent
	p.puts.sent = 0
	for !p.puts.Empty() {
		t.endPut(p.puts.Pop(), err)
	}
}
