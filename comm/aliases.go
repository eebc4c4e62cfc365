package comm

import (
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// The types a user of comm names, which other packages define.
type (
	// A Buffer is a run of elements of one Type in host or device memory. Of
	// makes one from a slice.
	Buffer = mem.Buffer
	// A Space is a kind of memory: the host's, or a device's, such as a
	// *cudaops.Device. It allocates, copies and reduces Buffers.
	Space = mem.Space
	// A Mark is a point in the work of a device.
	Mark = mem.Mark
	// A Type is an element type.
	Type = mem.Type
	// An Op is a reduction operator; which are defined for which Type says
	// Op.Defined.
	Op = mem.Op
	// Number is the constraint of element types that have arithmetic.
	Number = mem.Number
	// Scalar is the constraint of every element type that can be sent.
	Scalar = mem.Scalar
	// Float16 is an IEEE 754 binary16 number.
	Float16 = mem.Float16
	// A Queue is work of a device, such as a cudaops.Stream.
	Queue = mem.Queue
	// BFloat16 is a bfloat16 number.
	BFloat16 = mem.BFloat16
)

// A Loc pairs a value with an index: the element type of MinLoc and MaxLoc.
type Loc[T int32 | int64 | float32 | float64] = mem.Loc[T]

// The reduction operators.
const (
	Sum    = mem.Sum
	Prod   = mem.Prod
	Min    = mem.Min
	Max    = mem.Max
	Avg    = mem.Avg // Sum divided by the number of ranks
	LAnd   = mem.LAnd
	LOr    = mem.LOr
	LXor   = mem.LXor
	BAnd   = mem.BAnd
	BOr    = mem.BOr
	BXor   = mem.BXor
	MinLoc = mem.MinLoc
	MaxLoc = mem.MaxLoc
)

// Wildcards of Recv and Probe.
const (
	AnySource = engine.Any
	AnyTag    = engine.Any
)

// Of returns the Buffer of s, without copying.
func Of[T Scalar](s []T) Buffer { return mem.Of(s) }

// Slice returns the elements of b, which is host memory of T's Type, without copying.
// It panics if b is not.
func Slice[T Scalar](b Buffer) []T { return mem.Slice[T](b) }

// ToFloat16 rounds f to the nearest Float16, to even in the middle.
func ToFloat16(f float32) Float16 { return mem.ToFloat16(f) }

// ToBFloat16 rounds f to the nearest BFloat16, to even in the middle.
func ToBFloat16(f float32) BFloat16 { return mem.ToBFloat16(f) }
