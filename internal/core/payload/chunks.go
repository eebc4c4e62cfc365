package payload

import "gompi/internal/mem"

// The processor's work on a payload: packing and unpacking of scattered memory, and reductions.
// Other than a device's (copy.go), this work is done at once by the polling goroutine, in chunks
// that stay in the second-level cache.

const (
	// packChunk is the number of bytes packed and sent at a time, with two such chunks under way.
	// In shared memory a chunk is shorter: a frame of a single record is unpacked from the ring.
	packChunk, packChunkInline = 64 << 10, 12 << 10
	// arriveChunk is the bytes received before a reduction, unpackChunk before an unpacking.
	arriveChunk, unpackChunk = 128 << 10, 16 << 10
)

// Pack packs all of a short message in scattered memory, and returns the packed buffer to send.
func (m *Move) Pack() mem.Buffer {
	m.chunks[0] = m.mover.Scratch.Get(m.Size)
	packed := mem.HostLike(m.Buf, m.Buf.Len(), m.chunks[0])
	if err := mem.Copy(packed, m.Buf); err != nil {
		panic(err) // of lengths that differ, which do not
	}
	m.Buf = packed
	return packed
}

// supplyPacked is supply for scattered memory: it sends as many chunks as there is room for, and is
// called again when the transport releases a chunk. If the transport holds a chunk but has copied
// the next, a further chunk would overwrite the held chunk, so supplyPacked stops.
func (m *Move) supplyPacked() (done bool) {
	for held, copied := m.due, false; m.got < m.asked && m.due < len(m.chunks) && !(copied && held > 0); {
		held = m.due
		copied = m.give(m.pack())
	}
	return m.left()
}

// pack returns the next chunk.
func (m *Move) pack() mem.Buffer {
	most := packChunk
	if m.Peer.Inline() {
		most = packChunkInline
	}
	chunk := &m.chunks[m.turn]
	m.turn = 1 - m.turn
	if *chunk == nil {
		*chunk = m.mover.Scratch.Get(min(packChunk, m.Size))
	}
	n := min(most, m.asked-m.got)
	packed := mem.Bytes((*chunk)[:n])
	if err := mem.Copy(packed, m.Buf.Raw().Slice(m.got, m.got+n)); err != nil {
		panic(err) // of lengths that differ, which do not
	}
	if m.got += n; m.got == m.Size {
		m.Stage = Leaving
	}
	return packed
}

// Take is Arrives and Filled for a frame that has arrived as a whole: it unpacks or reduces data.
func (m *Move) Take(data []byte) (done bool, err error) {
	data = data[:min(len(data), m.Buf.Size()-m.got)]
	err = m.put(m.got, mem.Bytes(data))
	m.got += len(data)
	return m.got == min(m.Size, m.Buf.Size()) || err != nil, err
}

// put unpacks or reduces the part of the payload that has arrived from off on.
func (m *Move) put(off int, in mem.Buffer) error {
	if m.combine != nil {
		return m.combine.reduce(m.Buf, off, in)
	}
	return mem.Copy(m.Buf.Raw().Slice(off, off+in.Size()), in)
}

// endChunks gives the chunks back, unless a transport may still know them.
func (m *Move) endChunks(err error) {
	for i, c := range m.chunks {
		if c != nil && err == nil {
			m.mover.Scratch.Put(c)
		}
		m.chunks[i] = nil
	}
}
