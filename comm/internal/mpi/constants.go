package mpi

import "gompi/comm/internal/mpi/datatype"

// Numbers that arguments and results may be. comm/libmpi/core.h has them for C.
const (
	anySource = -1
	anyTag    = -2
	procNull  = -3
	rootHere  = -4 // MPI_ROOT: of an intercommunicator's collective, on the root
	inPlace   = Addr(1)

	undefined = datatype.Undefined

	unweighted   = Array(10)
	weightsEmpty = Array(11)

	splitShared   = 221
	splitUnguided = 222 // by hardware: no part of a host is known that ranks share
	splitGuided   = 223

	cartTopology      = 211
	graphTopology     = 212
	distGraphTopology = 213

	identical = 0 // of comparisons
	congruent = 1
	similar   = 2
	unequal   = 3
)

// tagUB is MPI_TAG_UB: the highest tag.
const tagUB = 1<<31 - 1
