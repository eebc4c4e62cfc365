package dtypes

import (
	"slices"
	"sync"
	"unsafe"

	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/typemap"
)

var Ops = abi.NewRegistry(abi.OpNull, func(o *Op) abi.Handle { return o.Handle }).LateReuse()

// An Op is an operator with a handle.
type Op struct {
	Handle  abi.Handle
	name    string
	kind    mem.Op   // of a predefined operator
	fn      abi.Addr // of a program's
	commute bool
}

func init() {
	kinds := map[string]mem.Op{
		"MPI_SUM": mem.Sum, "MPI_PROD": mem.Prod, "MPI_MIN": mem.Min, "MPI_MAX": mem.Max,
		"MPI_LAND": mem.LAnd, "MPI_LOR": mem.LOr, "MPI_LXOR": mem.LXor,
		"MPI_BAND": mem.BAnd, "MPI_BOR": mem.BOr, "MPI_BXOR": mem.BXor,
		"MPI_MINLOC": mem.MinLoc, "MPI_MAXLOC": mem.MaxLoc, "MPI_REPLACE": mem.NoOp, "MPI_NO_OP": mem.NoOp,
	}
	for _, h := range abi.Handles() {
		if kind, ok := kinds[h.Name]; ok {
			Ops.Set(abi.Handle(h.ID), &Op{abi.Handle(h.ID), h.Name, kind, 0, true})
		}
	}
}

// Arithmetic calls operator for MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX, and element for each
// predefined type that all of them combine, with the numbers of their handles.
func Arithmetic(operator func(number int, op mem.Op), element func(number int, t mem.Type)) {
	all := []*Op{}
	for _, h := range abi.Handles() {
		if o := Ops.Find(abi.Handle(h.ID)); h.Kind == "op" && o != nil && o.kind >= mem.Sum && o.kind <= mem.Max {
			operator(h.ID, o.kind)
			all = append(all, o)
		}
	}
	for t := range typemap.All() {
		if b := t.Basic(); b != nil && !slices.ContainsFunc(all, func(o *Op) bool { return !o.defined(b) }) {
			element(b.ID, b.Mem)
		}
	}
}

func OpCreate(fn abi.Addr, commute bool) (*Op, error) {
	o := &Op{fn: fn, commute: commute}
	o.Handle = Ops.Add(o)
	return o, nil
}

func OpFree(h *abi.Handle) error {
	o := Ops.Find(*h)
	if o == nil || o.fn == 0 {
		return errs.New(errs.Op, "the operator is not one of the program's")
	}
	Ops.Remove(*h)
	*h = Ops.Null
	return nil
}

// IsPredefined reports whether MPI itself defines o.
func (o *Op) IsPredefined() bool { return o.fn == 0 }

// Kind returns package mem's operator for a predefined o, NoOp if there is none.
func (o *Op) Kind() mem.Op { return o.kind }

// SetLanguage says which language the function is in, other than C.
func (o *Op) SetLanguage(language int) { o.fn = o.fn.In(language) }

func OpCommutative(o *Op) (bool, error) {
	if o == nil {
		return false, errs.New(errs.Op, "the operator is not valid")
	}
	return o.commute, nil
}

// defined reports whether o combines elements of a predefined type (MPI 4.0, section 6.9.2). As
// in other implementations, MPI_CHAR is a number. Integers and complex numbers of Fortran that
// neither Go nor C has are not combined.
func (o *Op) defined(b *typemap.Basic) bool {
	if b.Mem == mem.NoType && !combinesPairs(b.Name) && !combinedInC[b.Name] {
		return false
	}
	switch o.kind {
	case mem.Sum, mem.Prod:
		return b.Class == typemap.Complex || b.Class == typemap.Float || isInteger(b)
	case mem.Min, mem.Max:
		return b.Class == typemap.Float || isInteger(b)
	case mem.LAnd, mem.LOr, mem.LXor:
		return b.Class == typemap.Logical || isInteger(b)
	case mem.BAnd, mem.BOr, mem.BXor:
		return b.Class == typemap.Byte || isInteger(b)
	case mem.MinLoc, mem.MaxLoc:
		return b.Class == typemap.Pair
	}
	return false
}

// combinedInC are the types that Face.Combine has operators for.
var combinedInC = map[string]bool{
	"MPI_LONG_DOUBLE": true, "MPI_LONG_DOUBLE_INT": true, "MPI_C_LONG_DOUBLE_COMPLEX": true,
	"MPI_CXX_LONG_DOUBLE_COMPLEX": true,
}

func isInteger(b *typemap.Basic) bool {
	switch b.Class {
	case typemap.CInteger, typemap.FortranInteger, typemap.MultiLanguage:
		return true
	}
	return b.Name == "MPI_CHAR"
}

// CheckOp returns an error if an operator is not valid for a type.
func CheckOp(o *Op, t *Datatype) error {
	switch {
	case o == nil:
		return errs.New(errs.Op, "the operator is not valid")
	case o.fn != 0:
		return nil
	case t.Basic() == nil:
		return errs.New(errs.Op, "%s is not defined for a derived datatype", o.name)
	case !o.defined(t.Basic()):
		return errs.New(errs.Op, "%s is not defined for %s", o.name, t.Basic().Name)
	}
	return nil
}

// native returns the type of package mem's kernels for o on t, if there is one.
func (o *Op) native(t *Datatype) (mem.Type, bool) {
	b := t.Basic()
	if o.fn != 0 || b == nil || !o.kind.Defined(b.Mem) {
		return mem.NoType, false
	}
	return b.Mem, true
}

