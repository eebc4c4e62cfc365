package calls

// A Kind is the number of a call.
type Kind uint8

// The calls. Frames carry the numbers of collectives.
//
//c:const GOMPI_KIND_
const (
	None               Kind = 0
	Barrier            Kind = 1
	Bcast              Kind = 2
	Reduce             Kind = 3
	Allreduce          Kind = 4
	ReduceScatter      Kind = 5
	ReduceScatterBlock Kind = 6
	Allgather          Kind = 7
	Allgatherv         Kind = 8
	Gather             Kind = 9
	Gatherv            Kind = 10
	Scatter            Kind = 11
	Scatterv           Kind = 12
	Alltoall           Kind = 13
	Alltoallv          Kind = 14
	Alltoallw          Kind = 15
	Scan               Kind = 16
	Exscan             Kind = 17
	Dup                Kind = 18
	Split              Kind = 19
	SplitHost          Kind = 20
	Create             Kind = 21
	Alloc              Kind = 22
	Free               Kind = 23
	Init               Kind = 24
	Close              Kind = 25
	Send               Kind = 26
	Recv               Kind = 27
	Probe              Kind = 28
	Wait               Kind = 29
	Shrink             Kind = 30
	Agree              Kind = 31
	Restore            Kind = 32
	Count                   = 33 // number of numbers
)

// Traits are the properties of a call.
type Traits struct {
	Name string
	MPI  string // the blocking function

	// Of a collective.
	Rooted     bool
	Reduces    bool
	InC        bool // the C libraries do short calls themselves
	Send, Recv Vector
	Tuned      Kind // the collective whose GOMPI_TUNE rules hold, None for its own
	Needs      Dependence
	As         Kind // the collective that implements it, None if no other does
}

// A Vector is one of the two buffers of a collective.
type Vector struct {
	Layout            Layout
	AtRoot, Elsewhere Role // without a root: on rank 0 and elsewhere, mostly the same
}

// A Layout is the kind of content of a Vector.
type Layout uint8

const (
	Absent  Layout = iota
	Whole          // data for all ranks, or only for its own
	Even           // a block for each rank, equally long
	Counted        // a block for each rank, contiguous, with lengths by counts
	Placed         // the same, at displacements, with possible gaps
	Apart          // the same, each in its own Buffer
)

// A Role is the use of a buffer by a collective on one rank.
type Role uint8

const (
	Unused  Role = iota // any buffer
	Read                // and not changed
	Written             // all of it
	Updated             // in part
	Kept                // not changed
)

// Changes reports whether a buffer with this role gets new content.
func (r Role) Changes() bool { return r == Written || r == Updated }

// A Dependence states whether every rank needs data of every other rank.
type Dependence uint8

const (
	Never Dependence = iota
	IfAny            // if there are elements
	Always
)

// PerRank reports whether the vector has a block for each rank.
func (v *Vector) PerRank() bool { return v.Layout >= Even }

// On returns the role of the vector on the root, or on other ranks.
func (v *Vector) On(root bool) Role {
	if root {
		return v.AtRoot
	}
	return v.Elsewhere
}

// Vectors of most collectives.
var (
	given = Vector{Whole, Read, Read}
	got   = Vector{Whole, Written, Written}
)

