package path

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// operands are the kinds of operands that a collective combines.
type operands uint8

const (
	builtIn  operands = iota // combined by an operator of mem, or not at all
	function                 // by a function of the user's
	wide                     // by a function, and an element does not fit into a bounce buffer
)

// operandsOf returns the kind of operands that a call combines.
func (s *Selector) operandsOf(o *call.Call) operands {
	switch {
	case o.Op.Kind != mem.Custom:
		return builtIn
	case s.isWide(o):
		return wide
	}
	return function
}

// isWide reports whether a step of a single element of each block is too long for a bounce buffer.
func (s *Selector) isWide(o *call.Call) bool {
	step := o.ElemSize()
	if o.Kind.Splits() {
		step *= s.Ranks
	}
	return step > widestStep
}

// choose returns the Path of a collective of n bytes in all. allocated means that the communicator
// has memory from Alloc.
func (s *Selector) choose(k calls.Kind, x operands, allocated bool, n int) *Path {
	return s.onDevices(k, n, s.onHost(k, x, allocated, n))
}

// onHost chooses for buffers in host memory. Wide elements go by messages where there are any:
// between hosts, and where a user has tuned.
func (s *Selector) onHost(k calls.Kind, x operands, allocated bool, n int) *Path {
	custom := x != builtIn
	ordered := s.rules.keepsOrder(k, custom)
	bytes := int64(n)
	if k.PerRank() {
		bytes /= int64(s.Ranks)
	}
	tuned, ok := s.rules.Tuned(k, s.Ranks, bytes, ordered)
	if k = k.As(); ok {
		return &Path{Via: Messages, Algorithm: tuned}
	}
	switch {
	case x == wide && s.Shared && !s.rules.Tunes():
		return &Path{Via: Shm, Algorithm: ByElement}
	case x == wide:
	case s.Shared:
		return s.shared(k, ordered, allocated, n)
	case s.Hier:
		if p := s.hier(k, custom, allocated, n); p != nil {
			return p
		}
	}
	return &Path{Via: Messages, Algorithm: s.rules.Pick(k, s.Ranks, bytes, ordered)}
}

// payload returns the bytes that a rank stores for others, or the length of the longest block.
func (s *Selector) payload(k calls.Kind, n int) int {
	if k.PerRank() && !k.Splits() {
		return n / s.Ranks
	}
	return n
}

// shared chooses through memory that all ranks share.
func (s *Selector) shared(k calls.Kind, ordered, allocated bool, n int) *Path {
	if k.LocalCounts() {
		return &Path{Via: Shm, Ask: BlockLengths}
	}
	p := s.copied(k, s.payload(k, n))
	bytes := s.reached(k, n)
	if !singleCopies(k, ordered) {
		return p
	}
	if k := s.kernel(bytes); k != (KernelCopy{}) {
		p = &Path{Via: Shm, Algorithm: SingleCopy, Ask: CrossMemory, Kernel: k, Otherwise: p}
	}
	from := s.rules.threshold(shmSingleCopyFrom)
	if s.rules.Oversubscribed {
		from = max(from, s.rules.threshold(shmLargeFrom))
	}
	if allocated && bytes >= from {
		p = &Path{Via: Shm, Algorithm: SingleCopy, Ask: SharedHeap, Otherwise: p}
	}
	return p
}

// reached returns the bytes of each rank that other ranks access, in a call of n bytes in all.
func (s *Selector) reached(k calls.Kind, n int) int {
	if k == calls.Scatter {
		return n / s.Ranks
	}
	return s.payload(k, n)
}

// singleCopies reports whether a collective has a form in which ranks read each other's vectors.
func singleCopies(k calls.Kind, ordered bool) bool {
	switch k {
	case calls.Bcast, calls.Gather, calls.Scatter, calls.Allgather, calls.Allgatherv, calls.Alltoall:
		return true
	case calls.Reduce, calls.Allreduce, calls.ReduceScatter, calls.ReduceScatterBlock:
		return !ordered
	}
	return false
}

// copied chooses among Paths through bounce buffers, for a rank that stores this many bytes there.
func (s *Selector) copied(k calls.Kind, bytes int) *Path {
	t := s.rules.threshold
	most, long := t(shmChunk), Pipelined
	switch {
	case k == calls.Allreduce:
		most, long = s.allreduceMost(), Rsag
	case k == calls.Reduce && s.sharesReduce(bytes):
		long = Rsag
	}
	if bytes <= most {
		p := &Path{Via: Shm, Algorithm: OneStep}
		if bytes >= chosenFrom {
			p = &Path{Via: Shm, Algorithm: OneStep, Chunk: Chunk{Large: true}, Ask: LargeBuffers, Otherwise: p}
		}
		return p
	}
	p := &Path{Via: Shm, Algorithm: long, Chunk: Chunk{Most: t(shmChunk)}}
	if bytes >= t(shmLargeFrom) {
		return &Path{Via: Shm, Algorithm: long, Chunk: s.largeChunk(), Ask: LargeBuffers, Otherwise: p}
	}
	return p
}

