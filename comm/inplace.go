package comm

import (
	"slices"

	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// checkAliasing allows send and recv of rank me to share memory as the in-place
// form of the collective does, and in no other way.
func (o *operation) checkAliasing(me int) error {
	if !mem.Overlap(o.send, o.recv) {
		return nil
	}
	const want = "send and recv overlap: want "
	switch o.call.Kind {
	case engine.Allgather, engine.Allgatherv, engine.Gather, engine.Gatherv:
		if !startsIn(o.send, o.recv, o.blockStart(me, o.send)) {
			return badArgument(want + "send to be this rank's block of recv, or apart from it")
		}
	case engine.Scatter, engine.Scatterv:
		if !startsIn(o.recv, o.send, o.blockStart(me, o.recv)) {
			return badArgument(want + "recv to be this rank's block of send, or apart from it")
		}
	case engine.ReduceScatter, engine.ReduceScatterBlock:
		if !startsIn(o.recv, o.send, o.blockStart(me, o.recv)) && !startsIn(o.recv, o.send, 0) {
			return badArgument(want + "recv to be this rank's block of send, the beginning of send, or apart from it")
		}
	default:
		if !mem.Same(o.send, o.recv) {
			return badArgument(want + "the same slice, or one apart from the other")
		}
		if !slices.Equal(o.sendCounts, o.counts) || !slices.Equal(o.sendDispls, o.displs) {
			return badArgument("send and recv are the same slice: want the same counts and displacements for both")
		}
	}
	return nil
}

// startsIn reports whether short begins at element i of long.
func startsIn(short, long Buffer, i int) bool {
	return short.Addr() == long.Addr()+uintptr(i*long.Type().Size())
}

// blockStart returns where this rank's block begins in the vector that has one
// per rank, as long as block where there are no counts.
func (o *operation) blockStart(me int, block Buffer) int {
	switch {
	case o.counts == nil:
		return me * block.Len()
	case o.displs == nil:
		return total(o.counts[:me])
	}
	return o.displs[me]
}
