package mem

import (
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestTypeOfNamedTypesIsThatOfTheirUnderlyingType(t *testing.T) {
	type (
		myFloat float32
		myByte  byte
		myBool  bool
		myInt   int
	)
	word, uword := I64, U64
	if unsafe.Sizeof(0) == 4 {
		word, uword = I32, U32
	}
	for _, c := range []struct {
		name      string
		got, want Type
		size      uintptr
	}{
		{"myFloat", TypeOf[myFloat](), F32, 4}, {"myByte", TypeOf[myByte](), U8, 1},
		{"myBool", TypeOf[myBool](), Bool, 1}, {"myInt", TypeOf[myInt](), word, unsafe.Sizeof(0)},
		{"int", TypeOf[int](), word, unsafe.Sizeof(0)}, {"uint", TypeOf[uint](), uword, unsafe.Sizeof(0)},
		{"uintptr", TypeOf[uintptr](), uword, unsafe.Sizeof(0)},
		{"int8", TypeOf[int8](), I8, 1}, {"int16", TypeOf[int16](), I16, 2},
		{"int32", TypeOf[int32](), I32, 4}, {"int64", TypeOf[int64](), I64, 8},
		{"uint8", TypeOf[uint8](), U8, 1}, {"uint16", TypeOf[uint16](), U16, 2},
		{"uint32", TypeOf[uint32](), U32, 4}, {"uint64", TypeOf[uint64](), U64, 8},
		{"float64", TypeOf[float64](), F64, 8}, {"complex64", TypeOf[complex64](), C64, 8},
		{"complex128", TypeOf[complex128](), C128, 16},
		{"Float16", TypeOf[Float16](), F16, 2}, {"BFloat16", TypeOf[BFloat16](), BF16, 2},
		{"Loc[int32]", TypeOf[Loc[int32]](), I32Loc, unsafe.Sizeof(Loc[int32]{})},
		{"Loc[int64]", TypeOf[Loc[int64]](), I64Loc, unsafe.Sizeof(Loc[int64]{})},
		{"Loc[float32]", TypeOf[Loc[float32]](), F32Loc, unsafe.Sizeof(Loc[float32]{})},
		{"Loc[float64]", TypeOf[Loc[float64]](), F64Loc, unsafe.Sizeof(Loc[float64]{})},
	} {
		if c.got != c.want || c.got.Size() != int(c.size) {
			t.Errorf("TypeOf[%s] = %v of %d bytes, want %v of %d", c.name, c.got, c.got.Size(), c.want, c.size)
		}
	}
}

func TestTypeOfTakesNoMemory(t *testing.T) {
	s := make([]float32, 3)
	if n := testing.AllocsPerRun(10, func() { Of(s) }); n != 0 {
		t.Errorf("Of: %v allocations, want none", n)
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for typ := NoType + 1; typ < Opaque; typ++ {
		if got, err := ParseType(typ.String()); got != typ || err != nil {
			t.Errorf("ParseType(%q) = %v, %v", typ, got, err)
		}
		if typ.Size() == 0 || !typ.Valid() {
			t.Errorf("%v has size %d and is valid: %v", typ, typ.Size(), typ.Valid())
		}
	}
	for op := Sum; op < Custom; op++ {
		if got, err := ParseOp(op.String()); got != op || err != nil {
			t.Errorf("ParseOp(%q) = %v, %v", op, got, err)
		}
	}
	for _, name := range []string{"", "none", "custom", "float", "SUM", "op(3)"} {
		if typ, err := ParseType(name); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("ParseType(%q) = %v, %v, want an error that quotes it", name, typ, err)
		}
		if op, err := ParseOp(name); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("ParseOp(%q) = %v, %v, want an error that quotes it", name, op, err)
		}
	}
}

func TestUnknownTypesAndOperatorsHaveASizeAndAName(t *testing.T) {
	if typ := Type(200); typ.Size() != 0 || typ.Valid() || typ.String() != "type(200)" {
		t.Errorf("Type(200) is %v of %d bytes, valid: %v", typ, typ.Size(), typ.Valid())
	}
	if NoType.Valid() || Op(200).String() != "op(200)" {
		t.Errorf("NoType is valid: %v; Op(200) is %v", NoType.Valid(), Op(200))
	}
}

