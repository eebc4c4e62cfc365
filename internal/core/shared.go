package core

import (
	"slices"
	"unsafe"

	"gompi/internal/boot"
	"gompi/internal/core/hier"
	"gompi/internal/core/layout"
	"gompi/internal/core/message"
	"gompi/internal/core/path"
	"gompi/internal/core/round"
	"gompi/internal/core/shmcoll"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport/shm"
)

// A hostMemory is the memory that a rank shares with the others of its host; nil if it shares
// nothing.
type hostMemory struct {
	info  *boot.Info
	pool  *shmsync.Pool // nil, like shm, if only programs' mapped memory is shared
	heap  *seg.Heap
	limit func() seg.Limit
	shm   *shm.Transport
	late  allocations // to be freed, but a peer may still write there
}

// heapOf returns the heap of a rank of this host.
func (m *hostMemory) heapOf(local world.LocalRank) []byte {
	_, heap := seg.Divide(m.info.Segment.Arena(local))
	return heap
}

// sweep frees memory of this rank to which peers have stopped writing.
func (m *hostMemory) sweep(e *message.Engine) {
	if m.pool != nil {
		m.pool.Sweep()
	}
	m.late.mu.Lock()
	defer m.late.mu.Unlock()
	m.late.all = slices.DeleteFunc(m.late.all, func(x allocation) bool { return m.free(e, x) })
}

// newHostMemory returns the memory that a rank shares, whose transport is t, nil if nothing is
// shared.
func newHostMemory(info *boot.Info, t *shm.Transport) *hostMemory {
	s := info.Segment
	if s.Ranks() > path.MaxShared {
		return nil
	}
	m := newMappedMemory(info)
	if m == nil {
		return nil
	}
	m.shm = t
	blocks, _ := seg.Divide(s.Arena(info.LocalRank))
	m.pool = shmsync.NewPool(blocks, path.LargeBuffer(s.Ranks()),
		func(off, n int) error { return s.ClaimArena(info.LocalRank, off, n) }, endedOf(info))
	return m
}

// newMappedMemory returns memory that the ranks of this host map, and no transport uses, nil if
// there is none.
func newMappedMemory(info *boot.Info) *hostMemory {
	s := info.Segment
	if s == nil || s.Arena(info.LocalRank) == nil {
		return nil
	}
	m := &hostMemory{info: info, limit: seg.MemoryLimit}
	blocks, heap := seg.Divide(s.Arena(info.LocalRank))
	m.heap = seg.NewHeap(heap,
		func(off, n int) error { return s.ClaimHuge(info.LocalRank, len(blocks)+off, n) },
		func(off, n int) error { return s.ReleaseArena(info.LocalRank, len(blocks)+off, n) })
	return m
}

// take allocates a block of shared memory for a new communicator, 0 if there is none.
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

// withhold frees t, the block offered for a communicator whose creation has failed on this rank.
// Other ranks of c may have created that communicator and read t, so withhold waits until none can
// read t any more.
func (c *Comm) withhold(t shmsync.Token) {
	if t != 0 {
		c.memory.pool.Withhold(t, c.block)
	}
}

// setUp prepares c's collectives, if c has several members and all members that share a host have
// taken blocks: through shared memory if all are on the same host, hierarchical if some of them
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
	c.exec.Shared = c.newShared(ranks, blocks, c.exec.Paths, !c.rules.Tunes())
}

// setUpHier prepares hierarchical collectives, through shared memory inside this host if several of
// the ranks are here.
func (c *Comm) setUpHier(hosts [][]int, blocks []shmsync.Token) {
	mine := hosts[slices.IndexFunc(hosts, func(ranks []int) bool { return slices.Contains(ranks, c.Rank()) })]
	t := path.Topology{Ranks: len(mine)}
	var shared hier.Shared
	if t.Shared = len(mine) > 1; t.Shared {
		t.LargeBuffer = path.LargeBuffer(c.memory.info.Segment.Ranks())
	}
	inside := path.New(t, c.rules.Untuned())
	if t.Shared {
		shared = c.newShared(mine, blocks, inside, false)
	}
	over := path.New(path.Topology{Ranks: len(hosts)}, c.rules)
	c.exec.Hier = hier.New(hier.NewHosts(hosts, c.Size()), c.round, shared, inside, over)
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
// host, with the blocks that c's ranks have taken. paths chooses their Paths. whole means that all
// of c's collectives go that way.
func (c *Comm) newShared(ranks []int, blocks []shmsync.Token, paths *path.Selector, whole bool) *shmcoll.Collectives {
	m, me := c.memory, slices.Index(ranks, c.Rank())
	s := m.info.Segment
	parts, heaps, locals := make([]shmsync.Part, len(ranks)), make([][]byte, len(ranks)), c.locals(ranks)
	own, claim := m.pool.Own(c.block)
	for i, r := range ranks {
		var theirs []byte
		if theirs, heaps[i] = seg.Divide(s.Arena(locals[i])); i == me {
			parts[i] = own
		} else {
			parts[i] = m.pool.Enter(c.block, c.ch.World(r), theirs, blocks[r])
		}
	}
	p := &round.Port{Round: c.round, Ranks: ranks, Waker: func(member int) { m.shm.Wake(locals[member]) }}
	team := shmsync.New(me, parts, claim, paths.LargeBuffer, paths.Gated(), p)
	shared := shmcoll.New(team, heaps, crossMemory{m.shm.CrossMemory(), locals}, paths)
	p.SetTeam(&shared.Team, whole)
	return shared
}

// A crossMemory reaches memory that only its owner maps.
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
		locals[i], _ = c.memory.info.Segment.LocalRank(c.ch.World(r))
	}
	return locals
}

