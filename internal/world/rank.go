// Package world has the two numbers of a process of a job below communicators. They are types, so
// that the compiler keeps them apart from each other and from ranks of communicators, which are
// plain ints.
package world

// A Rank is a rank of the job, from 0: a rank of the communicator that Init returns. None is no
// rank, or any.
type Rank int32

// None is less than all ranks.
const None Rank = -1

// A LocalRank is a rank among the ranks of its host, from 0, in the order of their Ranks.
type LocalRank int32
