package path

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// choose returns the Path of a collective of n bytes in all: by a function of the user's if
// custom, with memory from Alloc if lent.
func (s *Selector) choose(k call.Kind, custom, lent bool, n int) *Path {
	ordered := s.rules.keepsOrder(k, custom)
	return s.onDevices(k, ordered, n, s.onHost(k, custom, lent, n))
}

// onHost chooses for buffers in host memory.
func (s *Selector) onHost(k call.Kind, custom, lent bool, n int) *Path {
	ordered := s.rules.keepsOrder(k, custom)
	bytes := int64(n)
	if k.PerRank() {
		bytes /= int64(s.Ranks)
	}
	tuned, ok := s.rules.Tuned(k, s.Ranks, bytes, ordered)
	if k = k.As(); ok {
		return &Path{Via: Messages, Algorithm: tuned}
	}
	if s.Shared {
		return s.shared(k, ordered, lent, n)
	}
	if s.Hier {
		if p := s.hier(k, custom, lent, n); p != nil {
			return p
		}
	}
	return &Path{Via: Messages, Algorithm: s.rules.Pick(k, s.Ranks, bytes, ordered)}
}

// payload returns the bytes that one rank stores for others, or that the longest block has.
func (s *Selector) payload(k call.Kind, n int) int {
	if k.PerRank() && !k.Splits() {
		return n / s.Ranks
	}
	return n
}

// shared chooses through memory that all ranks share.
func (s *Selector) shared(k call.Kind, ordered, lent bool, n int) *Path {
	if k.LocalCounts() {
		return &Path{Via: Shm, Ask: BlockLengths}
	}
	bytes := s.payload(k, n)
	p := s.copied(k, bytes)
	from := shmSingleCopyFrom
	if s.rules.Crowded {
		from = shmSingleCopyFromCrowded
	}
	if k == call.Scatter {
		bytes = n / s.Ranks
	}
	if lent && bytes >= s.rules.threshold(from) && singleCopies(k, ordered) {
		return &Path{Via: Shm, Algorithm: SingleCopy, Ask: SharedHeap, Otherwise: p}
	}
	return p
}

// singleCopies reports whether a collective has a form in which ranks read each other's vectors.
func singleCopies(k call.Kind, ordered bool) bool {
	switch k {
	case call.Bcast, call.Gather, call.Scatter, call.Allgather, call.Allgatherv, call.Alltoall:
		return true
	case call.Reduce, call.Allreduce, call.ReduceScatter, call.ReduceScatterBlock:
		return !ordered
	}
	return false
}

// copied chooses through shared buffers, for what stores so many bytes there.
func (s *Selector) copied(k call.Kind, bytes int) *Path {
	t := s.rules.threshold
	most, long := t(shmOneStepMost), Pipelined
	if k == call.Allreduce {
		most, long = t(shmAllreduceMost), Rsag
	}
	if bytes <= most {
		return &Path{Via: Shm, Algorithm: OneStep}
	}
	p := &Path{Via: Shm, Algorithm: long, Piece: Piece{Most: t(shmPiece)}}
	if bytes >= t(shmLargeFrom) {
		return &Path{Via: Shm, Algorithm: long, Piece: s.largePiece(), Ask: LargeBuffers, Otherwise: p}
	}
	return p
}

// largePiece is as much of a long vector as the large buffer allows, since every copy has a
// beginning, in which the processor does not know yet what it will fetch. Ranks that share a
// processor take turns, and every step costs them changes of process: they do so much in one at
// any length (np=8 on two processors, alltoall of 1 MiB: 8.4 ms in pieces of 32 KiB).
func (s *Selector) largePiece() Piece {
	most := s.LargeBuffer / largeParts
	if s.rules.Crowded {
		return Piece{Most: most}
	}
	return Piece{Parts: largeParts, Least: s.rules.threshold(shmPiece), Most: most}
}

