package measure

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/calls"
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

// operations is the table of all benchmarks. The root, if any, is rank 0.
func operations() []operation {
	started := collective(calls.Allreduce, runIallreduce, reducedEverywhere)
	started.name = nameOf(calls.Allreduce.MPINonblocking())
	return slices.Concat(messageOperations(), oneSidedOperations(), []operation{
		collective(calls.Barrier, runBarrier, nil),
		collective(calls.Bcast, runBcast, fromRoot),
		collective(calls.Reduce, runReduce, reducedAtRoot),
		collective(calls.Allreduce, runAllreduce, reducedEverywhere),
		started,
		collective(calls.Allgather, runAllgather, gathered),
		collective(calls.ReduceScatterBlock, runReduceScatter, reducedBlock),
		collective(calls.Alltoall, runAlltoall, exchanged),
		collective(calls.Gather, runGather, gathered),
		collective(calls.Scatter, runScatter, scattered),
		collective(calls.Scan, runScan, reducedUpTo),
	})
}

// collective returns the benchmark of the collective k, by its row in package calls. bus is the bus
// bandwidth's factor in nccl-tests (its PERFORMANCE.md).
func collective(k calls.Kind, run func(*cell) error, parts func(*cell) ([]part, error)) operation {
	row := &calls.Table[k]
	op := operation{name: nameOf(k.TunedAs().MPI()), reduces: row.Reduces, inPlace: row.Send.Layout != calls.Absent,
		run: run, parts: parts}
	switch {
	case row.Recv.Layout == calls.Absent:
		op.noData, op.volume, op.bus = true, times(0), times(0)
	case k.PerRank():
		op.volume, op.bus = perRank, others
	case k == calls.Allreduce:
		op.volume, op.bus = times(1), twiceOthers
	default:
		op.volume, op.bus = times(1), times(1)
	}
	op.blocks = func(rank, np int) (send, recv int) {
		for _, v := range []*calls.Vector{&row.Send, &row.Recv} {
			n := 1
			if v.PerRank() {
				n = np
			}
			switch v.On(rank == 0) {
			case calls.Read:
				send += n
			case calls.Written:
				recv += n
			}
		}
		return send, recv
	}
	return op
}

// nameOf returns the name of the benchmark of a function of MPI.
func nameOf(mpi string) string { return strings.ToLower(strings.TrimPrefix(mpi, "MPI_")) }

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
