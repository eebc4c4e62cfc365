package comm

import (
	"cmp"
	"slices"
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/core/layout"
)

// A Layout selects elements of a slice for a message or a collective, and their order: the elements
// of a column or of a block of a matrix, for example. Lay makes a Buffer of a Layout, so that
// scattered elements are sent and received without packing by the program (MPI-4.1 chapter 5).
// Places and lengths are in elements, from the beginning of the slice.
//
// A Layout is a value that does not change, for slices of any type. The zero Layout has no
// elements.
type Layout struct {
	in       layout.Layout // of elements of one byte
	overlaps bool          // an element is selected more than once
}

// Len returns the number of elements.
func (l Layout) Len() int { return l.in.Size() }

// Extent returns the length that a slice needs: one more than the last index of l.
func (l Layout) Extent() int {
	_, hi := l.in.Bounds()
	return hi
}

// mostElements bounds lengths and places, so that no sum of them overflows.
const mostElements = 1 << 47

// fits returns an error unless a number is from least to mostElements.
func fits(what string, n, least int) error {
	if n < least || n > mostElements {
		return core.BadArgument("%s %d: want %d to 2^47", what, n, least)
	}
	return nil
}

// Contiguous returns the first n elements.
func Contiguous(n int) (Layout, error) {
	if err := fits("contiguous layout: length", n, 0); err != nil {
		return Layout{}, err
	}
	return Layout{in: layout.Run(n)}, nil
}

// Vector returns count blocks of block elements each, the first elements of which are stride apart:
// a column of a matrix of rows x cols is Vector(rows, 1, cols), of the slice from its first element
// on (MPI_Type_vector). Blocks overlap if stride is less than block.
func Vector(count, block, stride int) (Layout, error) {
	for _, err := range []error{fits("vector: count", count, 0), fits("vector: block", block, 0),
		fits("vector: stride", stride, 0)} {
		if err != nil {
			return Layout{}, err
		}
	}
	if float64(count)*float64(max(block, stride)) > mostElements {
		return Layout{}, core.BadArgument("vector of %d blocks of %d elements, %d apart: want it to end at element 2^47 at most", count, block, stride)
	}
	one := layout.Run(block)
	return Layout{one.Times(count, stride), count > 1 && stride < block}, nil
}

// Subarray returns the block of an array that begins at starts and has subsizes elements in each
// dimension. The array has sizes elements, the last dimension runs fastest, as in Go and C
// (MPI_Type_create_subarray). The elements come in the order of the array.
func Subarray(sizes, subsizes, starts []int) (Layout, error) {
	if len(sizes) == 0 || len(subsizes) != len(sizes) || len(starts) != len(sizes) {
		return Layout{}, core.BadArgument("subarray: sizes %v, subsizes %v, starts %v: want one number for each dimension", sizes, subsizes, starts)
	}
	in, stride := layout.Run(1), 1
	for d := len(sizes) - 1; d >= 0; d-- {
		size, part, start := sizes[d], subsizes[d], starts[d]
		if size < 0 || part < 0 || start < 0 || part > size || start > size-part {
			return Layout{}, core.BadArgument("subarray: dimension %d has %d elements from %d on: want them inside its %d", d, part, start, size)
		}
		if float64(stride)*float64(size) > mostElements {
			return Layout{}, core.BadArgument("subarray: sizes %v: want at most 2^47 elements", sizes)
		}
		in = in.Times(part, stride)
		in = in.At(start * stride)
		stride *= size
	}
	return Layout{in: in}, nil
}

// Indexed returns blocks of lengths[i] elements that begin at starts[i], one after the other
// (MPI_Type_indexed). They may be in any order, and overlap. Indexed takes 24 bytes of memory for a
// block unless lengths and distances are all the same, and Lay as much again.
func Indexed(lengths, starts []int) (Layout, error) {
	if len(lengths) != len(starts) {
		return Layout{}, core.BadArgument("indexed: %d lengths and %d starts: want the same number of both",
			len(lengths), len(starts))
	}
	var b layout.Builder
	total := 0
	for i, n := range lengths {
		if start := starts[i]; n < 0 || start < 0 || n > mostElements-start {
			return Layout{}, core.BadArgument("indexed: block %d has %d elements from %d on: want them between 0 and 2^47", i, n, start)
		}
		if total += n; total > mostElements {
			return Layout{}, core.BadArgument("indexed: more than 2^47 elements up to block %d of %d", i, len(lengths))
		}
		one := layout.Run(n)
		b.Add(one.At(starts[i]))
	}
	return Layout{b.Layout(), anyOverlap(lengths, starts)}, nil
}

// anyOverlap reports whether two blocks have an element in common.
func anyOverlap(lengths, starts []int) bool {
	order := make([]int, 0, len(starts))
	for i, n := range lengths {
		if n > 0 {
			order = append(order, i)
		}
	}
	byStart := func(i, j int) int { return cmp.Compare(starts[i], starts[j]) }
	if !slices.IsSortedFunc(order, byStart) {
		slices.SortFunc(order, byStart)
	}
	for k := 1; k < len(order); k++ {
		if before := order[k-1]; starts[before]+lengths[before] > starts[order[k]] {
			return true
		}
	}
	return false
}

// Lay returns the elements of s selected by l, in l's order, without copying: a Buffer for messages
// and collectives. The other side may use any Layout, or none: only type and number of elements
// count. s must have l.Extent() elements. Receiving into elements that l selects twice is refused.
// A Layout of one run gives a Buffer as Of does.
//
// A Buffer can be used for any number of calls; Lay allocates, so make the Buffer once. Messages up
// to the eager limit are packed into memory that the library keeps, and unpacked from their place
// of arrival. Longer messages pass in chunks, of 12 KiB in shared memory and 64 KiB over networks,
// packed while others are under way. A collective packs the whole Buffer, into memory that the
// library keeps until the last Comm is closed. The elements of s in between are never touched.
// Buffers of one slice may be sent and received at once if they have no element in common: the call
// cannot notice common elements.
func Lay[T Scalar](s []T, l Layout) (Buffer, error) {
	if l.Extent() > len(s) {
		return Buffer{}, core.BadArgument("layout that ends at element %d of a slice of %d: want it inside",
			l.Extent(), len(s))
	}
	if l.Len() == 0 { // at any place
		return Of(s[:0]), nil
	}
	if at, ok := l.in.Contiguous(); ok {
		return Of(s[at : at+l.Len()]), nil
	}
	at, size := unsafe.Pointer(unsafe.SliceData(s)), int(unsafe.Sizeof(s[0]))
	return layout.Lay(uintptr(at), at, l.in.Scaled(size), TypeOf[T](), l.Len(), l.overlaps), nil
}