// Table has a row for every number that a frame may carry, empty for unused numbers. Bcast's only
// buffer is its Recv. Collectives that make communicators and memory have no vectors here.
var Table = [256]Traits{
	None:    {Name: "none"},
	Barrier: {Name: "barrier", MPI: "MPI_Barrier", InC: true, Needs: Always},
	Bcast:   {Name: "bcast", MPI: "MPI_Bcast", InC: true, Rooted: true, Recv: Vector{Whole, Read, Written}},
	Reduce: {Name: "reduce", MPI: "MPI_Reduce", InC: true, Rooted: true, Reduces: true, Send: given,
		Recv: Vector{Whole, Written, Unused}},
	Allreduce: {Name: "allreduce", MPI: "MPI_Allreduce", InC: true, Reduces: true, Send: given, Recv: got,
		Needs: IfAny},
	ReduceScatter: {Name: "reducescatter", MPI: "MPI_Reduce_scatter", Reduces: true,
		Send: Vector{Counted, Read, Read}, Recv: got},
	ReduceScatterBlock: {Name: "reducescatterblock", MPI: "MPI_Reduce_scatter_block", InC: true, Reduces: true,
		Send: Vector{Even, Read, Read}, Recv: got, Tuned: ReduceScatter, Needs: IfAny},
	Allgather: {Name: "allgather", MPI: "MPI_Allgather", InC: true, Send: given, Recv: Vector{Even, Written, Written},
		Needs: IfAny},
	Allgatherv: {Name: "allgatherv", MPI: "MPI_Allgatherv", Send: given, Recv: Vector{Placed, Updated, Updated},
		Tuned: Allgather},
	Gather: {Name: "gather", MPI: "MPI_Gather", InC: true, Rooted: true, Send: given,
		Recv: Vector{Even, Written, Unused}},
	Gatherv: {Name: "gatherv", MPI: "MPI_Gatherv", Rooted: true, Send: given, Recv: Vector{Placed, Updated, Unused}},
	Scatter: {Name: "scatter", MPI: "MPI_Scatter", InC: true, Rooted: true,
		Send: Vector{Even, Read, Unused}, Recv: got},
	Scatterv: {Name: "scatterv", MPI: "MPI_Scatterv", Rooted: true, Send: Vector{Placed, Read, Unused}, Recv: got},
	Alltoall: {Name: "alltoall", MPI: "MPI_Alltoall", InC: true, Send: Vector{Even, Read, Read},
		Recv: Vector{Even, Written, Written}, Needs: IfAny},
	Alltoallv: {Name: "alltoallv", MPI: "MPI_Alltoallv", Send: Vector{Placed, Read, Read},
		Recv: Vector{Placed, Updated, Updated}},
	Alltoallw: {Name: "alltoallw", MPI: "MPI_Alltoallw", Send: Vector{Apart, Read, Read},
		Recv: Vector{Apart, Written, Written}},
	Scan: {Name: "scan", MPI: "MPI_Scan", Reduces: true, Send: given, Recv: got},
	Exscan: {Name: "exscan", MPI: "MPI_Exscan", Reduces: true, Send: given, Recv: Vector{Whole, Kept, Written},
		Tuned: Scan},

	Dup:       {Name: "dup", MPI: "MPI_Comm_dup", Needs: Always, As: Allgather},
	Split:     {Name: "split", MPI: "MPI_Comm_split", Needs: Always, As: Allgather},
	SplitHost: {Name: "split_host", MPI: "MPI_Comm_split_type", Needs: Always, As: Allgather},
	Create:    {Name: "create", MPI: "MPI_Comm_create", Needs: Always, As: Allgather},
	Alloc:     {Name: "alloc", Needs: Always, As: Allgather},
	Free:      {Name: "free", Needs: Always, As: Barrier},

	Init:    {Name: "init"},
	Close:   {Name: "close"},
	Send:    {Name: "send", MPI: "MPI_Send"},
	Recv:    {Name: "recv", MPI: "MPI_Recv"},
	Probe:   {Name: "probe", MPI: "MPI_Probe"},
	Wait:    {Name: "wait", MPI: "MPI_Wait"},
	Shrink:  {Name: "shrink"},
	Agree:   {Name: "agree"},
	Restore: {Name: "restore"},
}

// Functions are MPI's functions that consist of several collectives. Their numbers, from Count on,
// are in the frames of these, so that errors and the flight recorder name the function.
var Functions = map[string]Kind{}

func init() {
	for i, name := range mpiFunctions {
		Table[Count+i], Functions[name] = Traits{Name: name, MPI: name}, Kind(Count+i)
	}
}