// sharesReduce reports whether all ranks combine shares of a reduce, instead of the root alone:
// faster if several ranks have a processor each (8 ranks on 16 processors of an Intel Xeon, 256
// KiB: the root alone 144 us, an allreduce, which does more, 70), slower on shared processors (4
// ranks on two, 1 MiB: 260 and 283).
func (s *Selector) sharesReduce(bytes int) bool {
	return s.Ranks >= 4 && !s.rules.Oversubscribed && bytes >= s.rules.threshold(shmLargeFrom)
}

// allreduceMost returns the bytes up to which each rank combines all operands of an allreduce
// itself: that takes a single step between the ranks, a division of the work takes two.
func (s *Selector) allreduceMost() int { return s.rules.threshold(shmChunk) / 2 }

// largeChunk is the largest chunk of a long vector that the large buffer allows: each copy is slow
// at first, until the processor prefetches. Ranks that share a processor use it at any length: a
// step costs a context switch (np=8 on two, alltoall of 1 MiB: 8.4 ms in chunks of 32 KiB).
func (s *Selector) largeChunk() Chunk {
	most := s.LargeBuffer / largeParts
	if s.rules.Oversubscribed {
		return Chunk{Most: most, Large: true}
	}
	parts := largeParts
	if s.Ranks > 2 {
		parts = manyParts
	}
	return Chunk{Parts: parts, Least: 2 * s.rules.threshold(shmChunk), Most: most, Large: true}
}

// hier returns the hierarchical Path, nil for messages: for collectives with LocalCounts; scans
// (2x2, scan of 16 KiB by messages and hierarchical: 29 and 41 us); reductions that keep an order,
// since a host combines its operands in one pass; and, where hosts have different numbers of ranks,
// collectives with an equal block for each rank.
func (s *Selector) hier(k calls.Kind, custom, allocated bool, n int) *Path {
	ordered := s.rules.keepsOrder(k, custom)
	short := n < s.rules.threshold(hierBlocksFrom)
	switch k {
	case calls.Barrier:
		return &Path{Via: Hier, Algorithm: Leader}
	case calls.Bcast:
		return s.hierVector(k, Leader, custom, allocated, n)
	case calls.Reduce:
		if !ordered {
			return s.hierVector(k, Leader, custom, allocated, n)
		}
	case calls.Allreduce:
		return s.hierAllreduce(custom, allocated, n)
	case calls.ReduceScatterBlock, calls.Allgather:
		if s.Even && !ordered {
			return &Path{Via: Hier, Algorithm: leaders(!s.sharesBlocks(n))}
		}
	case calls.Alltoall:
		return within(s.Even && short, MultiLeader)
	case calls.Gather, calls.Scatter:
		return within(s.Even && short, Leader)
	case calls.Allgatherv, calls.ReduceScatter:
		return within(!ordered && short, Leader)
	}
	return nil
}

// Hierarchical returns all hierarchical Paths that a call could take: For returns one of them, or
// a Path by messages.
func (s *Selector) Hierarchical(o *call.Call) (all []*Path) {
	vector := Chunk{Most: s.rules.threshold(hierChunk)}
	switch o.Kind {
	case calls.Bcast, calls.Reduce:
		all = append(all, &Path{Via: Hier, Algorithm: Leader, Chunk: vector})
		if s.rules.Hosts > 2 {
			all = append(all, alongHosts(*all[0]))
		}
	case calls.Allreduce:
		all = append(all, &Path{Via: Hier, Algorithm: Leader, Chunk: vector},
			&Path{Via: Hier, Algorithm: MultiLeader, Chunk: vector})
	case calls.Barrier, calls.Gather, calls.Scatter:
		all = append(all, &Path{Via: Hier, Algorithm: Leader})
	case calls.ReduceScatterBlock, calls.Allgather:
		all = append(all, &Path{Via: Hier, Algorithm: Leader}, &Path{Via: Hier, Algorithm: MultiLeader})
	case calls.Alltoall:
		all = append(all, &Path{Via: Hier, Algorithm: MultiLeader})
	}
	if !s.Even && o.Kind.PerRank() {
		return nil
	}
	return all
}

// hierAllreduce chooses for an allreduce. Its operands keep an order only where a host's ranks
// are neighbours, and never the order of deterministic mode.
func (s *Selector) hierAllreduce(custom, allocated bool, n int) *Path {
	if s.rules.keepsOrder(calls.Allreduce, custom) &&
		(s.rules.Deterministic || !s.Packed || n >= s.rules.threshold(hierVectorFrom)) {
		return nil
	}
	one := custom || s.rules.Oversubscribed || !s.sharesVector(n)
	return s.hierVector(calls.Allreduce, leaders(one), custom, allocated, n)
}

