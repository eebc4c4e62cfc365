package typemap

import "slices"

// A grid makes the type of a part of an array, dimension by dimension, beginning with the
// dimension that runs fastest.
type grid struct {
	t      *Type // of the dimensions so far: the extent spans all their elements
	before error
}

// A segment is count runs of length indices, step apart, from first on.
type segment struct{ first, count, step, length int }

// add adds a dimension of which the segments are wanted.
func (g *grid) add(size int, segments ...segment) {
	stride := g.t.extent
	if float64(size)*abs(stride) > most && g.before == nil {
		g.before = wrong(ErrArg, "the array has more than 2^61 bytes")
	}
	if g.before != nil {
		return
	}
	t, err := build(func(yield func(block) bool) {
		for _, s := range segments {
			if !yield(block{s.first * stride, s.count, s.step * stride, s.length, g.t}) {
				return
			}
		}
	})
	if g.before = err; err == nil {
		g.t = t.resized(0, size*stride)
	}
}

func checkOrder(order int) error {
	if order != OrderC && order != OrderFortran {
		return wrong(ErrArg, "order is %d: want MPI_ORDER_C or MPI_ORDER_FORTRAN", order)
	}
	return nil
}

// within checks a number of an array.
func within(name string, i, n, from, to int) error {
	if n < from || n > to {
		return wrong(ErrArg, "%s[%d] is %d: want %d to %d", name, i, n, from, to)
	}
	return nil
}

// dimension returns the k-th dimension of n in the order of memory.
func dimension(k, n, order int) int {
	if order == OrderC {
		return n - 1 - k
	}
	return k
}

// Subarray makes MPI_Type_create_subarray.
func Subarray(sizes, subsizes, starts []int, order int, of *Type) (*Type, error) {
	n := len(sizes)
	if n < 1 {
		return nil, wrong(ErrDims, "ndims is %d: want 1 or more", n)
	}
	if err := firstError(checkOrder(order), one(of)); err != nil {
		return nil, err
	}
	g := grid{t: of}
	for i := range n {
		if err := firstError(within("array_of_sizes", i, sizes[i], 1, most),
			within("array_of_subsizes", i, subsizes[i], 1, sizes[i]),
			within("array_of_starts", i, starts[i], 0, sizes[i]-subsizes[i])); err != nil {
			return nil, err
		}
	}
	for k := range n {
		i := dimension(k, n, order)
		g.add(sizes[i], segment{starts[i], 1, 0, subsizes[i]})
	}
	if g.before != nil {
		return nil, g.before
	}
	return g.t.made(SubarrayType, slices.Concat([]int{n}, sizes, subsizes, starts, []int{order}), nil, of), nil
}

// Darray makes MPI_Type_create_darray: the array's elements on rank of size ranks.
func Darray(size, rank int, gsizes, distribs, dargs, psizes []int, order int, of *Type) (*Type, error) {
	n := len(gsizes)
	if n < 1 {
		return nil, wrong(ErrDims, "ndims is %d: want 1 or more", n)
	}
	if err := firstError(checkOrder(order), one(of)); err != nil {
		return nil, err
	}
	place, err := placeInGrid(size, rank, psizes)
	if err != nil {
		return nil, err
	}
	blocks := make([]int, n)
	for i := range n {
		if blocks[i], err = blockSize(i, gsizes[i], distribs[i], dargs[i], psizes[i]); err != nil {
			return nil, err
		}
	}
	g := grid{t: of}
	for k := range n {
		i := dimension(k, n, order)
		g.add(gsizes[i], cyclic(gsizes[i], blocks[i], psizes[i], place[i])...)
	}
	if g.before != nil {
		return nil, g.before
	}
	return g.t.made(DarrayType, slices.Concat([]int{size, rank, n}, gsizes, distribs, dargs, psizes, []int{order}),
		nil, of), nil
}

// placeInGrid returns the coordinates of a rank. Ranks are in C's order, whatever the array's
// order.
func placeInGrid(size, rank int, psizes []int) (place []int, err error) {
	all := 1
	for i, p := range psizes {
		if err := within("array_of_psizes", i, p, 1, size); err != nil {
			return nil, err
		}
		if all *= p; all > size {
			break
		}
	}
	if all != size {
		return nil, wrong(ErrArg, "size is %d: want the product of array_of_psizes %d", size, psizes)
	}
	if rank < 0 || rank >= size {
		return nil, wrong(ErrArg, "rank is %d: want 0 to %d", rank, size-1)
	}
	place = make([]int, len(psizes))
	for k := len(psizes) - 1; k >= 0; k-- {
		place[k], rank = rank%psizes[k], rank/psizes[k]
	}
	return place, nil
}

// blockSize returns the number of consecutive indices of a rank.
func blockSize(i, gsize, distrib, darg, psize int) (int, error) {
	if err := within("array_of_gsizes", i, gsize, 1, most); err != nil {
		return 0, err
	}
	if darg < 1 && darg != DistributeDefault && distrib != DistributeNone {
		return 0, wrong(ErrArg, "array_of_dargs[%d] is %d: want 1 or more, or MPI_DISTRIBUTE_DFLT_DARG", i, darg)
	}
	block := min(darg, gsize)
	switch distrib {
	case DistributeNone:
		if psize != 1 {
			return 0, wrong(ErrArg, "array_of_psizes[%d] is %d: want 1, as the dimension is MPI_DISTRIBUTE_NONE", i, psize)
		}
		block = gsize
	case DistributeBlock:
		least := (gsize + psize - 1) / psize
		if darg == DistributeDefault {
			block = least
		} else if block < least {
			return 0, wrong(ErrArg, "array_of_dargs[%d] is %d: want %d or more, for %d ranks have %d indices", i, darg,
				least, psize, gsize)
		}
	case DistributeCyclic:
		if darg == DistributeDefault {
			block = 1
		}
	default:
		return 0, wrong(ErrArg, "array_of_distribs[%d] is %d: want MPI_DISTRIBUTE_BLOCK, _CYCLIC or _NONE", i, distrib)
	}
	return block, nil
}

// cyclic returns the indices of a rank in a block-cyclic distribution over a number of ranks: whole
// blocks, and perhaps a part of a block at the end.
func cyclic(size, block, ranks, place int) []segment {
	first, step := place*block, block*ranks
	whole := max(0, (size-first-block+step)/step)
	rest := segment{first: first + whole*step, count: 1}
	rest.length = max(0, min(block, size-rest.first))
	return []segment{{first, whole, step, block}, rest}
}
