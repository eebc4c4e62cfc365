package comm

import (
	"gompi/comm/internal/engine"
	"gompi/comm/internal/node"
	"gompi/internal/boot"
	"gompi/transport/shm"
)

// A hostMemory is what a rank shares with the others of its host, for rooms; nil
// where it shares nothing.
type hostMemory struct {
	info  *boot.Info
	local map[int]int // local ranks by world rank
	pool  *node.Pool
	shm   *shm.Transport
	looks int
}

// How often a rank looks at a word before it lets others go on: some microseconds,
// if ranks do not outnumber processors, or else just once more than none.
const (
	patientLooks = 8000
	crowdedLooks = 2
)

// newHostMemory returns what the rank can share whose transport is t, nil if that is
// nothing.
func newHostMemory(info *boot.Info, t *shm.Transport) *hostMemory {
	s := info.Segment
	if s.Ranks() > node.MaxRanks || s.Arena(info.LocalRank) == nil {
		return nil
	}
	m := &hostMemory{info: info, local: localRanks(s), shm: t, looks: crowdedLooks}
	claim := func(off, n int) error { return s.ClaimArena(info.LocalRank, off, n) }
	m.pool = node.NewPool(s.Arena(info.LocalRank), s.Ranks(), claim, leftOf(info))
	return m
}

// take takes a block for a communicator to be made, 0 if there is no memory for one.
func (p *process) take() node.Token {
	if p.memory == nil {
		return 0
	}
	t, err := p.memory.pool.Take()
	if err != nil {
		p.log.Warn("no shared memory for the collectives of a communicator: messages have to do", "err", err)
	}
	return t
}

func (p *process) give(t node.Token) {
	if p.memory != nil {
		p.memory.pool.Give(t)
	}
}

// furnish gives c its room, if each of its members, of which there are several, has
// taken a block for it on this host. All members see the same blocks, and so find
// the same.
func (c *Comm) furnish(mine node.Token, blocks []node.Token) {
	m := c.memory
	if c.block = mine; m == nil || c.table.Tuned || len(blocks) == 1 {
		return
	}
	for r, t := range blocks {
		if t == 0 || m.info.NodeIndex(c.ch.World(r)) != m.info.Node {
			return
		}
	}
	s := m.info.Segment
	parts, locals := make([]node.Part, len(blocks)), make([]int, len(blocks))
	own, claim := m.pool.Own(mine)
	for r, t := range blocks {
		if r == c.Rank() {
			parts[r] = own
			continue
		}
		world := c.ch.World(r)
		locals[r] = m.local[world]
		parts[r] = m.pool.Enter(mine, world, s.Arena(locals[r]), t)
	}
	c.port = port{c.ch.Vigil(), m.shm, locals, 0}
	c.room = node.New(c.Rank(), parts, node.StageSize(s.Ranks()), claim, c.table.Deterministic, c.table.Crowded, m.looks, &c.port)
}

// A port connects a room with the rest of its rank.
type port struct {
	*engine.Vigil
	shm    *shm.Transport
	locals []int // by member
	seq    uint64
}

func (p *port) Wake(member int) { p.shm.Wake(p.locals[member]) }

func (p *port) Disagree(member int, mine, theirs node.Call) error {
	return p.Vigil.Disagree(p.seq, member, engine.CallOf(mine.A, mine.B), engine.CallOf(theirs.A, theirs.B))
}

func (p *port) DisagreeOn(member, mine, theirs int) error {
	return p.Vigil.DisagreeOn(p.seq, member, mine, theirs)
}
