package comm

import (
	"context"
	"slices"
	"sync/atomic"

	"gompi/comm/internal/call"
	"gompi/comm/internal/engine"
	"gompi/comm/internal/hier"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmcoll"
	"gompi/comm/internal/shmsync"
	"gompi/comm/internal/symheap"
	"gompi/internal/boot"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport/shm"
)

// A hostMemory is what a rank shares with the others of its host, for rooms; nil
// where it shares nothing.
type hostMemory struct {
	info  *boot.Info
	local map[world.Rank]world.LocalRank
	pool  *shmsync.Pool
	heap  *symheap.Heap
	limit func() seg.Limit
	shm   *shm.Transport
	late  loans // to be freed, but a peer may still write there
}

// sweep does what has waited for peers to have done with memory of this rank, where they
// have.
func (m *hostMemory) sweep(e *engine.Engine) {
	m.pool.Sweep()
	m.late.mu.Lock()
	defer m.late.mu.Unlock()
	m.late.all = slices.DeleteFunc(m.late.all, func(x loan) bool { return m.free(e, x) })
}

// How often a rank looks at a word before it lets others go on: some microseconds,
// if ranks do not outnumber processors, or else just once more than none.
const (
	patientLooks = 8000
	crowdedLooks = 2
)

func looks(v *engine.Vigil) int {
	if v.Patient() {
		return patientLooks
	}
	return crowdedLooks
}

// newHostMemory returns what the rank can share whose transport is t, nil if that is
// nothing.
func newHostMemory(info *boot.Info, t *shm.Transport) *hostMemory {
	s := info.Segment
	if s.Ranks() > path.MaxShared || s.Arena(info.LocalRank) == nil {
		return nil
	}
	m := &hostMemory{info: info, local: localRanks(s), limit: seg.MemoryLimit, shm: t}
	blocks, heap := symheap.Divide(s.Arena(info.LocalRank))
	m.pool = shmsync.NewPool(blocks, path.LargeBuffer(s.Ranks()),
		func(off, n int) error { return s.ClaimArena(info.LocalRank, off, n) }, endedOf(info))
	m.heap = symheap.NewHeap(heap,
		func(off, n int) error { return s.ClaimHuge(info.LocalRank, len(blocks)+off, n) },
		func(off, n int) error { return s.ReleaseArena(info.LocalRank, len(blocks)+off, n) })
	return m
}

// take takes a block for a communicator to be made, 0 if there is no memory for one.
func (p *process) take() shmsync.Token {
	if p.memory == nil {
		return 0
	}
	t, err := p.memory.pool.Take()
	if err != nil {
		p.log.Warn("no shared memory for the collectives of a communicator: messages have to do", "err", err)
	}
	return t
}

func (p *process) give(t shmsync.Token) {
	if p.memory != nil {
		p.memory.pool.Give(t)
		p.memory.sweep(p.e)
	}
}

// furnish gives c what its collectives go through, where its members, of which there
// are several, have all taken blocks for it: a room, which is a shmcoll.Comm, if they are on one
// host, rooms in a hierarchy if some of them are. All see the same blocks, and so find the same.
func (c *Comm) furnish(mine shmsync.Token, blocks []shmsync.Token) {
	c.block = mine
	hosts := c.hosts()
	shared := len(blocks) > 1 && allTaken(hosts, blocks)
	t := path.Topology{Ranks: c.Size(), Devices: !c.onHost, NCCL: c.exec.NCCL != nil}
	t.Shared = shared && len(hosts) == 1
	t.Hier = shared && len(hosts) > 1 && len(hosts) < len(blocks)
	t.Even, t.Packed = hier.Shape(hosts)
	if t.Shared {
		t.LargeBuffer = path.LargeBuffer(c.memory.info.Segment.Ranks())
	}
	c.exec.Paths = path.New(t, c.rules)
	switch {
	case t.Shared:
		c.furnishRoom(hosts[0], blocks)
	case t.Hier:
		c.furnishHier(hosts, blocks)
	}
}

// allTaken reports whether all ranks that share a host have taken blocks.
func allTaken(hosts [][]int, blocks []shmsync.Token) bool {
	for _, ranks := range hosts {
		for _, r := range ranks {
			if blocks[r] == 0 && len(ranks) > 1 {
				return false
			}
		}
	}
	return true
}

// furnishRoom gives c a room.
func (c *Comm) furnishRoom(ranks []int, blocks []shmsync.Token) {
	c.port = port{Vigil: c.ch.Vigil(), shm: c.memory.shm, locals: c.locals(ranks), rec: c.rec, id: c.ch.ID}
	var p shmsync.Port = &c.port
	if c.rounds = c.rules.Tunes(); c.rounds {
		c.inner = c.newInnerPort(ranks)
		p = &c.inner
	} else {
		c.exec.Waits = &c.port
	}
	c.exec.Room = c.newRoom(ranks, blocks, c.exec.Paths, p)
	c.furnishDevices(c.exec.Room)
}

// furnishHier gives c a hierarchy, with a room for the ranks of this host if there are several.
func (c *Comm) furnishHier(hosts [][]int, blocks []shmsync.Token) {
	mine := hosts[slices.IndexFunc(hosts, func(ranks []int) bool { return slices.Contains(ranks, c.Rank()) })]
	t := path.Topology{Ranks: len(mine)}
	var room *shmcoll.Comm
	if t.Shared = len(mine) > 1; t.Shared {
		t.LargeBuffer = path.LargeBuffer(c.memory.info.Segment.Ranks())
	}
	inside := path.New(t, c.rules.Untuned())
	if t.Shared {
		c.inner = c.newInnerPort(mine)
		room = c.newRoom(mine, blocks, inside, &c.inner)
	}
	c.exec.Hier = hier.New(hosts, c.ch.Round(), room, inside, c.rules)
	c.furnishDevices(room)
}

