package typemap

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"gompi/internal/mem"
)

// C's and Fortran's sizes on 64-bit Linux, extents and alignments included.
var cTypes = map[string][3]int{
	"MPI_CHAR": {1, 1, 1}, "MPI_SHORT": {2, 2, 2}, "MPI_INT": {4, 4, 4}, "MPI_LONG": {8, 8, 8},
	"MPI_LONG_LONG_INT": {8, 8, 8}, "MPI_UNSIGNED_CHAR": {1, 1, 1},
	"MPI_SIGNED_CHAR": {1, 1, 1}, "MPI_UNSIGNED_SHORT": {2, 2, 2}, "MPI_UNSIGNED": {4, 4, 4},
	"MPI_UNSIGNED_LONG": {8, 8, 8}, "MPI_UNSIGNED_LONG_LONG": {8, 8, 8},
	"MPI_FLOAT": {4, 4, 4}, "MPI_DOUBLE": {8, 8, 8}, "MPI_LONG_DOUBLE": {16, 16, 16}, "MPI_WCHAR": {4, 4, 4},
	"MPI_C_BOOL": {1, 1, 1}, "MPI_CXX_BOOL": {1, 1, 1},
	"MPI_C_COMPLEX": {8, 8, 4}, "MPI_C_DOUBLE_COMPLEX": {16, 16, 8}, "MPI_C_LONG_DOUBLE_COMPLEX": {32, 32, 16},
	"MPI_CXX_FLOAT_COMPLEX":  {8, 8, 4},
	"MPI_CXX_DOUBLE_COMPLEX": {16, 16, 8}, "MPI_CXX_LONG_DOUBLE_COMPLEX": {32, 32, 16}, "MPI_AINT": {8, 8, 8},
	"MPI_OFFSET": {8, 8, 8}, "MPI_COUNT": {8, 8, 8},
	"MPI_BYTE": {1, 1, 1}, "MPI_PACKED": {1, 1, 1}, "MPI_INTEGER": {4, 4, 4}, "MPI_REAL": {4, 4, 4},
	"MPI_DOUBLE_PRECISION": {8, 8, 8}, "MPI_COMPLEX": {8, 8, 4},
	"MPI_DOUBLE_COMPLEX": {16, 16, 8}, "MPI_LOGICAL": {4, 4, 4}, "MPI_CHARACTER": {1, 1, 1},
	"MPIX_C_FLOAT16": {2, 2, 2},
	"MPI_FLOAT_INT":  {8, 8, 4}, "MPI_DOUBLE_INT": {12, 16, 8}, "MPI_LONG_INT": {12, 16, 8}, "MPI_SHORT_INT": {6, 8, 4},
	"MPI_2INT":            {8, 8, 4},
	"MPI_LONG_DOUBLE_INT": {20, 32, 16}, "MPI_2REAL": {8, 8, 4}, "MPI_2DOUBLE_PRECISION": {16, 16, 8},
	"MPI_2INTEGER": {8, 8, 4}, "MPI_2COMPLEX": {16, 16, 4},
	"MPI_2DOUBLE_COMPLEX": {32, 32, 8}, "MPI_LB": {0, 0, 1}, "MPI_UB": {0, 0, 1},
}

// sizedFamilies are those with a size in the name: in bits of C's, in bytes of Fortran's.
var sizedFamilies = map[string][]int{
	"MPI_INT%_T": {8, 16, 32, 64}, "MPI_UINT%_T": {8, 16, 32, 64}, "MPI_INTEGER%": {1, 2, 4, 8, 16},
	"MPI_LOGICAL%": {1, 2, 4, 8, 16},
	"MPI_REAL%":    {2, 4, 8, 16}, "MPI_COMPLEX%": {4, 8, 16, 32},
}