// Combination returns core's operator for o on elements of t.
func (o *Op) Combination(t *Datatype) call.Op {
	if _, ok := o.native(t); ok {
		return call.Op{Kind: o.kind}
	}
	if o.fn != 0 {
		t.Operand()
	}
	if !isSolid(t) {
		return call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) { o.combinePacked(t, acc, in) },
			Program: o.fn != 0}
	}
	return call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) { o.combine(t, acc, in) }, Program: o.fn != 0}
}

// combine stores acc op in into acc. MPI's functions store into their second operand: acc if o
// commutes, else a copy of in, which may be a peer's.
func (o *Op) combine(t *Datatype, acc, in mem.Buffer) {
	n := acc.Len()
	if n == 0 {
		return
	}
	if o.commute {
		o.apply(t, addrOf(in), addrOf(acc), n)
		return
	}
	room := copies.Get().(*[]byte)
	defer copies.Put(room)
	*room = append((*room)[:0], in.HostSlice()...)
	o.apply(t, addrOf(acc), abi.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(*room)))), n)
	copy(acc.HostSlice(), *room)
}

// combinePacked is combine for packed elements. The program's function gets them as arrays of t.
func (o *Op) combinePacked(t *Datatype, acc, in mem.Buffer) {
	if n := acc.Len(); n > 0 {
		combineArrays(t, n, acc.HostSlice(), acc.HostSlice(), in.HostSlice(), o.call)
	}
}

// CombinePacked stores acc op in into acc, packed elements of t. o is predefined.
func (o *Op) CombinePacked(t *Datatype, acc, in []byte) {
	if n := len(acc) / t.Size(); n > 0 {
		combineArrays(t, n, acc, in, acc, o.apply)
	}
}

// combineArrays packs into acc the result of combine, which stores into its second operand. The
// operands are packed elements of t, left and right, and combine gets them as arrays.
func combineArrays(t *Datatype, n int, acc, left, right []byte,
	combine func(t *Datatype, in, inout abi.Addr, n int)) {
	from, bytes := t.Span(n)
	room := copies.Get().(*[]byte)
	defer copies.Put(room)
	*room = slices.Grow((*room)[:0], 2*(bytes+alignment))
	l := arrayIn(uintptr(unsafe.Pointer(unsafe.SliceData(*room))), from)
	r := arrayIn(l+uintptr(from+bytes), from)
	t.Unpack(l, n, left)
	t.Unpack(r, n, right)
	combine(t, abi.Addr(l), abi.Addr(r), n)
	t.Pack(acc, r, n)
}

// alignment is the alignment of an array that a program allocates.
const alignment = 16

// arrayIn returns the address of an array whose data begins at room or a little behind, from bytes
// from the address.
func arrayIn(room uintptr, from int) uintptr {
	return (room - uintptr(from) + alignment - 1) &^ (alignment - 1)
}

// copies are buffers in the heap for operands. Stacks may move.
var copies = sync.Pool{New: func() any { return new([]byte) }}

func addrOf(b mem.Buffer) abi.Addr { return abi.Addr(b.Addr()) }

// apply stores in op inout into inout, for n elements that lie as in an array of t.
func (o *Op) apply(t *Datatype, in, inout abi.Addr, n int) {
	switch lb := t.Lb(); {
	case o.fn != 0:
		o.call(t, in.Plus(-lb), inout.Plus(-lb), n)
	case combinesPairs(t.Basic().Name):
		pairCombiners[t.Basic().Name](o.kind, in, inout, n)
	case !abi.C.Combine(o.Handle, t.Handle, in, inout, n):
		panic(o.name + " is not implemented for " + t.Basic().Name) // TestAllOperatorsOnAllTypes
	}
}

// call calls the program's function for arrays of t.
func (o *Op) call(t *Datatype, in, inout abi.Addr, n int) {
	t.During(func() { abi.C.CallOp(o.fn, in, inout, n, o.Handle, t.Handle) })
}

func ReduceLocal(in, inout abi.Addr, n int, t *Datatype, o *Op) error {
	if err := Check(n, t); err != nil {
		return err
	}
	if err := CheckOp(o, t); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if in == abi.InPlace || inout == abi.InPlace || in == inout {
		return errs.New(errs.Buffer, "the operands are in place, or one")
	}
	if typ, ok := o.native(t); ok {
		acc := mem.HostBytes(typ, n, inout.Bytes(n*t.Size()))
		return mem.Reduce(o.kind, acc, mem.HostBytes(typ, n, in.Bytes(n*t.Size())), acc)
	}
	lb := t.Lb()
	o.apply(t, in.Plus(lb), inout.Plus(lb), n)
	return nil
}

// isSolid reports whether elements of an array of t may be copied as a whole, with the gaps between
// their parts. Other elements are packed for a reduction.
func isSolid(t *Datatype) bool {
	if b := t.Basic(); b != nil && b.Class == typemap.Pair {
		return true
	}
	at, ok := t.Contiguous(2)
	return ok && at == t.Lb() && t.Size() > 0
}

// Elements returns n elements of t in memory as core combines them, false if they are to be packed.
func (o *Op) Elements(buf abi.Addr, n int, t *Datatype) (mem.Buffer, bool) {
	if typ, ok := o.native(t); ok {
		return mem.HostBytes(typ, n, buf.Bytes(n*t.Size())), true
	}
	if !isSolid(t) {
		return mem.Buffer{}, false
	}
	return mem.HostElements(t.Extent(), n, buf.Plus(t.Lb()).Bytes(n*t.Extent())), true
}

// ElementSize returns the bytes of an element in core.
func (o *Op) ElementSize(t *Datatype) int {
	switch typ, ok := o.native(t); {
	case ok:
		return typ.Size()
	case isSolid(t):
		return t.Extent()
	}
	return max(t.Size(), 1)
}
