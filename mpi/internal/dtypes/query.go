package dtypes

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/typemap"
)

func TypeSize(t *Datatype) (int, error) {
	return t.Size(), nil
}

func TypeGetExtent(t *Datatype) (lb, extent int, err error) {
	return t.Lb(), t.Extent(), nil
}

func TypeGetTrueExtent(t *Datatype) (lb, extent int, err error) {
	lb, extent = t.TrueExtent()
	return lb, extent, nil
}

func TypeExtent(t *Datatype) (int, error) {
	_, extent, err := TypeGetExtent(t)
	return extent, err
}

func TypeLb(t *Datatype) (int, error) {
	lb, _, err := TypeGetExtent(t)
	return lb, err
}

func TypeUb(t *Datatype) (int, error) {
	lb, extent, err := TypeGetExtent(t)
	return lb + extent, err
}

func TypeGetEnvelope(t *Datatype) (integers, addresses, types, combiner int, err error) {
	c := t.Contents()
	return len(c.Ints), len(c.Addrs), len(c.Types), int(c.Combiner), nil
}

// TypeGetContents gives types that are not predefined new handles, which the program frees.
func TypeGetContents(t *Datatype, maxIntegers, maxAddresses, maxTypes int, integers, addresses abi.Array,
	types []abi.Handle) error {
	c := t.Contents()
	switch {
	case c.Combiner == typemap.NamedType:
		return errs.New(errs.Type, "%s is predefined", t.name)
	case maxIntegers < len(c.Ints) || maxAddresses < len(c.Addrs) || maxTypes < len(c.Types):
		return errs.New(errs.Arg, "there is room for %d integers, %d addresses and %d datatypes: want %d, %d and %d",
			maxIntegers, maxAddresses, maxTypes, len(c.Ints), len(c.Addrs), len(c.Types))
	}
	contents(c, integers.Ints(len(c.Ints)))
	copy(addresses.Addresses(len(c.Addrs)), c.Addrs)
	for i, of := range c.Types {
		d, err := HandleOf(of)
		if err != nil {
			return err
		}
		types[i] = d.Handle
	}
	return nil
}

// HandleOf returns a handle of a type, a new handle unless the type is predefined.
func HandleOf(t *typemap.Type) (*Datatype, error) {
	if t.Basic() != nil {
		return predefinedOf(t, nil)
	}
	d, err := derived(t, nil)
	if err == nil {
		d.committed = true
	}
	return d, err
}

// contents stores the integers of c as the face has them.
func contents(c typemap.Contents, out []int32) {
	for i, x := range c.Ints {
		out[i] = int32(x)
	}
	if c.Combiner != typemap.DarrayType {
		return
	}
	ndims := c.Ints[2]
	for i, x := range c.Ints[3+ndims:][:ndims] {
		out[3+ndims+i] = int32(map[int]int{
			typemap.DistributeBlock:  abi.C.DistributeBlock,
			typemap.DistributeCyclic: abi.C.DistributeCyclic,
			typemap.DistributeNone:   abi.C.DistributeNone,
		}[x])
	}
	for i, x := range c.Ints[3+2*ndims:][:ndims] {
		if x == typemap.DistributeDefault {
			out[3+2*ndims+i] = int32(abi.C.DefaultArgument)
		}
	}
}

func TypeGetName(t *Datatype, name abi.Text) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return name.Set(t.name, abi.C.MaxObjectName), nil
}

func TypeSetName(t *Datatype, name abi.Text) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name = name.String()
	return nil
}