func TestPredefinedTypes(t *testing.T) {
	want := map[string][3]int{}
	for name, c := range cTypes {
		want[name] = c
	}
	for name, sizes := range sizedFamilies {
		for _, s := range sizes {
			n := strings.Replace(name, "%", strconv.Itoa(s), 1)
			switch {
			case strings.HasSuffix(name, "_T"):
				s /= 8
				want[n] = [3]int{s, s, s}
			case name == "MPI_COMPLEX%":
				want[n] = [3]int{s, s, s / 2}
			default:
				want[n] = [3]int{s, s, s}
			}
		}
	}
	for name, w := range want {
		of := Named(name)
		if of == nil {
			t.Errorf("no %s", name)
			continue
		}
		if got := [3]int{of.Size(), of.Extent(), of.align}; got != w || of.Basic().Align != w[2] ||
			of.Basic().Size != w[0] || of.Lb() != 0 {
			t.Errorf("%s has size, extent and alignment %v, want %v", name, got, w)
		}
	}
	seen := 0
	for of := range All() {
		seen++
		b := of.Basic()
		if _, ok := want[b.Name]; !ok && b.Name != "MPI_LONG_LONG_INT" && b.Name != "MPI_C_COMPLEX" {
			t.Errorf("%s is no type that is wanted", b.Name)
		}
		if ByID(b.ID) != of || Named(b.Name) != of || of.Contents().Combiner != NamedType {
			t.Errorf("%s is not found by number %#x and name", b.Name, b.ID)
		}
		if b.Mem != mem.NoType && b.Mem.Size() != b.Size {
			t.Errorf("%s of %d bytes is reduced as %v", b.Name, b.Size, b.Mem)
		}
		fixed := b.ID >= 0x240 && b.ID < 0x260 || b.ID >= 0x2c0 && b.ID < 0x300
		if log := b.ID >> 3 & 7; fixed && b.Size != 1<<log {
			t.Errorf("%s of %d bytes has number %#x, which says %d", b.Name, b.Size, b.ID, 1<<log)
		}
		if b.Class != Pair && b.Size > 0 && bits.OnesCount(uint(b.Size)) != 1 {
			t.Errorf("%s has %d bytes", b.Name, b.Size)
		}
	}
	if seen != len(want) {
		t.Errorf("%d types, want %d", seen, len(want))
	}
	for _, c := range []struct {
		id   int
		name string
	}{{0x208, "MPI_SHORT"}, {0x20b, "MPI_LONG_LONG_INT"}, {0x214, "MPI_DOUBLE"}, {0x22d, "MPI_LONG_DOUBLE_INT"},
		{0x23c, "MPI_WCHAR"}, {0x245, "MPI_UNSIGNED_CHAR"}, {0x2eb, "MPI_COMPLEX32"}} {
		if ByID(c.id) != Named(c.name) {
			t.Errorf("number %#x is %v, want %s", c.id, ByID(c.id), c.name)
		}
	}
	if Named("MPI_DATATYPE_NULL") != nil || ByID(0x200) != nil || Named("") != nil {
		t.Error("there is a type that is none")
	}
}

func TestClassesOfPredefinedTypes(t *testing.T) {
	for name, want := range map[string]struct {
		class Class
		mem   mem.Type
	}{
		"MPI_INT": {CInteger, mem.I32}, "MPI_UNSIGNED_LONG": {CInteger, mem.U64}, "MPI_UINT16_T": {CInteger, mem.U16},
		"MPI_SIGNED_CHAR": {CInteger, mem.I8},
		"MPI_INTEGER2":    {FortranInteger, mem.I16}, "MPI_INTEGER16": {FortranInteger, mem.NoType},
		"MPI_FLOAT": {Float, mem.F32}, "MPI_REAL8": {Float, mem.F64},
		"MPI_REAL2": {Float, mem.F16}, "MPI_LONG_DOUBLE": {Float, mem.NoType}, "MPI_REAL16": {Float, mem.NoType},
		"MPI_LOGICAL": {Logical, mem.I32},
		"MPI_C_BOOL":  {Logical, mem.Bool}, "MPI_COMPLEX": {Complex, mem.C64},
		"MPI_CXX_DOUBLE_COMPLEX": {Complex, mem.C128}, "MPI_COMPLEX4": {Complex, mem.NoType},
		"MPI_BYTE": {Byte, mem.U8}, "MPI_AINT": {MultiLanguage, mem.I64}, "MPI_COUNT": {MultiLanguage, mem.I64},
		"MPI_2INT":  {Pair, mem.NoType},
		"MPI_2REAL": {Pair, mem.NoType}, "MPI_CHAR": {Text, mem.I8}, "MPI_CHARACTER": {Text, mem.U8},
		"MPI_PACKED": {Opaque, mem.NoType}, "MPI_UB": {Opaque, mem.NoType},
	} {
		if b := Named(name).Basic(); b.Class != want.class || b.Mem != want.mem {
			t.Errorf("%s is of class %d and reduced as %v, want %d and %v", name, b.Class, b.Mem, want.class, want.mem)
		}
	}
}
