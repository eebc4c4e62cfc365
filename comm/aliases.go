package comm

import (
	"gompi/internal/core"
	"gompi/internal/mem"
)

// Types and constants that other packages define.
type (
	// A Buffer is a run of elements of one Type, in the memory of the host or of a device. It is a
	// small value; copying a Buffer copies no element. Of makes a Buffer of a slice, and Slice a
	// slice of a Buffer. Lay makes a Buffer of scattered elements of a slice, and package cudaops
	// makes Buffers of GPU memory.
	//
	//	Len() int               number of elements
	//	Size() int              number of bytes
	//	Type() Type             of an element
	//	Slice(i, j int) Buffer  elements i to j-1, in the same memory
	//	Raw() Buffer            the same memory as uint8
	//	As(like Buffer) Buffer  the same memory as elements of like's Type
	//	IsHost() bool           whether the Buffer is one run of host memory
	//	Space() Space           the memory that holds the elements
	//	Addr() uintptr          the address of the first element there
	//	HostSlice() []byte      the bytes of host memory
	Buffer = mem.Buffer

	// A Type is the type of an element: TypeOf returns the Type of a Go type. Size is its length in
	// bytes, String its name: int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16,
	// bfloat16, float32, float64, complex64, complex128, bool, or the Locs.
	Type = mem.Type

	// Scalar is the constraint of every element type that can be sent: Number, bool, and Loc.
	Scalar = mem.Scalar

	// Number is the constraint of element types that have arithmetic: integers, floats, complex
	// numbers, Float16 and BFloat16, and types derived from them.
	Number = mem.Number

	// A Float16 is an IEEE 754 binary16 number. Float32() converts a Float16, ToFloat16 makes one.
	Float16 = mem.Float16

	// A BFloat16 is the upper half of a float32. Float32() converts a BFloat16, ToBFloat16 makes
	// one.
	BFloat16 = mem.BFloat16

	// An Op is a reduction operator, such as Sum. Defined(Type) reports whether the Op is defined
	// for a type, String() is its name.
	Op = mem.Op

	// A Space is a kind of memory: the host's, or a device's, such as a *cudaops.Device. A Space
	// allocates, copies and reduces Buffers.
	Space = mem.Space

	// A Stream is work of a device in order, such as a cudaops.Stream.
	Stream = mem.Stream

	// An Event is a point in the work of a Stream, like a CUDA event.
	Event = mem.Event
)

// A Loc pairs a Value with an Index: the element type of MinLoc and MaxLoc.
type Loc[T int32 | int64 | float32 | float64] = mem.Loc[T]

// The reduction operators. Sum and Prod combine numbers; Avg combines numbers except integers,
// whose sum may wrap; Min and Max combine ordered numbers; LAnd, LOr, LXor, BAnd, BOr and BXor
// integers and bool; MinLoc and MaxLoc Locs.
const (
	Sum    = mem.Sum
	Prod   = mem.Prod
	Min    = mem.Min
	Max    = mem.Max
	Avg    = mem.Avg  // Sum divided by the number of ranks
	LAnd   = mem.LAnd // logical
	LOr    = mem.LOr
	LXor   = mem.LXor
	BAnd   = mem.BAnd // bitwise
	BOr    = mem.BOr
	BXor   = mem.BXor
	MinLoc = mem.MinLoc // the least Value, and of equal Values the least Index
	MaxLoc = mem.MaxLoc
)

// Wildcards of Recv and Probe.
const (
	AnySource = core.AnySource
	AnyTag    = core.AnyTag
)

// ProcNull is a rank that is no process: the neighbor of a rank at the edge of a grid
// (MPI_PROC_NULL, MPI-4.1 section 3.10). A message to or from ProcNull is complete at once and has
// no effect, on a broken Comm, too. A receive leaves its buffer alone; its Status has Source
// ProcNull, Tag AnyTag and no bytes. Probes find such a message. A Sendrecv with ProcNull at one
// end does only the other half. ProcNull is no rank of a collective.
const ProcNull = core.ProcNull

// TypeOf returns the Type of T.
func TypeOf[T Scalar]() Type { return mem.TypeOf[T]() }

// Of returns the Buffer of s, without copying.
func Of[T Scalar](s []T) Buffer { return mem.Of(s) }

// Slice returns the elements of b without copying. It panics unless b is host memory of T's Type.
func Slice[T Scalar](b Buffer) []T { return mem.Slice[T](b) }

// ToFloat16 rounds f to the nearest Float16, ties to even.
func ToFloat16(f float32) Float16 { return mem.ToFloat16(f) }

// ToBFloat16 rounds f to the nearest BFloat16, ties to even.
func ToBFloat16(f float32) BFloat16 { return mem.ToBFloat16(f) }
