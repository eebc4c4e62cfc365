package mem

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	integerTypes = []Type{I8, I16, I32, I64, U8, U16, U32, U64}
	floatTypes   = []Type{F16, BF16, F32, F64}
	realTypes    = slices.Concat(floatTypes, integerTypes)
	numberTypes  = append([]Type{C64, C128}, realTypes...)
	logicTypes   = append([]Type{Bool}, integerTypes...)
	locTypes     = []Type{I32Loc, I64Loc, F32Loc, F64Loc}

	definedTypes = map[Op][]Type{
		Sum: numberTypes, Prod: numberTypes, Avg: append([]Type{C64, C128}, floatTypes...), Min: realTypes,
		Max:  realTypes,
		LAnd: logicTypes, LOr: logicTypes, LXor: logicTypes,
		BAnd: logicTypes, BOr: logicTypes, BXor: logicTypes,
		MinLoc: locTypes, MaxLoc: locTypes,
	}
)

func TestDefinedForExactlyTheDocumentedTypes(t *testing.T) {
	for op := range 2 * numOps {
		for typ := range 2 * numTypes {
			if got, want := op.Defined(typ), slices.Contains(definedTypes[op], typ); got != want {
				t.Errorf("%v.Defined(%v) = %v, want %v", op, typ, got, want)
			}
		}
	}
}

// lengths of vectors: around the loops in Go, and around vectors of every width
// and groups of them.
var lengths = append(upTo(40), 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 330)

func upTo(n int) (all []int) {
	for i := range n + 1 {
		all = append(all, i)
	}
	return all
}

// eachLevel runs f with the loops in Go alone, and with the loops of every level of vector
// instructions that this processor has.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	k, v := kernels, vectors
	defer func() { kernels, vectors = k, v }()
	for name, l := range levelsHere() {
		t.Run(name, func(t *testing.T) {
			kernels, vectors = newKernels(l), l
			f(t)
		})
	}
}

// TestReduceMatchesReference goes through every operator and type, sub-slices of
// any alignment, and every way in which the result may be one of the operands.
func TestReduceMatchesReference(t *testing.T) { eachLevel(t, testReduceMatchesReference) }

func testReduceMatchesReference(t *testing.T) {
	const pad, most = 3, 330
	for op := Sum; op < Custom; op++ {
		for _, typ := range definedTypes[op] {
			r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
			a, b := refOperand(r, typ, most+2*pad), refOperand(r, typ, most+2*pad)
			want := [2][]byte{refChain(op, typ, []Buffer{a, b}), refChain(op, typ, []Buffer{a, a})}
			for _, n := range lengths {
				at := n % pad
				for _, alias := range []string{"none", "a", "b", "all"} {
					testReduce(t, op, a, b, want, alias, at, at+n)
				}
			}
		}
	}
}

// testReduce reduces elements [i, j) of copies of a and b and checks that they equal want (want[1]
// if both operands are a), and that the others are unchanged.
func testReduce(t *testing.T, op Op, a, b Buffer, want [2][]byte, alias string, i, j int) {
	t.Helper()
	a, b = clone(a), clone(b)
	dst, result := clone(a), want[0]
	switch alias {
	case "a":
		dst = a
	case "b":
		dst = b
	case "all":
		dst, b, result = a, a, want[1]
	}
	before := clone(dst)
	if err := Reduce(op, dst.Slice(i, j), a.Slice(i, j), b.Slice(i, j)); err != nil {
		t.Fatal(err)
	}
	size := dst.Type().Size()
	for k := range dst.n {
		e := slice(dst, k)
		if k < i || k >= j {
			if !slices.Equal(e, slice(before, k)) {
				t.Fatalf("%v of %v [%d, %d), dst is %s: element %d was written", op, dst.Type(), i, j, alias, k)
			}
			continue
		}
		if w := result[k*size:][:size]; !refSame(dst.Type(), e, w) {
			t.Fatalf("%v of %v [%d, %d), dst is %s: element %d is %x, want %x", op, dst.Type(), i, j, alias, k, e, w)
		}
	}
}

