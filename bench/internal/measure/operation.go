package measure

import (
	"fmt"
	"slices"
	"strings"
)

// An operation is one benchmark: the data that a rank sends and receives, in blocks of the measured
// size, and the call.
type operation struct {
	name    string
	ranks   int  // least number of ranks
	noData  bool // has no size
	reduces bool
	inPlace bool // has an in-place form
	strided bool // its memory has gaps: see strided

	blocks func(rank, np int) (send, recv int)
	begin  func(k *cell) error // before all calls of a cell; nil: nothing
	before func()              // after the barrier, not timed; excludes back to back
	run    func(k *cell) error
	end    func(k *cell) error           // after all calls
	parts  func(k *cell) ([]part, error) // the expected results

	timed  func(rank, np int) bool // whose clock counts; nil: all ranks'
	window bool                    // a call is a window of messages
	trips  int                     // a call is that many messages one after the other; 0: one

	model *Model // whose gradients are averaged; sets the size

	volume func(np int) float64 // bytes for algbw, in sizes
	bus    func(np int) float64 // busbw / algbw
}

// operations is the table of all benchmarks. The root, if any, is rank 0. bus is nccl-tests' factor
// (its PERFORMANCE.md).
func operations() []operation {
	return slices.Concat(messageOperations(), oneSidedOperations(), []operation{
		{name: "barrier", noData: true, blocks: each(0, 0), run: runBarrier, volume: times(0), bus: times(0)},
		{name: "bcast", blocks: atRoot(1, 0, 0, 1), run: runBcast, parts: fromRoot, volume: times(1), bus: times(1)},
		{name: "reduce", reduces: true, inPlace: true, blocks: atRoot(1, 1, 1, 0), run: runReduce, parts: reducedAtRoot, volume: times(1), bus: times(1)},
		{name: "allreduce", reduces: true, inPlace: true, blocks: each(1, 1), run: runAllreduce, parts: reducedEverywhere, volume: times(1), bus: twiceOthers},
		{name: "iallreduce", reduces: true, inPlace: true, blocks: each(1, 1), run: runIallreduce, parts: reducedEverywhere, volume: times(1), bus: twiceOthers},
		{name: "allgather", inPlace: true, blocks: gathering, run: runAllgather, parts: gathered, volume: perRank, bus: others},
		{name: "reduce_scatter", reduces: true, inPlace: true, blocks: scattering, run: runReduceScatter, parts: reducedBlock, volume: perRank, bus: others},
		{name: "alltoall", inPlace: true, blocks: exchanging, run: runAlltoall, parts: exchanged, volume: perRank, bus: others},
		{name: "gather", inPlace: true, blocks: gatheringAtRoot, run: runGather, parts: gathered, volume: perRank, bus: others},
		{name: "scatter", inPlace: true, blocks: scatteringAtRoot, run: runScatter, parts: scattered, volume: perRank, bus: others},
		{name: "scan", reduces: true, inPlace: true, blocks: each(1, 1), run: runScan, parts: reducedUpTo, volume: times(1), bus: times(1)},
	})
}

// Names returns the names of the operations that every message-passing library has.
func Names() []string {
	return namesOf(operations())
}

// TrainingNames returns the names of the operations that are a step of training a model, which only
// comm has.
func TrainingNames() []string { return namesOf(trainingOperations()) }

func namesOf(ops []operation) []string {
	var names []string
	for _, op := range ops {
		names = append(names, op.name)
	}
	return names
}

func (op operation) isInPlace(o Options) bool { return o.InPlace && op.inPlace }

// label is the operation's name in rows.
func (op operation) label(o Options) string {
	if op.isInPlace(o) {
		return op.name + "_ip"
	}
	return op.name
}

// sizes returns the sizes of op's cells: from o, or its own.
func (op operation) sizes(o Options) []int {
	switch {
	case op.noData:
		return []int{0}
	case op.model != nil:
		return []int{op.model.Size() * o.Type.Size()}
	}
	return o.Sizes
}

func find(name string) (operation, error) {
	ops := append(operations(), trainingOperations()...)
	i := slices.IndexFunc(ops, func(op operation) bool { return op.name == name })
	if i < 0 {
		return operation{}, fmt.Errorf("operation %q: want one of %s", name, strings.Join(namesOf(ops), ", "))
	}
	return ops[i], nil
}

func times(x float64) func(int) float64 { return func(int) float64 { return x } }
func perRank(np int) float64            { return float64(np) }
func others(np int) float64             { return float64(np-1) / float64(np) }
func twiceOthers(np int) float64        { return 2 * others(np) }

func each(send, recv int) func(rank, np int) (int, int) {
	return func(int, int) (int, int) { return send, recv }
}

func atRoot(send, recv, otherSend, otherRecv int) func(rank, np int) (int, int) {
	return func(rank, _ int) (int, int) {
		if rank == 0 {
			return send, recv
		}
		return otherSend, otherRecv
	}
}

func gathering(_, np int) (send, recv int)           { return 1, np }
func scattering(_, np int) (send, recv int)          { return np, 1 }
func exchanging(_, np int) (send, recv int)          { return np, np }
func gatheringAtRoot(rank, np int) (send, recv int)  { return atRoot(1, np, 1, 0)(rank, np) }
func scatteringAtRoot(rank, np int) (send, recv int) { return atRoot(np, 1, 0, 1)(rank, np) }