// hosts returns c's ranks by host, in order. The hosts are in the order of their
// first ranks.
func (c *Comm) hosts() (hosts [][]int) {
	at := map[int]int{}
	for r := range c.Size() {
		n := c.boot.Info().NodeIndex(c.ch.World(r))
		h, ok := at[n]
		if !ok {
			h = len(hosts)
			at[n], hosts = h, append(hosts, nil)
		}
		hosts[h] = append(hosts[h], r)
	}
	return hosts
}

// newRoom returns the room of the given ranks, all of c that are on this host, with
// the blocks that c's ranks have taken. It is used by paths.
func (c *Comm) newRoom(ranks []int, blocks []shmsync.Token, paths *path.Selector, p shmsync.Port) *shmcoll.Comm {
	m, me := c.memory, slices.Index(ranks, c.Rank())
	s := m.info.Segment
	parts, heaps, locals := make([]shmsync.Part, len(ranks)), make([][]byte, len(ranks)), c.locals(ranks)
	own, claim := m.pool.Own(c.block)
	for i, r := range ranks {
		var theirs []byte
		if theirs, heaps[i] = symheap.Divide(s.Arena(locals[i])); i == me {
			parts[i] = own
		} else {
			parts[i] = m.pool.Enter(c.block, c.ch.World(r), theirs, blocks[r])
		}
	}
	return shmcoll.New(shmsync.New(me, parts, claim, paths.LargeBuffer, paths.Gated(), p), heaps, paths)
}

// locals returns the local ranks of some ranks of this host.
func (c *Comm) locals(ranks []int) []world.LocalRank {
	locals := make([]world.LocalRank, len(ranks))
	for i, r := range ranks {
		locals[i] = c.memory.local[c.ch.World(r)]
	}
	return locals
}

// A port connects a room, of which all collectives of a communicator are, with the rest
// of its rank.
type port struct {
	*engine.Vigil
	shm    *shm.Transport
	locals []world.LocalRank // by member
	rec    *seg.Rank
	id     uint64 // of the communicator

	seq    uint64
	a, b   uint64 // the call, as its Words
	bytes  int
	ticket seg.Ticket
}

// next notes the next collective.
func (p *port) next(a, b uint64, bytes int) {
	p.seq++
	p.a, p.b, p.bytes, p.ticket = a, b, bytes, 0
}

// Begun puts the call into the flight recorder. What the others wait for is there, so
// it costs no time.
func (p *port) Begun() {
	p.ticket = p.rec.BeginCollective(p.id, p.a, p.b, p.bytes, p.seq)
	p.Vigil.Noted(p.ticket)
}

func (p *port) Looks() int { return looks(p.Vigil) }

func (p *port) Wake(member int) { p.shm.Wake(p.locals[member]) }

func (p *port) Disagree(member, ago int, mine, theirs shmsync.Call) error {
	return p.Vigil.Disagree(p.seq-uint64(ago), member, call.OfWords(mine.A, mine.B), call.OfWords(theirs.A, theirs.B))
}

func (p *port) DisagreeOn(member, mine, theirs int) error {
	return p.Vigil.DisagreeOn(p.seq, member, mine, theirs)
}

// An innerPort connects a room with the rest of its rank where rounds number the
// collectives: the room is that of some ranks of a communicator, or of some collectives.
type innerPort struct {
	*engine.Vigil
	rd     *engine.Round
	shm    *shm.Transport
	locals []world.LocalRank // by member
	ranks  []int             // in the communicator, by member
}

func (c *Comm) newInnerPort(ranks []int) innerPort {
	return innerPort{c.ch.Vigil(), c.ch.Round(), c.memory.shm, c.locals(ranks), ranks}
}

// begin begins a collective in the room, whose digest of the calls has them all, also
// those that go by messages: then a member that has made another one finds it here.
func (p *innerPort) begin(ctx context.Context, room *shmcoll.Comm, f *call.Fingerprint, ticket seg.Ticket, quiet bool) {
	a, b := f.Words()
	room.Begin(shmsync.Call{A: a, B: b}, quiet)
	p.Vigil.Begin(ctx, a, b, ticket, quiet)
}

// Begun has nothing to do: the call is in the flight recorder.
func (p *innerPort) Begun() {}

func (p *innerPort) Looks() int { return looks(p.Vigil) }

func (p *innerPort) Wake(member int) { p.shm.Wake(p.locals[member]) }

func (p *innerPort) Glance(member int) error { return p.Vigil.Glance(p.ranks[member]) }

func (p *innerPort) Await(word *atomic.Uint64, want uint64, member int) error {
	return p.Vigil.Await(word, want, p.ranks[member])
}

// Disagree finds out in which call the two differ: it may have gone by messages,
// which leave no trace in a room.
func (p *innerPort) Disagree(member, _ int, _, _ shmsync.Call) error {
	return p.Vigil.Dispute(p.ranks[member])
}

func (p *innerPort) DisagreeOn(member, mine, theirs int) error {
	return p.rd.DisagreeOn(p.ranks[member], mine, theirs)
}