func clone(b Buffer) Buffer {
	c, err := b.Space().Alloc(b.Type(), b.n)
	if err == nil {
		err = Copy(c, b)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// slice returns the bytes of element i.
func slice(b Buffer, i int) []byte { return b.Slice(i, i+1).HostSlice() }

// FuzzReduce reduces any number of operands, at any place in memory, into any of
// them or elsewhere, with the loops of every level.
func FuzzReduce(f *testing.F) {
	for op := Sum; op < Custom; op++ {
		for i, typ := range definedTypes[op] {
			r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
			f.Add(uint8(op), uint8(typ), uint8(i), uint8(i+int(op)), uint8(i*5),
				refOperand(r, typ, 1024/typ.Size()).HostSlice())
		}
	}
	f.Fuzz(func(t *testing.T, opByte, typeByte, more, into, skew uint8, data []byte) {
		op, typ, k := Op(opByte), Type(typeByte), 2+int(more)%4
		if !op.Defined(typ) {
			return
		}
		data = data[:min(len(data), 1024)] // the reference is slow
		if typ == Bool {
			for i := range data {
				data[i] &= 1
			}
		}
		at, size := int(skew)%vectorUnit, typ.Size()
		n := len(data) / size / k
		operands := make([]Buffer, k)
		for i := range operands {
			operands[i] = HostBytes(typ, n, bytes.Clone(data[i*n*size:]))
		}
		want := refChain(op, typ, operands)
		eachLevel(t, func(t *testing.T) {
			srcs, dst := make([]Buffer, k), skewed(HostBytes(typ, n, make([]byte, n*size)), at+1)
			for i, b := range operands {
				srcs[i] = skewed(b, (at+i*7)%vectorUnit)
			}
			if i := int(into) % (k + 1); i < k {
				dst = srcs[i]
			}
			if err := ReduceAll(op, dst, srcs...); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if w := want[i*size:][:size]; !refSame(typ, slice(dst, i), w) {
					t.Errorf("%v of %d %v, %d in all, into operand %d, from place %d on: element %d is %x, want %x", op,
						k, typ, n, int(into)%(k+1), at, i, slice(dst, i), w)
				}
			}
		})
	})
}

// skewed returns a copy of b that begins by elements into its memory.
func skewed(b Buffer, by int) Buffer {
	all, err := Host.Alloc(b.Type(), b.n+by)
	if err == nil {
		err = Copy(all.Slice(by, by+b.n), b)
	}
	if err != nil {
		panic(err)
	}
	return all.Slice(by, by+b.n)
}

func TestMinAndMaxPropagateNaNAndOrderZeros(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, c := range []struct{ a, b, min, max float64 }{
		{1, math.NaN(), math.NaN(), math.NaN()},
		{math.NaN(), math.Inf(-1), math.NaN(), math.NaN()},
		{0, negative, negative, 0},
		{negative, 0, negative, 0},
		{math.Inf(1), math.Inf(-1), math.Inf(-1), math.Inf(1)},
	} {
		for op, want := range map[Op]float64{Min: c.min, Max: c.max} {
			got := pair(t, op, c.a, c.b)
			if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%v %v %v = %v, want %v", c.a, op, c.b, got, want)
			}
			half := pair(t, op, ToBFloat16(float32(c.a)), ToBFloat16(float32(c.b)))
			if f := float64(half.Float32()); math.Float64bits(f) != math.Float64bits(want) &&
				!(math.IsNaN(f) && math.IsNaN(want)) {
				t.Errorf("%v %v %v = %v as bfloat16, want %v", c.a, op, c.b, f, want)
			}
		}
	}
}

func TestIntegersWrap(t *testing.T) {
	if got := pair[int8](t, Sum, 127, 1); got != -128 {
		t.Errorf("int8 127 + 1 = %d, want -128", got)
	}
	if got := pair[uint16](t, Prod, 256, 256); got != 0 {
		t.Errorf("uint16 256 * 256 = %d, want 0", got)
	}
	if got := pair[int64](t, Sum, math.MinInt64, -1); got != math.MaxInt64 {
		t.Errorf("int64 least - 1 = %d, want the greatest", got)
	}
}

func TestLogicalOperatorsGiveZeroOrOne(t *testing.T) {
	for _, c := range []struct {
		op         Op
		a, b, want int32
	}{
		{LAnd, 2, 4, 1}, {LAnd, -1, 0, 0}, {LOr, 0, -8, 1}, {LOr, 0, 0, 0}, {LXor, 2, 4, 0}, {LXor, 0, 4, 1},
	} {
		if got := pair(t, c.op, c.a, c.b); got != c.want {
			t.Errorf("%d %v %d = %d, want %d", c.a, c.op, c.b, got, c.want)
		}
	}
	for _, c := range []struct {
		op   Op
		want bool
	}{{LAnd, false}, {BAnd, false}, {LOr, true}, {BOr, true}, {LXor, true}, {BXor, true}} {
		if got := pair(t, c.op, true, false); got != c.want {
			t.Errorf("true %v false = %v, want %v", c.op, got, c.want)
		}
	}
}

