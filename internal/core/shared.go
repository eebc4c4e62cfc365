package core

import (
	"slices"
	"unsafe"

	"gompi/internal/core/hier"
	"gompi/internal/core/layout"
	"gompi/internal/core/memory"
	"gompi/internal/core/path"
	"gompi/internal/core/round"
	"gompi/internal/core/shmcoll"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// withhold frees t, the block offered for a communicator whose creation has failed on this rank.
// Other ranks of c may have created that communicator and read t, so withhold waits until none can
// read t any more.
func (c *Comm) withhold(t shmsync.Token) {
	if t != 0 {
		c.memory.Host.Pool.Withhold(t, c.block)
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
		t.LargeBuffer = path.LargeBuffer(c.boot.Info().Segment.Ranks())
	}
	c.exec.Paths = path.New(t, c.rules)
	switch {
	case t.Shared:
		c.exec.Shared = c.newShared(hosts[0], blocks, c.exec.Paths, !c.rules.Tunes())
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

// setUpHier prepares hierarchical collectives, through shared memory inside this host if several of
// the ranks are here.
func (c *Comm) setUpHier(hosts [][]int, blocks []shmsync.Token) {
	mine := hosts[slices.IndexFunc(hosts, func(ranks []int) bool { return slices.Contains(ranks, c.Rank()) })]
	t := path.Topology{Ranks: len(mine)}
	var shared hier.Shared
	if t.Shared = len(mine) > 1; t.Shared {
		t.LargeBuffer = path.LargeBuffer(c.boot.Info().Segment.Ranks())
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
	h, me := c.memory.Host, slices.Index(ranks, c.Rank())
	s := c.boot.Info().Segment
	parts, heaps, locals := make([]shmsync.Part, len(ranks)), make([][]byte, len(ranks)), c.locals(ranks)
	own, claim := h.Pool.Own(c.block)
	for i, r := range ranks {
		var theirs []byte
		if theirs, heaps[i] = seg.Divide(s.Arena(locals[i])); i == me {
			parts[i] = own
		} else {
			parts[i] = h.Pool.Enter(c.block, c.ch.World(r), theirs, blocks[r])
		}
	}
	p := &round.Port{Round: c.round, Ranks: ranks, Waker: func(member int) { h.SHM.Wake(locals[member]) }}
	barriers, steps := paths.Gates()
	team := shmsync.New(me, parts, claim, paths.LargeBuffer, shmsync.Gate{Barriers: barriers, Steps: steps}, p)
	shared := shmcoll.New(team, heaps, h.Private(locals), paths)
	p.SetTeam(&shared.Team, whole)
	return shared
}

// locals returns the local ranks of some ranks of this host.
func (c *Comm) locals(ranks []int) []world.LocalRank {
	locals := make([]world.LocalRank, len(ranks))
	for i, r := range ranks {
		locals[i], _ = c.boot.Info().Segment.LocalRank(c.ch.World(r))
	}
	return locals
}

// Access to memory of another rank without its participation: mapped, by the kernel, or by network
// devices.

// Shares reports whether this rank and another share memory.
func (c *Comm) Shares(rank int) bool { return c.memory.Host.Maps(c.ch.World(rank)) }

// Maps reports whether this rank and another map memory of AllocMapped, even if their messages go
// by TCP.
func (c *Comm) Maps(rank int) bool { return c.memory.Mapping().Maps(c.ch.World(rank)) }

// AllocMapped returns n bytes, mapped by the ranks for which Maps is true. FreeLocal takes them
// back. If Maps is false for all other ranks, the memory may be any.
func (c *Comm) AllocMapped(n int) ([]byte, error) {
	h := c.memory.Mapping()
	if h == nil || n == 0 {
		b, err := c.AllocLocal(mem.U8, n)
		return b.HostSlice(), err
	}
	x, err := h.Alloc(c.e, mem.U8, n)
	if err != nil {
		return nil, c.fault("alloc_local", -1, err)
	}
	c.memory.Local.Add(x)
	return x.HostSlice(), nil
}

// Locate returns the place of n bytes of this rank, for ranks that share memory with this rank; 0
// if the bytes are not in shared memory.
func (c *Comm) Locate(at uintptr, n int) uint64 { return c.memory.Mapping().Locate(at, n) }

// Mapped returns this rank's address of bytes that another rank has located.
func (c *Comm) Mapped(rank int, place uint64) unsafe.Pointer {
	return c.memory.Mapping().Mapped(c.ch.World(rank), place)
}

// Expose lets the ranks of this host reach memory of this process through the kernel, by Kernel.
func (c *Comm) Expose() {
	if c.memory.Host != nil {
		c.memory.Host.SHM.CrossMemory().Expose()
	}
}

// Kernel returns the Kernel of a rank, nil if the kernel does not let this rank reach that rank.
func (c *Comm) Kernel(rank int) *memory.Kernel { return c.memory.Host.Kernel(c.locals([]int{rank})[0]) }

// Key returns the key by which ranks without shared memory access n bytes of this rank by their
// network devices, past this rank; nil if they cannot. Remote takes another rank's key.
func (c *Comm) Key(at uintptr, n int) []byte {
	return c.e.Mover.Key(mem.Bytes(layout.BytesAt(at, n)))
}

// Remote returns the memory of a rank that the key is of.
func (c *Comm) Remote(rank int, key []byte) *memory.Remote { return memory.NewRemote(c.ch, rank, key) }