// sharesVector reports whether all ranks carry shares of an allreduce of n bytes: earlier where
// each of at least four ranks to a host has a processor. Two to a host gain little (2x2 at 1
// Gbit/s, allreduce of 32 KiB by the leader and in shares: 219 and 258 us).
func (s *Selector) sharesVector(n int) bool {
	return n >= s.rules.threshold(hierVectorFrom) || s.manyToHosts() && n >= s.rules.threshold(hierSharesFrom)
}

// sharesBlocks reports whether all ranks carry shares of an allgather or reduce-scatter with blocks
// of n bytes in all. Inside hosts there is a step for each host's blocks, so each host needs a
// quarter of that many bytes (cluster of comm/sim, eight ranks to a host, allgather of 4 KiB of
// each in shares beside leaders: 16 hosts .93, 64 hosts 1.12).
func (s *Selector) sharesBlocks(n int) bool {
	return n >= s.rules.threshold(hierBlocksFrom) ||
		s.manyToHosts() && n/s.rules.Hosts >= s.rules.threshold(hierSharesFrom)/4
}

// manyToHosts reports whether each host has at least four ranks, with a processor each.
func (s *Selector) manyToHosts() bool {
	return s.Even && s.Ranks >= 4*s.rules.Hosts && !s.rules.Oversubscribed
}

// leaders returns the algorithm by which one rank of each host exchanges messages, or each a share.
func leaders(one bool) Algorithm {
	if one {
		return Leader
	}
	return MultiLeader
}

// within returns a hierarchical Path for calls that fit, else nil.
func within(fits bool, a Algorithm) *Path {
	if fits {
		return &Path{Via: Hier, Algorithm: a}
	}
	return nil
}

// hierVector chooses for a vector that goes between hosts in chunks.
func (s *Selector) hierVector(k calls.Kind, a Algorithm, custom, allocated bool, n int) *Path {
	p := &Path{Via: Hier, Algorithm: a, Chunk: Chunk{Most: s.rules.threshold(hierChunk)}}
	if (k == calls.Bcast || k == calls.Reduce) && s.rules.Hosts > 2 && n >= s.chainFrom() {
		p = alongHosts(*p)
	}
	if allocated && !custom && n >= s.rules.threshold(hierVectorFrom) {
		asked := *p
		asked.Ask, asked.Otherwise = SharedHeap, p
		return &asked
	}
	return p
}

// alongHosts returns a Path of leaders whose chunks go along a chain of hosts.
func alongHosts(p Path) *Path {
	p.Hosts, p.Chunk.Parts, p.Chunk.Least = Chain, chainParts, p.Chunk.Most/chainLeast
	return &p
}

// chainFrom returns the bytes from which on chunks go along a chain of hosts: with fewer chunks
// than hosts, some hosts would be idle while the first chunk travels to the last.
func (s *Selector) chainFrom() int { return s.rules.threshold(hierChunk) / chainLeast * s.rules.Hosts }

// onDevices chooses where ranks may have buffers on devices. host is the Path for host memory.
// Each rank stages its own buffers of a short collective as a whole. So it does for a collective
// whose length no rank knows, and for an alltoallw, which has no single buffer to ask about.
func (s *Selector) onDevices(k calls.Kind, n int, host *Path) *Path {
	if !s.Devices || s.Ranks == 1 || k.LocalCounts() || k == calls.Alltoallw || n < 2*s.rules.threshold(stagedChunk) {
		return host
	}
	chunk := Chunk{Most: s.rules.threshold(stagedChunk)}
	return &Path{Via: Staged, Algorithm: Pipelined, Chunk: chunk, Ask: AnyOnDevice, Otherwise: host}
}

// asksNCCL reports whether ranks ask each other, for NCCL, whether each has a device of its own.
func (s *Selector) asksNCCL(k calls.Kind, custom bool, n int) bool {
	switch k {
	case calls.Bcast, calls.Reduce, calls.Allreduce, calls.ReduceScatter, calls.ReduceScatterBlock,
		calls.Allgather, calls.Allgatherv, calls.Gather, calls.Gatherv, calls.Scatter, calls.Scatterv,
		calls.Alltoall, calls.Alltoallv:
		return s.NCCL && (k.LocalCounts() || n >= s.rules.threshold(shmLargeFrom)) && !s.rules.keepsOrder(k, custom)
	}
	return false
}

// ncclServes reports whether NCCL has the operator of a call for its type, and supports its
// counts: NCCL reduces and scatters only blocks of equal lengths.
func (s *Selector) ncclServes(o *call.Call) bool {
	if !o.Kind.Reduces() {
		return true
	}
	return mem.GroupReduces(o.Op.Kind, o.Type) && (!o.Kind.Counted() || o.Longest(s.Ranks)*s.Ranks == int(o.Count))
}