func TestLocTiesGoToTheLowestIndexAndNaNWins(t *testing.T) {
	type loc = Loc[float64]
	nan := math.NaN()
	for _, c := range []struct {
		op   Op
		a, b loc
		want int64
	}{
		{MinLoc, loc{1, 7}, loc{2, 3}, 7},
		{MaxLoc, loc{1, 7}, loc{2, 3}, 3},
		{MinLoc, loc{1, 7}, loc{1, 3}, 3},
		{MaxLoc, loc{1, -1}, loc{1, 3}, -1},
		{MinLoc, loc{math.Copysign(0, -1), 7}, loc{0, 3}, 3},
		{MaxLoc, loc{nan, 7}, loc{math.Inf(1), 3}, 7},
		{MinLoc, loc{nan, 7}, loc{math.Inf(-1), 3}, 7},
		{MinLoc, loc{nan, 7}, loc{nan, 3}, 3},
		{MaxLoc, loc{nan, 7}, loc{nan, 3}, 3},
	} {
		if got := pair(t, c.op, c.a, c.b); got.Index != c.want {
			t.Errorf("%v %v %v has index %d, want %d", c.a, c.op, c.b, got.Index, c.want)
		}
		if got := pair(t, c.op, c.b, c.a); got.Index != c.want {
			t.Errorf("%v %v %v has index %d, want %d", c.b, c.op, c.a, got.Index, c.want)
		}
	}
}

func pair[T Scalar](t *testing.T, op Op, a, b T) T {
	t.Helper()
	dst := make([]T, 1)
	if err := Reduce(op, Of(dst), Of([]T{a}), Of([]T{b})); err != nil {
		t.Fatal(err)
	}
	return dst[0]
}

func TestReduceRejectsWhatItCannotDo(t *testing.T) {
	f, g, i := Of(make([]float32, 4)), Of(make([]float32, 5)), Of(make([]int32, 4))
	for _, c := range []struct {
		op        Op
		dst, a, b Buffer
		want      string
	}{
		{BAnd, f, f, f, "operator band is not defined for float32"},
		{NoOp, f, f, f, "operator none is not defined"},
		{Custom, f, f, f, "operator custom is not defined"},
		{Op(200), f, f, f, "operator op(200) is not defined"},
		{Sum, Buffer{}, Buffer{}, Buffer{}, "not defined for none"},
		{Sum, f, f, i, "float32 and int32 to float32"},
		{Sum, i, f, f, "float32 and float32 to int32"},
		{Sum, f, f, g, "4 and 5 elements to 4"},
		{Sum, g, f, f, "4 and 4 elements to 5"},
	} {
		if err := Reduce(c.op, c.dst, c.a, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Reduce(%v, %v, %v, %v) = %v, want an error about %q", c.op, c.dst.Type(), c.a.Type(), c.b.Type(),
				err, c.want)
		}
	}
}

func TestReduceAllRejectsWhatItCannotDo(t *testing.T) {
	f, g, i := Of(make([]float32, 4)), Of(make([]float32, 5)), Of(make([]int32, 4))
	for _, c := range []struct {
		name string
		op   Op
		dst  Buffer
		srcs []Buffer
	}{
		{"no operands", Sum, f, nil},
		{"an undefined operator", BAnd, f, []Buffer{f, f}},
		{"an undefined operator of one operand", BAnd, f, []Buffer{f}},
		{"custom", Custom, f, []Buffer{f, f}},
		{"a third operand of another type", Sum, f, []Buffer{f, f, i}},
		{"a result of another type", Sum, i, []Buffer{f, f}},
		{"a third operand of another length", Sum, f, []Buffer{f, f, g}},
		{"a result of another length", Sum, g, []Buffer{f, f}},
	} {
		if err := ReduceAll(c.op, c.dst, c.srcs...); err == nil {
			t.Errorf("ReduceAll with %s returned no error", c.name)
		}
	}
}