// hier chooses inside hosts first, nil for what goes by messages: what has lengths that one rank
// may know alone, scans (2x2, by messages and hierarchical: scan of 16 KiB 29 and 41 us, exscan
// of 8 bytes 25 and 28), reductions that keep an order, since a host's operands are combined in
// one pass, and where hosts are not even, all that has an equal block for each rank.
func (s *Selector) hier(k call.Kind, custom, lent bool, n int) *Path {
	t := s.rules.threshold
	ordered := s.rules.keepsOrder(k, custom)
	shares := func(from Threshold) *Path {
		if n >= t(from) {
			return &Path{Via: Hier, Algorithm: MultiLeader}
		}
		return &Path{Via: Hier, Algorithm: Leader}
	}
	within := func(fits bool, a Algorithm) *Path {
		if fits {
			return &Path{Via: Hier, Algorithm: a}
		}
		return nil
	}
	switch k {
	case call.Barrier:
		return &Path{Via: Hier, Algorithm: Leader}
	case call.Bcast:
		return s.hierVector(Leader, custom, lent, n)
	case call.Reduce:
		if !ordered {
			return s.hierVector(Leader, custom, lent, n)
		}
	case call.Allreduce:
		inRankOrder := s.Packed && !s.rules.Deterministic && n <= t(hierFunctionMost)
		switch {
		case ordered && !inRankOrder:
		case n >= t(hierSharesFrom) && !s.rules.Crowded:
			return s.hierVector(MultiLeader, custom, lent, n)
		default:
			return s.hierVector(Leader, custom, lent, n)
		}
	case call.ReduceScatterBlock:
		if s.Even && !ordered {
			return shares(hierScatterSharesFrom)
		}
	case call.Allgather:
		if s.Even {
			return shares(hierGatherSharesFrom)
		}
	case call.Alltoall:
		return within(s.Even && n <= t(hierAlltoallMost), MultiLeader)
	case call.Gather, call.Scatter:
		return within(s.Even && n <= t(hierRootedMost), Leader)
	case call.Allgatherv:
		return within(n <= t(hierCountedMost), Leader)
	case call.ReduceScatter:
		return within(!ordered && n <= t(hierCountedMost), Leader)
	}
	return nil
}

// hierVector chooses for a vector that goes between hosts in pieces.
func (s *Selector) hierVector(a Algorithm, custom, lent bool, n int) *Path {
	piece := Piece{Most: s.rules.threshold(hierPiece)}
	p := &Path{Via: Hier, Algorithm: a, Piece: piece}
	if lent && !custom && n >= s.rules.threshold(hierSingleCopyFrom) {
		return &Path{Via: Hier, Algorithm: a, Piece: piece, Ask: SharedHeap, Otherwise: p}
	}
	return p
}

// onDevices chooses where ranks may have buffers on devices, given what serves host memory. What
// is short, or of a length that no rank knows, is staged whole, each rank's for itself.
func (s *Selector) onDevices(k call.Kind, ordered bool, n int, host *Path) *Path {
	piece := Piece{Most: s.rules.threshold(stagedPiece)}
	staged := &Path{Via: Staged, Algorithm: Pipelined, Piece: piece, Ask: AnyOnDevice, Otherwise: host}
	switch {
	case !s.Devices || s.Ranks == 1:
		return host
	case host.Via != Shm:
		if n < s.rules.threshold(stagedFrom) || k.LocalCounts() {
			return host
		}
		if host.Via == Hier && k == call.Allreduce && !ordered {
			return &Path{Via: Staged, Algorithm: MultiLeader, Piece: piece, Ask: AllOnDevices, Otherwise: staged}
		}
		return staged
	case !s.long(k, n), k == call.Alltoallw: // that has no one buffer to ask about
		return host
	case k.LocalCounts():
		return &Path{Via: Devices, Ask: AllOnDevices, Otherwise: host}
	case ordered:
		return staged
	}
	return &Path{Via: Devices, Ask: AllOnDevices, Otherwise: staged}
}

// long reports whether ranks of one host ask each other about devices: it is long, or no rank
// knows how long it is.
func (s *Selector) long(k call.Kind, n int) bool {
	return k.LocalCounts() || n >= s.rules.threshold(deviceFrom)
}

// asksNCCL reports whether ranks ask each other about devices of their own, for NCCL.
func (s *Selector) asksNCCL(k call.Kind, custom bool, n int) bool {
	switch k {
	case call.Bcast, call.Reduce, call.Allreduce, call.ReduceScatter, call.ReduceScatterBlock,
		call.Allgather, call.Allgatherv, call.Gather, call.Gatherv, call.Scatter, call.Scatterv,
		call.Alltoall, call.Alltoallv:
		return s.NCCL && s.long(k, n) && !s.rules.keepsOrder(k, custom)
	}
	return false
}

// ncclServes reports whether NCCL has the operator of a call for its type, and the counts: what
// it reduces and scatters has blocks of one length.
func (s *Selector) ncclServes(o *call.Call) bool {
	if !o.Kind.Reduces() {
		return true
	}
	return mem.GroupReduces(o.Op.Kind, o.Type) && (!o.Kind.Counted() || o.Longest(s.Ranks)*s.Ranks == int(o.Count))
}
