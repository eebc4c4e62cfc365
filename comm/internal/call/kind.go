package call

import "gompi/internal/seg"

// A Kind is the number of a collective. The flight recorder, which the launcher reads too, has the
// same numbers and names. Frames carry it, so the numbers are part of the wire format.
type Kind seg.Kind

// The collectives. Those after Exscan make communicators and memory.
const (
	None               = Kind(seg.NoKind)
	Barrier            = Kind(seg.Barrier)
	Bcast              = Kind(seg.Bcast)
	Reduce             = Kind(seg.Reduce)
	Allreduce          = Kind(seg.Allreduce)
	ReduceScatter      = Kind(seg.ReduceScatter)
	ReduceScatterBlock = Kind(seg.ReduceScatterBlock)
	Allgather          = Kind(seg.Allgather)
	Allgatherv         = Kind(seg.Allgatherv)
	Gather             = Kind(seg.Gather)
	Gatherv            = Kind(seg.Gatherv)
	Scatter            = Kind(seg.Scatter)
	Scatterv           = Kind(seg.Scatterv)
	Alltoall           = Kind(seg.Alltoall)
	Alltoallv          = Kind(seg.Alltoallv)
	Alltoallw          = Kind(seg.Alltoallw)
	Scan               = Kind(seg.Scan)
	Exscan             = Kind(seg.Exscan)
	Dup                = Kind(seg.Dup)
	Split              = Kind(seg.Split)
	SplitHost          = Kind(seg.SplitHost)
	Create             = Kind(seg.Create)
	Alloc              = Kind(seg.Alloc)
	Free               = Kind(seg.Free)
)

func (k Kind) String() string { return seg.Kind(k).String() }

// As returns the collective by which k is done: those that make communicators and memory exchange
// words of comm's own.
func (k Kind) As() Kind {
	switch k {
	case Dup, Split, SplitHost, Create, Alloc:
		return Allgather
	case Free:
		return Barrier
	}
	return k
}

// Rooted reports whether the collective has a root.
func (k Kind) Rooted() bool { return seg.Kind(k).Rooted() }

// Reduces reports whether the collective has an operator.
func (k Kind) Reduces() bool { return table[k].reduces }

// LocalCounts reports whether only the ranks that exchange a block know its length. Then no rank
// knows the length of the whole.
func (k Kind) LocalCounts() bool {
	t := &table[k]
	switch send, recv := t.send.layout >= counted, t.recv.layout >= counted; {
	case send && recv:
		return true
	case send:
		return t.send.elsewhere == Unused
	case recv:
		return t.recv.elsewhere == Unused
	}
	return false
}
