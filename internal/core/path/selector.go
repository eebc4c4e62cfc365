package path

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A Topology is the common knowledge of the ranks of a communicator, or of a part of it, about
// each other. It is equal on all of them.
type Topology struct {
	Ranks  int
	Shared bool // all are on the same host, and share memory there
	Hier   bool // some share a host and memory there, and there are several hosts
	Even   bool // hosts have equally many of them
	Packed bool // the ranks of a host are neighbours

	Devices     bool // some rank may have buffers on devices
	NCCL        bool // all may, and the user wants NCCL
	LargeBuffer int  // bytes of a rank's, if Shared
}

// A Selector chooses the Paths of a communicator, or of a part with collectives of its own, for
// one call at a time.
type Selector struct {
	Topology
	rules     *Rules
	allocated int                    // blocks of memory from Alloc
	factor    [calls.Count]int       // of Fingerprint.Count, for the bytes of the whole
	rows      [2][3][calls.Count]row // without and with such blocks, by operands
	sized     [calls.Count]row       // of collectives that ask for BlockLengths
}

// byLongest is the factor of a collective whose blocks all count with the length of the longest,
// since shared memory has equal space for each.
const byLongest = -1

// A row is the Paths of a collective by the bytes of all ranks' blocks, or of the vector where
// there are none. They are made for the first call.
type row []cell

type cell struct {
	from int // bytes
	path *Path
	nccl *Path // where NCCL serves the type and the operator
}

// New returns the Selector for a topology.
func New(t Topology, r *Rules) *Selector {
	s := &Selector{Topology: t, rules: r}
	for _, k := range calls.Exchanges {
		s.factor[k] = (&call.Fingerprint{Kind: k, Count: 1}).Elements(t.Ranks)
		if t.Shared && k.Counted() {
			s.factor[k] = byLongest
		}
	}
	return s // creation of communicators and memory exchanges a few words
}

// For returns a call's Path from a row, which a collective's first call makes, allocating memory.
func (s *Selector) For(o *call.Call) *Path {
	allocated, x := 0, s.operandsOf(o)
	if s.allocated > 0 {
		allocated = 1
	}
	at := &s.rows[allocated][x][o.Kind]
	if *at == nil {
		*at = s.make(o.Kind, x, allocated == 1)
	}
	c := at.at(s.bytes(o))
	if c.nccl != nil && s.ncclServes(o) {
		return c.nccl
	}
	return c.path
}

// InOneStep returns the largest length, at most most bytes, up to which all calls of a collective
// by a built-in operator take one step through shared memory, without a choice or a gate; else -1.
func (s *Selector) InOneStep(k calls.Kind, most int) int {
	if gated, _ := s.Gates(); gated && k == calls.Barrier {
		return -1
	}
	allocated := min(s.allocated, 1)
	at := &s.rows[allocated][builtIn][k]
	if *at == nil {
		*at = s.make(k, builtIn, allocated == 1)
	}
	for _, c := range *at {
		if c.nccl != nil || c.path.Via != Shm || c.path.Algorithm != OneStep || c.path.Ask != Nothing {
			return min(most, c.from-1)
		}
	}
	return most
}

// bytes returns the bytes of all ranks' blocks of a call, or of the vector where there are none.
func (s *Selector) bytes(o *call.Call) int {
	factor := s.factor[o.Kind]
	if factor == byLongest {
		return s.Ranks * o.Longest(s.Ranks) * o.ElemSize()
	}
	return int(o.Count) * factor * o.ElemSize()
}

// Sized returns the Path through shared memory of a call whose BlockLengths have been asked for:
// longest is the bytes of the longest block.
func (s *Selector) Sized(k calls.Kind, longest int) *Path {
	n, r := longest*s.Ranks, s.sized[k]
	if r == nil {
		for _, from := range s.edges(k) {
			r = r.with(cell{from: from, path: s.copied(k, s.payload(k, from))})
		}
		s.sized[k] = r
	}
	return r.at(n).path
}

// AddAllocations adds n to the number of the communicator's vectors from Alloc. All ranks of a
// host call AddAllocations between the same collectives. Only the ranks' Questions change.
func (s *Selector) AddAllocations(n int) { s.allocated += n }

// Gates returns the steps in which ranks wait for a flag of a single rank, which has waited for
// all: barriers, or also all steps.
func (s *Selector) Gates() (barriers, steps bool) {
	return s.rules.Oversubscribed && s.Ranks > 2, s.rules.Oversubscribed && s.Ranks >= gateFrom
}

// KeepsOrder reports whether operands of a reduction by op are combined as coll/order.go says.
func (s *Selector) KeepsOrder(op mem.Op) bool { return s.rules.Deterministic || op == mem.Custom }

// NonTemporal reports whether ranks store received data with non-temporal stores, if the buffers
// of all ranks together have this many bytes. The choice of a rank does not affect others.
func (s *Selector) NonTemporal(bytes int) bool { return bytes >= s.nonTemporalFrom() }

// nonTemporalFrom returns the bytes of all ranks' buffers from which on stores are non-temporal.
func (s *Selector) nonTemporalFrom() int {
	return max(s.rules.threshold(shmNonTemporalFrom), s.Ranks*s.rules.threshold(shmNonTemporalOwn))
}

