package abi

import "gompi/mpi/internal/typemap"

// Numbers that arguments and results may be.
//
//c:const GOMPI_
const (
	AnySource = -1
	AnyTag    = -2
	ProcNull  = -3
	RootHere  = -4 // MPI_ROOT: of an intercommunicator's collective, on the root
	InPlace   = Addr(1)

	Undefined = typemap.Undefined

	Unweighted   = Array(10)
	WeightsEmpty = Array(11)

	SplitShared   = 221
	SplitUnguided = 222 // by hardware: no part of a host is known that ranks share
	SplitGuided   = 223

	CartTopology      = 211
	GraphTopology     = 212
	DistGraphTopology = 213

	Identical = 201 // of comparisons
	Congruent = 202
	Similar   = 203
	Unequal   = 204
)

// TagUB is MPI_TAG_UB: the highest tag.
const TagUB = 1<<31 - 1

// Error classes that MPI 5.0 lacks: below ERR_LASTCODE, which the programs' classes follow.
//
//c:const GOMPI_
const (
	ErrProcFailed        = 16001
	ErrProcFailedPending = 16002
	ErrRevoked           = 16003
)
