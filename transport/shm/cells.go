package shm

import (
	"encoding/binary"
	"unsafe"

	"gompi/transport"
)

// Two ranks share cells for long payloads. A payload in a cell is published by a record of a single
// line, which names the cell, and whoever has read the payload owns the cell: the next long payload
// the other way goes where this rank has just read, in lines that its cache holds. Lines that the
// other rank has read last would have to be taken back from its cache, or left to fall out of it
// (half a round trip of 64 KiB between two bare processes on an AMD EPYC 25/17, us: near 3.0 in a
// ring of 2 MiB for each direction, 10 in 64 KiB each, 2.5 in 64 KiB for both; far 29, 32 and 5.1,
// by non-temporal stores 7.2). A rank without a cell, as behind a stream that is not answered,
// writes to its ring. So nobody waits for a cell, or gives one back. Cells lie behind the rings. At
// first each rank owns the cells behind its own ring.
//
// The owner alone touches a cell: until it publishes the record, behind the payload, as all records
// are. The reader loads the word before the payload, and fills the cell only after that.

const (
	// cellSize is the bytes of a cell: one is filled while the one before is read (latency near in
	// cells of 8 and 16 KiB: 16 KiB 1.03 and 1.15 us, 64 KiB 3.1 and 2.9). Cells are filled whole:
	// else the two ranks would each own a part (64 KiB in cells of which some have 8 KiB: 4.9).
	//
	//c:const GOMPI_RING_
	cellSize = 16 << 10
	// ringCells is the largest number of cells behind a ring (latency near, with 16 and 32: 256 KiB
	// 10.9 and 10.8 us, 1 MiB 48.4 and 43.5).
	ringCells = 32
)

// cellBytes returns the bytes of the cells behind each ring of n ranks.
func cellBytes(n int) int { return min(ringSize(n)/4/cellSize, ringCells) * cellSize }

// cells are the cells that a rank shares with a peer.
//
//c:struct gompi_cells
type cells struct {
	//c:type uint8_t *
	mem   [2]*byte // behind the ring to the peer, and behind the other
	most  uint32   // the number behind each
	n     uint32   // of owned, the last of which has been read last
	owned [2 * ringCells]byte
	read  byte                 // the cell of the record that next returned
	asked bool                 // for this rank's own cells
	fit   bool                 // the present frame is not longer than all cells
	claim func() (exists bool) // of the cells behind the ring to the peer
}

// A cell is named by its number behind its ring, doubled, plus 1 if that is the ring that does not
// carry the record.
func (c *cells) at(name byte) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(c.mem[name&1]), int(name>>1)*cellSize)), cellSize)
}

// has reports whether this rank owns a cell.
func (c *cells) has() bool {
	if !c.asked {
		if c.asked = true; c.most > 0 && c.n <= c.most && c.claim() {
			copy(c.owned[c.most:], c.owned[:c.n])
			for i := range c.most {
				c.owned[i] = byte(2 * i)
			}
			c.n += c.most
		}
	}
	return c.n > 0
}

// fill writes a record with as much of body as a cell holds, the first of a frame with header h
// unless that is nil. It returns the number of bytes taken from body: 0 without a cell.
func (w *writer) fill(h *transport.Header, body []byte) int {
	c := w.cells
	if h != nil {
		c.fit, w.awaited = len(body) <= int(2*c.most)*cellSize, w.seen == w.tail
	}
	if len(body) < chosenFrom || !c.fit || !c.has() || w.room() < lineSize {
		return 0
	}
	c.n--
	name, n := c.owned[c.n], min(len(body), cellSize)
	copies[0](c.at(name), body[:n])
	kind, head, content := more, 0, w.mem[w.at(w.tail)+wordSize:]
	if h != nil {
		h.Encode(content)
		kind, head = first, transport.HeaderSize
	}
	binary.NativeEndian.PutUint64(content[head:], uint64(n)<<8|uint64(name))
	w.turns = w.turns && n == len(body) // a lap that ends within a frame leaves too little room
	w.publish(kind|inCell, head+wordSize)
	w.turns = w.turns && n == len(body)
	return n
}

// next returns the next record: its kind, the header of a frame's first record, and the payload.
func (p *peer) next() (kind int, head, body []byte) {
	kind, body = p.r.next()
	if p.behind && kind > 0 && len(body) <= mostFetched {
		p.r.fetch(body)
	}
	if p.behind = kind > 0; kind == first {
		head, body = body[:transport.HeaderSize], body[transport.HeaderSize:]
	}
	if kind > 0 && p.r.cell {
		if body = p.cells.named(body); body == nil {
			kind = -1
		}
	}
	return kind, head, body
}

// named returns the payload in the cell that a record names, nil if there is no such cell.
func (c *cells) named(record []byte) []byte {
	if len(record) != wordSize {
		return nil
	}
	word := binary.NativeEndian.Uint64(record)
	if c.read = byte(word) ^ 1; uint32(c.read>>1) >= c.most || word>>8 > cellSize {
		return nil
	}
	return c.at(c.read)[:word>>8]
}

// done gives the place of a record back to its writer, and takes its cell. It reports whether it
// returned credit.
func (p *peer) done() (credited bool) {
	if c := &p.cells; p.r.cell && c.n < uint32(len(c.owned)) {
		c.owned[c.n] = c.read
		c.n++
	}
	credited = p.r.done()
	p.w.noteRead(p.r.read)
	p.w.read = p.r.pos
	return credited
}
