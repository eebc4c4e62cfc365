package mpi

import "gompi/comm/internal/mpi/datatype"

func TypeSize(t *Datatype) (int, error) {
	if err := checkType(t); err != nil {
		return 0, err
	}
	return t.Size(), nil
}

func TypeSizeX(t *Datatype) (int, error) { return TypeSize(t) }

func TypeGetExtent(t *Datatype) (lb, extent int, err error) {
	if err := checkType(t); err != nil {
		return 0, 0, err
	}
	return t.Lb(), t.Extent(), nil
}

func TypeGetExtentX(t *Datatype) (lb, extent int, err error) { return TypeGetExtent(t) }

func TypeGetTrueExtent(t *Datatype) (lb, extent int, err error) {
	if err := checkType(t); err != nil {
		return 0, 0, err
	}
	lb, extent = t.TrueExtent()
	return lb, extent, nil
}

func TypeGetTrueExtentX(t *Datatype) (lb, extent int, err error) { return TypeGetTrueExtent(t) }

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
	if err := checkType(t); err != nil {
		return 0, 0, 0, 0, err
	}
	c := t.Contents()
	return len(c.Ints), len(c.Addrs), len(c.Types), int(c.Combiner), nil
}

// TypeGetContents gives types that are not predefined new handles, which the program frees.
func TypeGetContents(t *Datatype, maxIntegers, maxAddresses, maxTypes int, integers, addresses Array, types []Handle) error {
	if err := checkType(t); err != nil {
		return err
	}
	c := t.Contents()
	switch {
	case c.Combiner == datatype.NamedType:
		return wrong(errType, "%s is predefined", t.name)
	case maxIntegers < len(c.Ints) || maxAddresses < len(c.Addrs) || maxTypes < len(c.Types):
		return wrong(errArg, "there is room for %d integers, %d addresses and %d datatypes: want %d, %d and %d",
			maxIntegers, maxAddresses, maxTypes, len(c.Ints), len(c.Addrs), len(c.Types))
	}
	contents(c, integers.ints(len(c.Ints)))
	copy(addresses.addresses(len(c.Addrs)), c.Addrs)
	for i, of := range c.Types {
		d, err := handleOf(of)
		if err != nil {
			return err
		}
		types[i] = d.handle
	}
	return nil
}

// handleOf returns a handle of a type, a new one unless it is predefined.
func handleOf(t *datatype.Type) (*Datatype, error) {
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
func contents(c datatype.Contents, out []int32) {
	for i, x := range c.Ints {
		out[i] = int32(x)
	}
	if c.Combiner != datatype.DarrayType {
		return
	}
	ndims := c.Ints[2]
	for i, x := range c.Ints[3+ndims:][:ndims] {
		out[3+ndims+i] = int32(map[int]int{
			datatype.DistributeBlock:  face.DistributeBlock,
			datatype.DistributeCyclic: face.DistributeCyclic,
			datatype.DistributeNone:   face.DistributeNone,
		}[x])
	}
	for i, x := range c.Ints[3+2*ndims:][:ndims] {
		if x == datatype.DistributeDefault {
			out[3+2*ndims+i] = int32(face.DefaultArgument)
		}
	}
}

func TypeGetName(t *Datatype, name Text) (int, error) {
	if err := checkType(t); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return name.set(t.name, face.MaxObjectName), nil
}

func TypeSetName(t *Datatype, name Text) error {
	if err := checkType(t); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name = name.String()
	return nil
}

// ---- Packing ----

func Pack(in Addr, n int, t *Datatype, out Addr, size int, position *int, c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	return pack(in, n, t, out, size, position)
}

func pack(in Addr, n int, t *Datatype, out Addr, size int, position *int) error {
	if err := checkData(n, t); err != nil {
		return err
	}
	bytes := n * t.Size()
	if *position < 0 || bytes > size-*position {
		return wrong(errTruncate, "%d bytes from %d on do not fit into %d", bytes, *position, size)
	}
	t.Type.Pack(out.bytes(size)[*position:], uintptr(in), n)
	*position += bytes
	return nil
}

func Unpack(in Addr, size int, position *int, out Addr, n int, t *Datatype, c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	if err := checkData(n, t); err != nil {
		return err
	}
	bytes := n * t.Size()
	if *position < 0 || bytes > size-*position {
		return wrong(errTruncate, "%d bytes are not there from %d of %d on", bytes, *position, size)
	}
	t.Type.Unpack(uintptr(out), n, in.bytes(size)[*position:][:bytes])
	*position += bytes
	return nil
}

func PackSize(n int, t *Datatype, c *Comm) (int, error) {
	if err := checkComm(c); err != nil {
		return 0, err
	}
	if err := checkData(n, t); err != nil {
		return 0, err
	}
	return n * t.Size(), nil
}

func checkExternal(name Text, n int, t *Datatype) error {
	if s := name.String(); s != "external32" {
		return wrong(errArg, "the data representation is %q: want external32", s)
	}
	return checkData(n, t)
}

func PackExternal(rep Text, in Addr, n int, t *Datatype, out Addr, size int, position *int) error {
	if err := checkExternal(rep, n, t); err != nil {
		return err
	}
	bytes := t.ExternalSize(n)
	if *position < 0 || bytes > size-*position {
		return wrong(errTruncate, "%d bytes from %d on do not fit into %d", bytes, *position, size)
	}
	_, err := t.Type.PackExternal(out.bytes(size)[*position:], uintptr(in), n)
	*position += bytes
	return err
}

func UnpackExternal(rep Text, in Addr, size int, position *int, out Addr, n int, t *Datatype) error {
	if err := checkExternal(rep, n, t); err != nil {
		return err
	}
	bytes := t.ExternalSize(n)
	if *position < 0 || bytes > size-*position {
		return wrong(errTruncate, "%d bytes are not there from %d of %d on", bytes, *position, size)
	}
	_, err := t.Type.UnpackExternal(uintptr(out), n, in.bytes(size)[*position:][:bytes])
	*position += bytes
	return err
}

func PackExternalSize(rep Text, n int, t *Datatype) (int, error) {
	if err := checkExternal(rep, n, t); err != nil {
		return 0, err
	}
	return t.ExternalSize(n), nil
}