func TestSliceNamesTheSameMemory(t *testing.T) {
	s := []int32{0, 1, 2, 3, 4, 5}
	b := Of(s).Slice(1, 5).Slice(1, 3)
	if got, want := Slice[int32](b), []int32{2, 3}; !slices.Equal(got, want) {
		t.Errorf("elements %v, want %v", got, want)
	}
	if b.Len() != 2 || b.Size() != 8 || b.Type() != I32 || b.Addr() != Of(s).Addr()+8 {
		t.Errorf("%d elements of %v, %d bytes at %+d", b.Len(), b.Type(), b.Size(), b.Addr()-Of(s).Addr())
	}
	b.HostSlice()[0] = 9
	if s[2] != 9 {
		t.Errorf("writing a slice left %v", s)
	}
	if raw := b.Raw(); raw.Len() != 8 || raw.Type() != U8 || raw.Addr() != b.Addr() {
		t.Errorf("raw: %d elements of %v", raw.Len(), raw.Type())
	}
	if e := Of(s).Slice(6, 6); e.Len() != 0 || e.Addr() != 0 {
		t.Errorf("an empty slice at the end has %d elements at %#x, want none at 0", e.Len(), e.Addr())
	}
}

func TestMisuseOfABufferPanics(t *testing.T) {
	b, d := Of(make([]int32, 4)), Device(elsewhere{name: "gpu"}, 4096, I32, 4)
	for name, f := range map[string]func(){
		"slice beyond the end":      func() { b.Slice(2, 5) },
		"slice before the start":    func() { b.Slice(-1, 2) },
		"slice backwards":           func() { b.Slice(3, 2) },
		"Slice of another type":     func() { Slice[float32](b) },
		"Slice of device memory":    func() { Slice[int32](d) },
		"bytes of device memory":    func() { d.HostSlice() },
		"HostBytes of too few":      func() { HostBytes(I32, 4, make([]byte, 15)) },
		"HostBytes of a negative n": func() { HostBytes(I32, -1, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestOverlapAndSame(t *testing.T) {
	b := Of(make([]int32, 8))
	gpu := Device(elsewhere{name: "gpu"}, b.Addr(), I32, 8)
	for _, c := range []struct {
		name          string
		a, b          Buffer
		overlap, same bool
	}{
		{"itself", b, b, true, true},
		{"disjoint halves", b.Slice(0, 4), b.Slice(4, 8), false, false},
		{"one shared element", b.Slice(0, 5), b.Slice(4, 8), true, false},
		{"inside", b.Slice(2, 3), b, true, false},
		{"empty", b.Slice(2, 2), b, false, false},
		{"other type", b, b.Raw(), true, false},
		{"same address elsewhere", b, gpu, false, false},
		{"device slices", gpu.Slice(0, 5), gpu.Slice(4, 8), true, false},
	} {
		if got := Overlap(c.a, c.b); got != c.overlap {
			t.Errorf("%s: Overlap = %v, want %v", c.name, got, c.overlap)
		}
		if got := Overlap(c.b, c.a); got != c.overlap {
			t.Errorf("%s, swapped: Overlap = %v, want %v", c.name, got, c.overlap)
		}
		if got := Same(c.a, c.b); got != c.same {
			t.Errorf("%s: Same = %v, want %v", c.name, got, c.same)
		}
	}
}

// elsewhere is a Space that is only compared and named.
type elsewhere struct {
	Space
	name string
}

func (e elsewhere) Name() string { return e.name }

func TestMemoryIsSeenAsAnotherType(t *testing.T) {
	bytes := Bytes(make([]byte, 20))
	b := bytes.Slice(8, 18).As(Of([]int32{}))
	if b.Type() != I32 || b.Len() != 2 || b.Addr() != bytes.Addr()+8 {
		t.Errorf("%d elements of %v, %d bytes behind", b.Len(), b.Type(), b.Addr()-bytes.Addr())
	}
	if n := bytes.As(Buffer{}).Len(); n != 0 {
		t.Errorf("%d elements of no type", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("memory of the host as that of a device did not panic")
		}
	}()
	bytes.As(Device(nowhere{}, 0, F32, 1))
}

type nowhere struct{ Space }

func (nowhere) Name() string { return "nowhere" }