func TestDivideMatchesReference(t *testing.T) {
	const n = 330
	for _, typ := range definedTypes[Avg] {
		r := rand.New(rand.NewPCG(3, uint64(typ)))
		for _, by := range []int{1, 2, 3, 7, 64, 1000} {
			b := refOperand(r, typ, n)
			all := clone(b)
			if err := Divide(all.Slice(1, n-1), by); err != nil {
				t.Fatalf("%v divided by %d: %v", typ, by, err)
			}
			for i := range n {
				want := slice(b, i)
				if i > 0 && i < n-1 {
					want = refDivided(typ, want, by)
				}
				if got := slice(all, i); !refSame(typ, got, want) {
					t.Fatalf("%v divided by %d: element %d of %x is %x, want %x", typ, by, i, slice(b, i), got, want)
				}
			}
		}
	}
}

func TestDivideRejectsWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		typ Type
		by  int
	}{{F32, 0}, {F32, -2}, {I32, 2}, {Bool, 2}, {F32Loc, 2}} {
		if err := Divide(refOperand(rand.New(rand.NewPCG(1, 1)), c.typ, 3), c.by); err == nil {
			t.Errorf("Divide of %v by %d returned no error", c.typ, c.by)
		}
	}
}

func TestReduceOfHostMemoryTakesNoMemory(t *testing.T) {
	for op := Sum; op < Custom; op++ {
		for _, typ := range definedTypes[op] {
			x, _ := Host.Alloc(typ, 1000)
			y := clone(x)
			if n := testing.AllocsPerRun(10, func() { Reduce(op, x, x, y) }); n != 0 {
				t.Errorf("%v of %v: %v allocations, want none", op, typ, n)
			}
		}
	}
}

func TestReduceOfManyTakesNoMemoryUnlessTheResultIsALateOperand(t *testing.T) {
	for _, typ := range []Type{F32, BF16, U8, I16} {
		srcs := make([]Buffer, 4)
		for i := range srcs {
			srcs[i], _ = Host.Alloc(typ, 10_048) // whole vectors
		}
		for late, want := range map[int]float64{0: 0, 1: 0, 3: 1} {
			if typ == BF16 || vectors[Sum][typ] != noLoop {
				want = 0
			}
			if n := testing.AllocsPerRun(10, func() { ReduceAll(Sum, srcs[late], srcs...) }); n != want {
				t.Errorf("%v into operand %d: %v allocations, want %v", typ, late, n, want)
			}
		}
	}
}

// The result of many operands is the result of a chain of pairs, whichever operand it replaces;
// except 16-bit floats, which round once.
func TestReduceOfManyIsAChainOfPairs(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, k := range []int{2, 3, 5, mostOperands, mostOperands + 1} {
			for _, op := range []Op{Sum, Prod, Min, Max, Avg} {
				for _, typ := range definedTypes[op] {
					testReduceMany(t, op, typ, k)
				}
			}
		}
	})
}

func testReduceMany(t *testing.T, op Op, typ Type, k int) {
	const n = 291 // a group, vectors, and a rest, whatever the type
	r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
	srcs := make([]Buffer, k)
	for i := range srcs {
		srcs[i] = refOperand(r, typ, n)
	}
	want := chain(t, op, srcs)
	for _, into := range []int{-1, 0, 1, k - 1} {
		operands := make([]Buffer, k)
		for i := range srcs {
			operands[i] = clone(srcs[i])
		}
		dst := clone(srcs[0])
		if into >= 0 {
			dst = operands[into]
		}
		if err := ReduceAll(op, dst, operands...); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if !refSame(typ, slice(dst, i), slice(want, i)) {
				t.Fatalf("%v of %d %v into operand %d: element %d is %x, want %x", op, k, typ, into, i, slice(dst, i),
					slice(want, i))
			}
		}
	}
}

// chain combines srcs pair by pair with the loops in Go, and divides the sum for an
// average; 16-bit floats in float32.
func chain(t *testing.T, op Op, srcs []Buffer) Buffer {
	t.Helper()
	dst := clone(srcs[0])
	if dst.Type() == F16 || dst.Type() == BF16 {
		foldHalf(op, dst, srcs, 0)
		return dst
	}
	portable := newKernels(loops{})[op.Base()][dst.Type()]
	for _, src := range srcs[1:] {
		portable(dst.host, dst.host, src.host, dst.n)
	}
	if op == Avg {
		divide(dst.Type(), dst.host, dst.n, len(srcs))
	}
	return dst
}
