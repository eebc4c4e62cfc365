package devcoll

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"gompi/internal/mem"
)

// evidenceSize is how many random bytes at the beginning of an arena prove it: a page, so that all
// threads of some warps load some. The smallest arena is many times as long.
const evidenceSize = 4096

// evidence returns the random bytes that follow from nonce.
func evidence(nonce uint64) []byte {
	b, chance := make([]byte, evidenceSize), rand.NewPCG(nonce, 0)
	for i := range b {
		b[i] = byte(chance.Uint64())
	}
	return b
}

// prove makes sure that this member's device reads what member j has stored in its arena. It does
// not suffice that the driver maps the memory, nor that the host can read it: such a copy may go
// through the host where devices do not reach each other. And behind an IOMMU, devices may map each
// other's memory without an error and read something else. So the device does what collectives do,
// a copy and a kernel's loads, which different engines do, into this member's own arena, and the
// host checks only that arena.
func (c *Comm) prove(j int, offers []offer) error {
	q, own := c.streams[taking], c.arenas[c.team.Me()]
	mine, theirs := evidence(offers[c.team.Me()].nonce), evidence(offers[j].nonce)
	page := func(arena mem.Buffer, i int) mem.Buffer { return arena.Slice(i*evidenceSize, (i+1)*evidenceSize) }
	const copied, added = 1, 2 // pages of the own arena, behind its evidence
	got := make([]byte, 2*evidenceSize)
	err := errors.Join(
		q.Copy(page(own, copied), page(c.arenas[j], 0)),
		q.Reduce(mem.Sum, page(own, added), page(own, 0), page(c.arenas[j], 0)),
		q.Sync(),
	)
	if err == nil {
		err = c.space.Copy(mem.Bytes(got), own.Slice(copied*evidenceSize, (added+1)*evidenceSize))
	}
	if err != nil {
		return err
	}
	for i, want := range theirs {
		switch sum := got[evidenceSize+i] - mine[i]; {
		case got[i] != want:
			return fmt.Errorf("copies on the device find %#x where that rank stored %#x", got[i], want)
		case sum != want:
			return fmt.Errorf("kernels load %#x where that rank stored %#x", sum, want)
		}
	}
	return nil
}