// Payload returns the bytes of a call that a rank stores for others, or receives if these are
// fewer. All ranks get the same.
func (s *Selector) Payload(o *call.Call) int { return s.reached(o.Kind.As(), s.bytes(o)) }

// kernelBelow is the bytes of a rank below which collectives begin with the kernel's copies: longer
// vectors exceed the caches, which only stores through shared memory bypass (np=2 near on an Intel
// Xeon, by the kernel and through shared memory: alltoall of 16 MiB 2.9 and 3.5 ms, allgather of 64
// MiB 23 and 12).
const kernelBelow = 48 << 20

// kernel returns the KernelCopy of collectives with this Payload, where the kernel can copy.
func (s *Selector) kernel(bytes int) KernelCopy {
	from, below := s.rules.Reads()
	return KernelCopy{First: bytes >= from && bytes < min(below, kernelBelow), Tries: bytes >= s.rules.TriesFrom()}
}

// Oversubscribed reports whether ranks outnumber processors.
func (s *Selector) Oversubscribed() bool { return s.rules.Oversubscribed }

// NonTemporalInPlace is NonTemporal for ranks that store into vectors in place, with this many
// bytes for each rank on average.
func (s *Selector) NonTemporalInPlace(bytes int) bool {
	return bytes*s.Ranks > 2*s.nonTemporalFrom()
}

// PerMessage reports whether blocks of this many bytes, whose lengths only their rank knows, are
// copied from devices and to them message by message. No other rank sees the difference.
func (s *Selector) PerMessage(bytes int) bool { return bytes >= 2*s.rules.threshold(stagedChunk) }

// LargestChunk returns the bytes of the largest chunk that goes through shared memory at a time.
func (s *Selector) LargestChunk() int {
	return max(s.rules.threshold(shmChunk), s.LargeBuffer/largeParts)
}

// DropNCCL makes later Paths do without NCCL.
func (s *Selector) DropNCCL() {
	s.NCCL = false
	s.rows = [2][3][calls.Count]row{}
}

// at returns the cell for n bytes.
func (r row) at(n int) *cell {
	c := &r[0]
	for i := 1; i < len(r) && n >= r[i].from; i++ {
		c = &r[i]
	}
	return c
}

// with returns r with a further cell, unless the last cell is equal.
func (r row) with(c cell) row {
	if len(r) > 0 && equal(r[len(r)-1].path, c.path) && (r[len(r)-1].nccl == nil) == (c.nccl == nil) {
		return r
	}
	return append(r, c)
}

// make makes a row. The choice can change only at a threshold, or at a bound of a rule.
func (s *Selector) make(k calls.Kind, x operands, allocated bool) (r row) {
	edges := []int{0}
	if s.factor[k] != 0 {
		edges = s.edges(k)
	}
	for _, n := range edges {
		c := cell{from: n, path: s.choose(k, x, allocated, n)}
		if s.asksNCCL(k, x != builtIn, n) {
			c.nccl = &Path{Via: NCCL, Ask: OwnDevices, Otherwise: c.path}
		}
		r = r.with(c)
	}
	return r
}

// edges returns all bytes from which another Path may be taken, in order. Thresholds mean the
// whole, or the block of a rank.
func (s *Selector) edges(k calls.Kind) []int {
	at := []int{0}
	add := func(n int64) {
		if n < 1<<41 {
			at = append(at, int(n), int(n)+1, int(n)*s.Ranks, int(n)*s.Ranks+1, (int(n)+1)*s.Ranks)
		}
	}
	for t := range numThresholds {
		add(int64(s.rules.threshold(t)))
	}
	add(2 * int64(s.rules.threshold(stagedChunk)))
	add(int64(s.allreduceMost()))
	add(kernelBelow)
	add(chosenFrom)
	if s.Hier && s.rules.Hosts > 2 {
		at = append(at, s.chainFrom())
	}
	if i := position(k); i >= 0 {
		for _, x := range slices.Concat(catalogue[i].rules, s.rules.tuned[i]) {
			add(x.from)
			add(x.to)
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// Describe returns a line for each Path of a collective, with the bytes from which on calls take
// it: of the vector, or of a rank's block.
func (s *Selector) Describe() string {
	var b strings.Builder
	allocated := s.allocated > 0
	for _, k := range calls.Exchanges {
		rows, functions := s.make(k, builtIn, allocated), s.make(k, function, allocated)
		s.describe(&b, k, k.String(), rows)
		if !slices.EqualFunc(rows, functions,
			func(x, y cell) bool { return x.from == y.from && equal(x.path, y.path) }) {
			s.describe(&b, k, k.String()+" by a function", functions)
		}
	}
	return b.String()
}

func (s *Selector) describe(b *strings.Builder, k calls.Kind, name string, r row) {
	for _, c := range r {
		from := c.from
		if k.PerRank() {
			from = (from + s.Ranks - 1) / s.Ranks
		}
		p := c.path
		if c.nccl != nil {
			p = c.nccl
		}
		fmt.Fprintf(b, "%s %s-: %v\n", name, formatSize(int64(from)), p)
	}
}
