package typemap

import "slices"

// one checks the type argument of a constructor.
func one(t *Type) error {
	if t == nil {
		return wrong(ErrType, "datatype is MPI_DATATYPE_NULL: want a datatype")
	}
	return nil
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// single makes the type of a single block.
func single(b block, by Combiner, ints, addrs []int) (*Type, error) {
	t, err := build(func(yield func(block) bool) { yield(b) })
	if err != nil {
		return nil, err
	}
	return t.made(by, ints, addrs, b.t), nil
}

// Contiguous makes MPI_Type_contiguous.
func Contiguous(count int, of *Type) (*Type, error) {
	if err := firstError(notNegative(ErrCount, "count", count), one(of)); err != nil {
		return nil, err
	}
	return single(block{0, 1, 0, count, of}, ContiguousType, []int{count}, nil)
}

// Vector makes MPI_Type_vector: the stride counts elements.
func Vector(count, blocklength, stride int, of *Type) (*Type, error) {
	if err := vectorArgs(count, blocklength, of); err != nil {
		return nil, err
	}
	if abs(stride)*abs(of.extent) > most {
		return nil, wrong(ErrArg, "stride is %d elements of %d bytes: want fewer than 2^61 bytes", stride, of.extent)
	}
	return single(block{0, count, stride * of.extent, blocklength, of}, VectorType,
		[]int{count, blocklength, stride}, nil)
}

// Hvector makes MPI_Type_create_hvector: the stride counts bytes.
func Hvector(count, blocklength, stride int, of *Type) (*Type, error) {
	if err := vectorArgs(count, blocklength, of); err != nil {
		return nil, err
	}
	return single(block{0, count, stride, blocklength, of}, HvectorType, []int{count, blocklength}, []int{stride})
}

func vectorArgs(count, blocklength int, of *Type) error {
	return firstError(notNegative(ErrCount, "count", count), notNegative(ErrArg, "blocklength", blocklength), one(of))
}

// Struct makes MPI_Type_create_struct.
func Struct(blocklengths, displacements []int, types []*Type) (*Type, error) {
	if err := noneNegative("array_of_blocklengths", blocklengths); err != nil {
		return nil, err
	}
	for i, t := range types {
		if t == nil {
			return nil, wrong(ErrType, "array_of_types[%d] is MPI_DATATYPE_NULL: want a datatype", i)
		}
	}
	t, err := build(func(yield func(block) bool) {
		for i, t := range types {
			if !yield(block{displacements[i], 1, 0, blocklengths[i], t}) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	ints := append([]int{len(types)}, blocklengths...)
	return t.made(StructType, ints, slices.Clone(displacements), slices.Clone(types)...), nil
}

// Indexed makes MPI_Type_indexed: the displacements count elements.
func Indexed(blocklengths, displacements []int, of *Type) (*Type, error) {
	if err := firstError(noneNegative("array_of_blocklengths", blocklengths), one(of),
		displacementsFit(displacements, of)); err != nil {
		return nil, err
	}
	t, err := indexed(len(blocklengths), of,
		func(i int) (int, int) { return displacements[i] * of.extent, blocklengths[i] })
	if err != nil {
		return nil, err
	}
	return t.made(IndexedType, slices.Concat([]int{len(blocklengths)}, blocklengths, displacements), nil, of), nil
}

// Hindexed makes MPI_Type_create_hindexed: the displacements count bytes.
func Hindexed(blocklengths, displacements []int, of *Type) (*Type, error) {
	if err := firstError(noneNegative("array_of_blocklengths", blocklengths), one(of)); err != nil {
		return nil, err
	}
	t, err := indexed(len(blocklengths), of, func(i int) (int, int) { return displacements[i], blocklengths[i] })
	if err != nil {
		return nil, err
	}
	return t.made(HindexedType, append([]int{len(blocklengths)}, blocklengths...), slices.Clone(displacements), of), nil
}

// IndexedBlock makes MPI_Type_create_indexed_block: the displacements count elements.
func IndexedBlock(blocklength int, displacements []int, of *Type) (*Type, error) {
	if err := firstError(notNegative(ErrArg, "blocklength", blocklength), one(of),
		displacementsFit(displacements, of)); err != nil {
		return nil, err
	}
	t, err := indexed(len(displacements), of,
		func(i int) (int, int) { return displacements[i] * of.extent, blocklength })
	if err != nil {
		return nil, err
	}
	return t.made(IndexedBlockType, append([]int{len(displacements), blocklength}, displacements...), nil, of), nil
}

// HindexedBlock makes MPI_Type_create_hindexed_block: the displacements count bytes.
func HindexedBlock(blocklength int, displacements []int, of *Type) (*Type, error) {
	if err := firstError(notNegative(ErrArg, "blocklength", blocklength), one(of)); err != nil {
		return nil, err
	}
	t, err := indexed(len(displacements), of, func(i int) (int, int) { return displacements[i], blocklength })
	if err != nil {
		return nil, err
	}
	return t.made(HindexedBlockType, []int{len(displacements), blocklength}, slices.Clone(displacements), of), nil
}

// indexed makes the type of n blocks.
func indexed(n int, of *Type, at func(i int) (displacement, length int)) (*Type, error) {
	return build(func(yield func(block) bool) {
		for i := range n {
			if disp, length := at(i); !yield(block{disp, 1, 0, length, of}) {
				return
			}
		}
	})
}

// displacementsFit checks displacements that count elements.
func displacementsFit(displacements []int, of *Type) error {
	for i, d := range displacements {
		if abs(d)*abs(of.extent) > most {
			return wrong(ErrArg, "array_of_displacements[%d] is %d elements of %d bytes: want fewer than 2^61 bytes", i,
				d, of.extent)
		}
	}
	return nil
}

// Resized makes MPI_Type_create_resized.
func Resized(of *Type, lb, extent int) (*Type, error) {
	if err := one(of); err != nil {
		return nil, err
	}
	if abs(lb)+abs(extent) > most {
		return nil, wrong(ErrArg, "lb is %d and extent %d: want fewer than 2^61 bytes", lb, extent)
	}
	return of.resized(lb, extent).made(ResizedType, nil, []int{lb, extent}, of), nil
}

func (t *Type) resized(lb, extent int) *Type {
	r := *t
	r.named, r.lb, r.extent, r.lbMark, r.ubMark = nil, lb, extent, true, true
	return &r
}

// Dup makes MPI_Type_dup.
func Dup(of *Type) (*Type, error) {
	if err := one(of); err != nil {
		return nil, err
	}
	d := *of
	d.named = nil
	return d.made(DupType, nil, nil, of), nil
}
