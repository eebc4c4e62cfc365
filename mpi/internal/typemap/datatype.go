// Package typemap has MPI's datatypes: predefined types, the constructors of derived types,
// queries of them, and the transfer of their data to and from packed bytes. Handles, names,
// attributes and messages are not its business.
//
// A Type is immutable and may be used by several goroutines. Counts, displacements and bounds are
// ints, so that the functions of MPI with large counts need nothing else. Addresses are numbers,
// as memory is C's: a caller that passes an address of Go's memory keeps that memory alive. The
// base 0 is MPI_BOTTOM, with displacements that are addresses.
package typemap

import "gompi/internal/core/layout"

// Constants with the values of the standard ABI.
const (
	Undefined = -32766 // MPI_UNDEFINED

	OrderC       = 12
	OrderFortran = 15

	DistributeNone    = 16
	DistributeBlock   = 17
	DistributeCyclic  = 18
	DistributeDefault = 19 // MPI_DISTRIBUTE_DFLT_DARG

	ClassInteger = 192 // MPI_TYPECLASS_INTEGER
	ClassReal    = 193
	ClassComplex = 194
)

// A Combiner is the constructor of a type. The values are the standard ABI's.
type Combiner int

const (
	NamedType Combiner = 101 + iota
	DupType
	ContiguousType
	VectorType
	HvectorType
	IndexedType
	HindexedType
	IndexedBlockType
	HindexedBlockType
	StructType
	SubarrayType
	DarrayType
	F90RealType
	F90ComplexType
	F90IntegerType
	ResizedType
)

// A Type is a datatype.
type Type struct {
	named     *Basic // if predefined
	size      int
	external  int // bytes in external32
	elements  int
	align     int
	lb        int
	extent    int
	lbMark    bool // the bound was set, not computed
	ubMark    bool
	uniform   *Basic          // if all elements are of this type
	mixed     *layout.Layout  // the layout by elements, if they are not
	whole     []layout.Layout // the layout by bytes, a single element
	signature signature

	combiner    Combiner
	ints, addrs []int
	types       []*Type
}

// leaf makes the type of a single element.
func leaf(b *Basic) *Type {
	return &Type{
		size: b.Size, external: b.External, elements: 1, align: b.Align, extent: b.Size, uniform: b,
		whole: []layout.Layout{layout.Run(b.Size)}, signature: b.signature(), combiner: NamedType,
	}
}

// layout returns the layout by bytes.
func (t *Type) layout() *layout.Layout {
	if t.whole == nil {
		return &layout.Layout{}
	}
	return &t.whole[0]
}

// byElements returns the layout by elements.
func (t *Type) byElements() layout.Layout {
	switch {
	case t.mixed != nil:
		return *t.mixed
	case t.uniform == nil:
		return *t.layout()
	}
	return t.layout().Of(t.uniform)
}

// Layout returns the layout of n elements.
func (t *Type) Layout(n int) layout.Layout {
	if t.size == 0 {
		return layout.Layout{}
	}
	return layout.Around(t.whole, n, t.extent)
}

// Basic returns the description of a predefined type, nil for others. Types of
// MPI_Type_create_f90_real and its like are predefined, too: their Basic is the Basic of a type
// with a name.
func (t *Type) Basic() *Basic { return t.named }

// Uniform returns the type that all elements are of, nil if they differ or there are none.
func (t *Type) Uniform() *Basic { return t.uniform }

// Size returns the bytes of data.
func (t *Type) Size() int { return t.size }

// Lb returns the lower bound.
func (t *Type) Lb() int { return t.lb }

// Ub returns the upper bound.
func (t *Type) Ub() int { return t.lb + t.extent }

// Extent returns how far apart the elements of an array are.
func (t *Type) Extent() int { return t.extent }

// TrueExtent returns the displacement of the first byte of data, and the extent of all data.
func (t *Type) TrueExtent() (lb, extent int) {
	lo, hi := t.layout().Bounds()
	return lo, hi - lo
}

// Contents are a type's constructor and its arguments: the results of MPI_Type_get_envelope and
// MPI_Type_get_contents. The slices must not be changed.
type Contents struct {
	Combiner Combiner
	Ints     []int // in the order that the standard gives for the constructor
	Addrs    []int
	Types    []*Type
}

// Contents returns the type's constructor and its arguments, the combiner alone for a type with a
// name.
func (t *Type) Contents() Contents { return Contents{t.combiner, t.ints, t.addrs, t.types} }

// made sets the constructor of a new type, and its arguments.
func (t *Type) made(by Combiner, ints, addrs []int, types ...*Type) *Type {
	t.combiner, t.ints, t.addrs, t.types = by, ints, addrs, types
	return t
}

// Count returns the number of elements of the type in a number of bytes: MPI_Get_count. The result
// is Undefined if the last element is not whole.
func (t *Type) Count(bytes int) int {
	switch {
	case bytes == 0:
		return 0
	case t.size == 0 || bytes%t.size != 0:
		return Undefined
	}
	return bytes / t.size
}

// Elements returns the number of elements of predefined types in a number of bytes:
// MPI_Get_elements. The result is Undefined if the last element is not whole.
func (t *Type) Elements(bytes int) int {
	if bytes == 0 {
		return 0
	}
	if t.size == 0 {
		return Undefined
	}
	l := t.byElements()
	n, rest := l.Elements(bytes % t.size)
	if rest > 0 {
		return Undefined
	}
	return bytes/t.size*t.elements + n
}

// Bytes returns the bytes of a number of elements of predefined types, for MPI_Status_set_elements.
func (t *Type) Bytes(elements int) int {
	if t.elements == 0 {
		return 0
	}
	l := t.byElements()
	return elements/t.elements*t.size + l.Bytes(elements%t.elements)
}

// Contiguous reports whether n elements are a single run of bytes, and where the run begins: such
// data need not be packed.
func (t *Type) Contiguous(n int) (offset int, ok bool) {
	l := t.Layout(n)
	return l.Contiguous()
}

// Pack copies n elements at base into dst, and returns the number of bytes copied: fewer than n
// elements have, if dst is shorter.
func (t *Type) Pack(dst []byte, base uintptr, n int) int { return t.PackAt(dst, base, n, 0) }

// PackAt copies the bytes after the first skip bytes of n packed elements.
func (t *Type) PackAt(dst []byte, base uintptr, n, skip int) int {
	l := t.Layout(n)
	return l.Pack(dst, base, skip)
}

// Unpack copies packed bytes to n elements at base, and returns the number of bytes used: less
// than n elements have, if src is shorter.
func (t *Type) Unpack(base uintptr, n int, src []byte) int { return t.UnpackAt(base, n, src, 0) }

// UnpackAt copies src to the bytes after the first skip bytes of n packed elements.
func (t *Type) UnpackAt(base uintptr, n int, src []byte, skip int) int {
	l := t.Layout(n)
	return l.Unpack(base, src, skip)
}
