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

// A hostMemory is the memory that a rank shares with the others of its host; nil
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

// sweep frees memory of this rank to which peers have stopped writing.
func (m *hostMemory) sweep(e *engine.Engine) {
	m.pool.Sweep()
	m.late.mu.Lock()
	defer m.late.mu.Unlock()
	m.late.all = slices.DeleteFunc(m.late.all, func(x loan) bool { return m.free(e, x) })
}

// How often a rank polls a flag before it yields: for some microseconds, or just twice where ranks
// outnumber processors.
const (
	spinLooks           = 8000
	oversubscribedLooks = 2
)

func looks(v *engine.FlagWait) int {
	if v.Spins() {
		return spinLooks
	}
	return oversubscribedLooks
}

// newHostMemory returns the memory that a rank shares, whose transport is t, nil if it shares none.
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

// take takes a block of shared memory for a new communicator. It returns 0 if there is none.
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

// withhold gives t back when nobody can read it any more as a block of a communicator that other
// ranks of c have made with this one, which has failed meanwhile.
func (c *Comm) withhold(t shmsync.Token) {
	if t != 0 {
		c.memory.pool.Withhold(t, c.block)
	}
}

// setUp prepares c's collectives, if it has several members and all of them that share a host have
// taken blocks for it: through shared memory if all are on one host, hierarchical if some of them
// are. All ranks see the same blocks, and so conclude the same.
func (c *Comm) setUp(mine shmsync.Token, blocks []shmsync.Token) {
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
		c.setUpShared(hosts[0], blocks)
	case t.Hier:
		c.setUpHier(hosts, blocks)
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

// setUpShared prepares collectives through shared memory of all ranks.
func (c *Comm) setUpShared(ranks []int, blocks []shmsync.Token) {
	c.port = port{FlagWait: c.ch.FlagWait(), shm: c.memory.shm, locals: c.locals(ranks), rec: c.rec, id: c.ch.ID}
	var p shmsync.Port = &c.port
	if c.rounds = c.rules.Tunes(); c.rounds {
		c.inner = c.newInnerPort(ranks)
		p = &c.inner
	} else {
		c.exec.Waits = &c.port
	}
	c.exec.Shared = c.newShared(ranks, blocks, c.exec.Paths, p)
}

// setUpHier prepares hierarchical collectives, through shared memory inside this host if several of
// the ranks are here.
func (c *Comm) setUpHier(hosts [][]int, blocks []shmsync.Token) {
	mine := hosts[slices.IndexFunc(hosts, func(ranks []int) bool { return slices.Contains(ranks, c.Rank()) })]
	t := path.Topology{Ranks: len(mine)}
	var shared *shmcoll.Comm
	if t.Shared = len(mine) > 1; t.Shared {
		t.LargeBuffer = path.LargeBuffer(c.memory.info.Segment.Ranks())
	}
	inside := path.New(t, c.rules.Untuned())
	if t.Shared {
		c.inner = c.newInnerPort(mine)
		shared = c.newShared(mine, blocks, inside, &c.inner)
	}
	c.exec.Hier = hier.New(hosts, c.ch.Round(), shared, inside, c.rules)
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

// newShared returns the shared-memory collectives of the given ranks, all of c that are on this
// host, with the blocks that c's ranks have taken. paths chooses their Paths.
func (c *Comm) newShared(ranks []int, blocks []shmsync.Token, paths *path.Selector, p shmsync.Port) *shmcoll.Comm {
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
	team := shmsync.New(c.ch.ID, me, parts, claim, paths.LargeBuffer, paths.Gated(), p)
	return shmcoll.New(team, heaps, crossMemory{m.shm.CrossMemory(), locals}, paths)
}

// A crossMemory reaches memory that only one member maps.
type crossMemory struct {
	*shm.CrossMemory
	locals []world.LocalRank // by member
}

func (m crossMemory) Reaches(member int) bool { return m.CrossMemory.Reaches(m.locals[member]) }

func (m crossMemory) Read(member int, dst []byte, from uintptr) error {
	return m.CrossMemory.Read(m.locals[member], dst, from)
}

func (m crossMemory) Write(member int, src []byte, to uintptr) error {
	return m.CrossMemory.Write(m.locals[member], src, to)
}

// locals returns the local ranks of some ranks of this host.
func (c *Comm) locals(ranks []int) []world.LocalRank {
	locals := make([]world.LocalRank, len(ranks))
	for i, r := range ranks {
		locals[i] = c.memory.local[c.ch.World(r)]
	}
	return locals
}

// A port connects a shmcoll.Comm that does all collectives of a communicator with the rest of its
// rank.
type port struct {
	*engine.FlagWait
	shm    *shm.Transport
	locals []world.LocalRank // by member
	rec    *seg.Rank
	id     uint64 // of the communicator

	seq    uint64
	a, b   uint64 // the call, as its Words
	bytes  int
	ticket seg.Ticket
}

// next sets the next collective.
func (p *port) next(a, b uint64, bytes int) {
	p.seq++
	p.a, p.b, p.bytes, p.ticket = a, b, bytes, 0
}

// Begun records the call in the flight recorder. The other ranks have their data already, so this
// delays none.
func (p *port) Begun() {
	p.ticket = p.rec.BeginCollective(p.id, p.a, p.b, p.bytes, p.seq)
	p.FlagWait.SetTicket(p.ticket)
}

func (p *port) Looks() int { return looks(p.FlagWait) }

func (p *port) Wake(member int) { p.shm.Wake(p.locals[member]) }

func (p *port) Disagree(member, ago int, mine, theirs shmsync.Call) error {
	return p.FlagWait.Disagree(p.seq-uint64(ago), member, call.OfWords(mine.A, mine.B), call.OfWords(theirs.A, theirs.B))
}

func (p *port) DisagreeOn(member, mine, theirs int) error {
	return p.FlagWait.DisagreeOn(p.seq, member, mine, theirs)
}

// An innerPort connects a shmcoll.Comm with the rest of its rank where rounds number the
// collectives: it serves some ranks of a communicator, or some collectives.
type innerPort struct {
	*engine.FlagWait
	rd     *engine.Round
	shm    *shm.Transport
	locals []world.LocalRank // by member
	ranks  []int             // in the communicator, by member
}

func (c *Comm) newInnerPort(ranks []int) innerPort {
	return innerPort{c.ch.FlagWait(), c.ch.Round(), c.memory.shm, c.locals(ranks), ranks}
}

// begin begins a collective in shared memory. Its digest counts all calls, those that go by
// messages too, so that calls that differ are found here.
func (p *innerPort) begin(ctx context.Context, shared *shmcoll.Comm, f *call.Fingerprint, ticket seg.Ticket, quiet bool) {
	a, b := f.Words()
	shared.Begin(shmsync.Call{A: a, B: b}, quiet)
	p.FlagWait.Begin(ctx, a, b, ticket, quiet)
}

// Begun has nothing to do: the call is in the flight recorder.
func (p *innerPort) Begun() {}

func (p *innerPort) Looks() int { return looks(p.FlagWait) }

func (p *innerPort) Wake(member int) { p.shm.Wake(p.locals[member]) }

func (p *innerPort) Unreachable(member int, err error) error {
	return p.FlagWait.Unreachable(p.ranks[member], err)
}

func (p *innerPort) TryProgress(member int) error { return p.FlagWait.TryProgress(p.ranks[member]) }

func (p *innerPort) Gone(member int) bool { return p.FlagWait.Gone(p.ranks[member]) }

func (p *innerPort) Await(word *atomic.Uint64, want uint64, member int) error {
	return p.FlagWait.Await(word, want, p.ranks[member])
}

// Disagree finds the call in which the two ranks differ. It may have gone by messages, of which
// shared memory knows nothing.
func (p *innerPort) Disagree(member, _ int, _, _ shmsync.Call) error {
	return p.FlagWait.Dispute(p.ranks[member])
}

func (p *innerPort) DisagreeOn(member, mine, theirs int) error {
	return p.rd.DisagreeOn(p.ranks[member], mine, theirs)
}