// mapping returns the memory that ranks of this host map, even if their messages go by TCP; nil
// if there is none.
func (p *process) mapping() *hostMemory {
	if p.memory != nil || p.aside == nil {
		return p.memory
	}
	return p.aside()
}

// Access to memory of another rank without its participation: mapped, by the kernel, or by network
// devices.

// Shares reports whether this rank and another share memory.
func (c *Comm) Shares(rank int) bool { return c.onHostOf(c.memory, rank) }

// Maps reports whether this rank and another map memory of AllocMapped, even if their messages go
// by TCP.
func (c *Comm) Maps(rank int) bool { return c.onHostOf(c.mapping(), rank) }

// onHostOf reports whether a rank maps m, which may be nil.
func (c *Comm) onHostOf(m *hostMemory, rank int) bool {
	if m == nil {
		return false
	}
	_, ok := m.info.Segment.LocalRank(c.ch.World(rank))
	return ok
}

// AllocMapped returns n bytes, mapped by the ranks for which Maps is true. FreeLocal takes them
// back. If Maps is false for all other ranks, the memory may be any.
func (c *Comm) AllocMapped(n int) ([]byte, error) {
	m := c.mapping()
	if m == nil || n == 0 {
		b, err := c.AllocLocal(mem.U8, n)
		return b.HostSlice(), err
	}
	x, err := m.allocate(c.e, mem.U8, n)
	if err != nil {
		return nil, c.fault("alloc_local", -1, err)
	}
	c.local.add(x)
	return x.b.HostSlice(), nil
}

// Locate returns the place of n bytes of this rank, for ranks that share memory with this rank; 0
// if the bytes are not in shared memory.
func (c *Comm) Locate(at uintptr, n int) uint64 {
	m := c.mapping()
	if m == nil {
		return 0
	}
	return uint64(seg.Locate(m.heapOf(m.info.LocalRank), layout.BytesAt(at, n)))
}

// Mapped returns this rank's address of bytes that another rank has located.
func (c *Comm) Mapped(rank int, place uint64) unsafe.Pointer {
	m := c.mapping()
	local, _ := m.info.Segment.LocalRank(c.ch.World(rank))
	heap := m.heapOf(local)
	return unsafe.Pointer(&seg.Place(place).At(heap, 0, 1)[0])
}

// Expose lets the ranks of this host reach memory of this process through the kernel, by Kernel.
func (c *Comm) Expose() {
	if c.memory != nil {
		c.memory.shm.CrossMemory().Expose()
	}
}

// A Kernel copies from and to private memory of another process of this host. A Kernel does not
// change.
type Kernel struct{ memory crossMemory }

// A Span is some bytes of another process.
type Span = shm.Span

// Kernel returns the Kernel of a rank, nil if the kernel does not let this rank reach that rank.
func (c *Comm) Kernel(rank int) *Kernel {
	m := crossMemory{c.memory.shm.CrossMemory(), c.locals([]int{rank})}
	if !m.Reaches(0) {
		return nil
	}
	return &Kernel{m}
}

// Read copies consecutive spans, together as long as dst, to dst. It changes the slice of spans.
func (k *Kernel) Read(dst []byte, from []Span) error {
	return k.memory.ReadSpans(k.memory.locals[0], dst, from)
}

// Write is the reverse of Read.
func (k *Kernel) Write(src []byte, to []Span) error {
	return k.memory.WriteSpans(k.memory.locals[0], src, to)
}

// Key returns the key by which ranks without shared memory access n bytes of this rank by their
// network devices, past this rank; nil if they cannot. Remote takes another rank's key.
func (c *Comm) Key(at uintptr, n int) []byte {
	return c.e.Mover.Key(mem.Bytes(layout.BytesAt(at, n)))
}

// A Remote is memory of another rank that a network device accesses. Places are that rank's
// addresses. A result of 0 or false means that too many operations are under way and nothing was
// done: the caller calls again after Progress.
type Remote = message.Remote

// Remote returns the memory of a rank that the key is of.
func (c *Comm) Remote(rank int, key []byte) *Remote { return c.ch.Remote(rank, key) }
