package call

import "gompi/internal/mem"

// The table of traits holds all that distinguishes one collective from another, except algorithms.
// Functions conclude from it: which lengths have to agree, what may overlap, who sends to whom
// (check.go, blocks.go and transfer.go).

// traits specify what one collective does with its arguments.
type traits struct {
	reduces    bool
	send, recv vector
	tuned      Kind // whose rules of a user's it goes by, None for its own
	needs      dependence
}

// A vector is what one of the two buffers of a collective is.
type vector struct {
	layout            layout
	atRoot, elsewhere Role // without a root: on rank 0 and elsewhere, mostly the same
}

// A layout is what is in a vector.
type layout uint8

const (
	absent  layout = iota
	whole          // it is for all ranks, or its own rank's alone
	even           // a block for each rank, equally long
	counted        // a block for each rank, one after the other, as long as counts say
	placed         // the same, but where displacements say, and something may lie between
	apart          // the same, but each in a Buffer of its own: see Each
)

// A Role is what a collective does with a buffer on one rank.
type Role uint8

const (
	Unused  Role = iota // may be anything
	Read                // and not changed
	Written             // all of it
	Updated             // parts of it stay
	Kept                // all of it stays
)

// Changes reports whether a buffer with that role gets new content.
func (r Role) Changes() bool { return r == Written || r == Updated }

// A dependence specifies whether every rank needs data of every other rank: see NeedsAll.
type dependence uint8

const (
	never dependence = iota
	ifAny            // if there are elements
	always
)

// table has a row for every Kind that a frame may carry. Bcast's one buffer is its recv.
// Collectives that make communicators and memory have no vectors here: comm exchanges words of its
// own, by Allgather and Barrier.
var table = [256]traits{
	Barrier:            {needs: always},
	Bcast:              {recv: vector{whole, Read, Written}},
	Reduce:             {reduces: true, send: vector{whole, Read, Read}, recv: vector{whole, Written, Unused}},
	Allreduce:          {reduces: true, send: vector{whole, Read, Read}, recv: vector{whole, Written, Written}, needs: ifAny},
	ReduceScatter:      {reduces: true, send: vector{counted, Read, Read}, recv: vector{whole, Written, Written}},
	ReduceScatterBlock: {reduces: true, send: vector{even, Read, Read}, recv: vector{whole, Written, Written}, tuned: ReduceScatter, needs: ifAny},
	Allgather:          {send: vector{whole, Read, Read}, recv: vector{even, Written, Written}, needs: ifAny},
	Allgatherv:         {send: vector{whole, Read, Read}, recv: vector{placed, Updated, Updated}, tuned: Allgather},
	Gather:             {send: vector{whole, Read, Read}, recv: vector{even, Written, Unused}},
	Gatherv:            {send: vector{whole, Read, Read}, recv: vector{placed, Updated, Unused}},
	Scatter:            {send: vector{even, Read, Unused}, recv: vector{whole, Written, Written}},
	Scatterv:           {send: vector{placed, Read, Unused}, recv: vector{whole, Written, Written}},
	Alltoall:           {send: vector{even, Read, Read}, recv: vector{even, Written, Written}, needs: ifAny},
	Alltoallw:          {send: vector{apart, Read, Read}, recv: vector{apart, Written, Written}},
	Alltoallv:          {send: vector{placed, Read, Read}, recv: vector{placed, Updated, Updated}},
	Scan:               {reduces: true, send: vector{whole, Read, Read}, recv: vector{whole, Written, Written}},
	Exscan:             {reduces: true, send: vector{whole, Read, Read}, recv: vector{whole, Kept, Written}, tuned: Scan},
	Dup:                {needs: always},
	Split:              {needs: always},
	SplitHost:          {needs: always},
	Create:             {needs: always},
	Alloc:              {needs: always},
	Free:               {needs: always},
}

// perRank reports whether the vector has a block for each rank.
func (v *vector) perRank() bool { return v.layout >= even }

// on returns the role of the vector on the root, or on other ranks.
func (v *vector) on(root bool) Role {
	if root {
		return v.atRoot
	}
	return v.elsewhere
}

// Roles returns what c does with Send and Recv on a rank.
func (c *Call) Roles(rank int) (send, recv Role) {
	t, root := &table[c.Kind], rank == c.Root
	return t.send.on(root), t.recv.on(root)
}

// Operands returns the buffers that a rank sends from and receives to. A buffer that it does not
// use is empty.
func (c *Call) Operands(rank int) (from, to mem.Buffer) {
	send, recv := c.Roles(rank)
	if send == Read {
		from = c.Send
	}
	switch recv {
	case Unused:
	case Read: // by the root of a bcast
		from = c.Recv
	default:
		to = c.Recv
	}
	return from, to
}

// TunedAs returns the collective whose rules of GOMPI_TUNE hold for k.
func (k Kind) TunedAs() Kind {
	if t := table[k].tuned; t != None {
		return t
	}
	return k
}

// PerRank reports whether Send or Recv has a block for each rank.
func (k Kind) PerRank() bool { return table[k].send.perRank() || table[k].recv.perRank() }

// Splits reports whether a rank sends each rank a block of that rank's own.
func (k Kind) Splits() bool { return table[k].send.perRank() }

// Counted reports whether blocks have different lengths, that all ranks know.
func (k Kind) Counted() bool {
	return (table[k].send.layout >= counted || table[k].recv.layout >= counted) && !k.LocalCounts()
}
