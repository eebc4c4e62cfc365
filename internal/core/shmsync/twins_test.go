package shmsync

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/mpi/libmpi/twins"
)

// Payloads of random lengths are laid into both bounce buffers that C has, by Go and by C.
func TestPlacesOfPayloadsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	for name, g := range map[string]struct {
		ring
		most int
	}{
		"small":     {ring{at: smallAt, size: smallSize}, smallMost},
		"l2":        {ring{at: l2At, size: l2Size}, l2Size / 4},
		"exchanged": {ring{at: smallAt, size: smallSize, turn: 1}, smallMost},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		memory := unsafe.Slice((*byte)(unsafe.Pointer(&g.ring)), unsafe.Sizeof(g.ring))
		inC := append(bytes.Clone(memory), make([]byte, 8)...)
		for s := uint64(1); s < 2000; s++ {
			n := min(InHead+1+r.IntN(1<<r.IntN(15)), g.most)
			p := place{after: s - min(s, depth)}
			g.lay(&p, s, n, g.turn > 0)
			at := c.Call("team_lay", inC, s, uint64(n))
			after := binary.NativeEndian.Uint64(inC[len(memory):])
			if at != uint64(p.off|p.exchanged<<32) || after != p.after || !bytes.Equal(inC[:len(memory)], memory) {
				t.Fatalf("%s: step %d of %d bytes lies at %d in Go, at %d in C, behind step %d and %d; Go leaves %x, C %x",
					name, s, n, p.off, at, p.after, after, memory, inC[:len(memory)])
			}
		}
	}
}
