package typemap

import (
	"iter"
	"maps"
	"runtime"
	"slices"

	"gompi/internal/mem"
)

// A Class groups the predefined types as MPI does to define its operators.
type Class uint8

const (
	Opaque         Class = iota // MPI_PACKED, MPI_LB, MPI_UB
	CInteger                    // of C, with or without a sign
	FortranInteger              // of Fortran
	Float                       // of C and Fortran
	Logical                     // of C, C++ and Fortran
	Complex                     // of C, C++ and Fortran
	Byte                        // MPI_BYTE
	MultiLanguage               // MPI_AINT, MPI_OFFSET, MPI_COUNT
	Pair                        // a value and an index, or two equal values of Fortran
	Text                        // MPI_CHAR, MPI_WCHAR, MPI_CHARACTER: no operators by the standard
)

// firstBeside is the lowest number of a type that the standard ABI lacks: its code of ten bits does
// not reach the number.
const firstBeside = 0x400

// A Basic describes a predefined type.
type Basic struct {
	// ID is the number of the type's handle in the standard ABI (MPI 5.0), or from firstBeside on.
	ID    int
	Name  string
	Size  int // bytes of data; without the gaps between and behind the parts of a pair
	Align int
	Class Class
	// Mem is the type for gompi's kernels of reductions, mem.NoType if they do not reduce the
	// type.
	Mem mem.Type
	// External is the size in external32: table 15.2 of MPI 4.1, section 15.5.2.
	External int

	signed   bool
	numbers  int  // 2 of a complex type, which external32 treats as two
	extended bool // x87's 80 bits in 16 bytes
}

// Width implements layout.Element.
func (b *Basic) Width() int { return b.Size }

// The named types by number, and the number of each name. There are more names than types.
var (
	named = map[int]*Type{}
	ids   = map[string]int{}
)

// Named returns the predefined type of a name, as "MPI_INT", nil if there is none.
func Named(name string) *Type { return named[ids[name]] }

// ByID returns the predefined type of a handle's number, nil if there is none.
func ByID(id int) *Type { return named[id] }

// All returns the predefined types, in no order.
func All() iter.Seq[*Type] { return maps.Values(named) }

// Names returns the names of the predefined types, of which some have two.
func Names() iter.Seq2[string, *Type] {
	return func(yield func(string, *Type) bool) {
		for name, id := range ids {
			if !yield(name, named[id]) {
				return
			}
		}
	}
}

// basics has the types of a single number, sized for 64-bit Linux. The size of external32 is the
// size unless stated.
var basics = []Basic{
	{ID: 0x201, Name: "MPI_AINT", Size: 8, Class: MultiLanguage, Mem: mem.I64, signed: true},
	{ID: 0x202, Name: "MPI_COUNT", Size: 8, Class: MultiLanguage, Mem: mem.I64, signed: true},
	{ID: 0x203, Name: "MPI_OFFSET", Size: 8, Class: MultiLanguage, Mem: mem.I64, signed: true},
	{ID: 0x207, Name: "MPI_PACKED", Size: 1},
	{ID: 0x247, Name: "MPI_BYTE", Size: 1, Class: Byte, Mem: mem.U8},

	{ID: 0x208, Name: "MPI_SHORT", Size: 2, Class: CInteger, Mem: mem.I16, signed: true},
	{ID: 0x209, Name: "MPI_INT", Size: 4, Class: CInteger, Mem: mem.I32, signed: true},
	{ID: 0x20a, Name: "MPI_LONG", Size: 8, Class: CInteger, Mem: mem.I64, signed: true, External: 4},
	{ID: 0x20b, Name: "MPI_LONG_LONG_INT", Size: 8, Class: CInteger, Mem: mem.I64, signed: true},
	{ID: 0x20c, Name: "MPI_UNSIGNED_SHORT", Size: 2, Class: CInteger, Mem: mem.U16},
	{ID: 0x20d, Name: "MPI_UNSIGNED", Size: 4, Class: CInteger, Mem: mem.U32},
	{ID: 0x20e, Name: "MPI_UNSIGNED_LONG", Size: 8, Class: CInteger, Mem: mem.U64, External: 4},
	{ID: 0x20f, Name: "MPI_UNSIGNED_LONG_LONG", Size: 8, Class: CInteger, Mem: mem.U64},
	{ID: 0x240, Name: "MPI_INT8_T", Size: 1, Class: CInteger, Mem: mem.I8, signed: true},
	{ID: 0x241, Name: "MPI_UINT8_T", Size: 1, Class: CInteger, Mem: mem.U8},
	{ID: 0x244, Name: "MPI_SIGNED_CHAR", Size: 1, Class: CInteger, Mem: mem.I8, signed: true},
	{ID: 0x245, Name: "MPI_UNSIGNED_CHAR", Size: 1, Class: CInteger, Mem: mem.U8},
	{ID: 0x248, Name: "MPI_INT16_T", Size: 2, Class: CInteger, Mem: mem.I16, signed: true},
	{ID: 0x249, Name: "MPI_UINT16_T", Size: 2, Class: CInteger, Mem: mem.U16},
	{ID: 0x250, Name: "MPI_INT32_T", Size: 4, Class: CInteger, Mem: mem.I32, signed: true},
	{ID: 0x251, Name: "MPI_UINT32_T", Size: 4, Class: CInteger, Mem: mem.U32},
	{ID: 0x258, Name: "MPI_INT64_T", Size: 8, Class: CInteger, Mem: mem.I64, signed: true},
	{ID: 0x259, Name: "MPI_UINT64_T", Size: 8, Class: CInteger, Mem: mem.U64},

	{ID: 0x243, Name: "MPI_CHAR", Size: 1, Class: Text, Mem: mem.I8, signed: true},
	{ID: 0x23c, Name: "MPI_WCHAR", Size: 4, Class: Text, Mem: mem.I32, External: 2},
	{ID: 0x21e, Name: "MPI_CHARACTER", Size: 1, Class: Text, Mem: mem.U8},

	{ID: 0x238, Name: "MPI_C_BOOL", Size: 1, Class: Logical, Mem: mem.Bool},
	{ID: 0x239, Name: "MPI_CXX_BOOL", Size: 1, Class: Logical, Mem: mem.Bool},
	{ID: 0x218, Name: "MPI_LOGICAL", Size: 4, Class: Logical, Mem: mem.I32},
	{ID: 0x2c0, Name: "MPI_LOGICAL1", Size: 1, Class: Logical, Mem: mem.I8},
	{ID: 0x2c8, Name: "MPI_LOGICAL2", Size: 2, Class: Logical, Mem: mem.I16},
	{ID: 0x2d0, Name: "MPI_LOGICAL4", Size: 4, Class: Logical, Mem: mem.I32},
	{ID: 0x2d8, Name: "MPI_LOGICAL8", Size: 8, Class: Logical, Mem: mem.I64},
	{ID: 0x2e0, Name: "MPI_LOGICAL16", Size: 16, Class: Logical},

	{ID: 0x219, Name: "MPI_INTEGER", Size: 4, Class: FortranInteger, Mem: mem.I32, signed: true},
	{ID: 0x2c1, Name: "MPI_INTEGER1", Size: 1, Class: FortranInteger, Mem: mem.I8, signed: true},
	{ID: 0x2c9, Name: "MPI_INTEGER2", Size: 2, Class: FortranInteger, Mem: mem.I16, signed: true},
	{ID: 0x2d1, Name: "MPI_INTEGER4", Size: 4, Class: FortranInteger, Mem: mem.I32, signed: true},
	{ID: 0x2d9, Name: "MPI_INTEGER8", Size: 8, Class: FortranInteger, Mem: mem.I64, signed: true},
	{ID: 0x2e1, Name: "MPI_INTEGER16", Size: 16, Class: FortranInteger, signed: true},

	{ID: 0x210, Name: "MPI_FLOAT", Size: 4, Class: Float, Mem: mem.F32},
	{ID: 0x214, Name: "MPI_DOUBLE", Size: 8, Class: Float, Mem: mem.F64},
	{ID: 0x220, Name: "MPI_LONG_DOUBLE", Size: 16, Class: Float, extended: true},
	{ID: 0x21a, Name: "MPI_REAL", Size: 4, Class: Float, Mem: mem.F32},
	{ID: 0x21c, Name: "MPI_DOUBLE_PRECISION", Size: 8, Class: Float, Mem: mem.F64},
	{ID: 0x2ca, Name: "MPI_REAL2", Size: 2, Class: Float, Mem: mem.F16},
	{ID: 0x2d2, Name: "MPI_REAL4", Size: 4, Class: Float, Mem: mem.F32},
	{ID: 0x2da, Name: "MPI_REAL8", Size: 8, Class: Float, Mem: mem.F64},
	{ID: 0x2e2, Name: "MPI_REAL16", Size: 16, Class: Float},
	{ID: 0x404, Name: "MPIX_C_FLOAT16", Size: 2, Class: Float, Mem: mem.F16},

	{ID: 0x212, Name: "MPI_C_COMPLEX", Size: 8, Class: Complex, Mem: mem.C64},
	{ID: 0x216, Name: "MPI_C_DOUBLE_COMPLEX", Size: 16, Class: Complex, Mem: mem.C128},
	{ID: 0x224, Name: "MPI_C_LONG_DOUBLE_COMPLEX", Size: 32, Class: Complex, extended: true},
	{ID: 0x213, Name: "MPI_CXX_FLOAT_COMPLEX", Size: 8, Class: Complex, Mem: mem.C64},
	{ID: 0x217, Name: "MPI_CXX_DOUBLE_COMPLEX", Size: 16, Class: Complex, Mem: mem.C128},
	{ID: 0x225, Name: "MPI_CXX_LONG_DOUBLE_COMPLEX", Size: 32, Class: Complex, extended: true},
	{ID: 0x21b, Name: "MPI_COMPLEX", Size: 8, Class: Complex, Mem: mem.C64},
	{ID: 0x21d, Name: "MPI_DOUBLE_COMPLEX", Size: 16, Class: Complex, Mem: mem.C128},
	{ID: 0x2d3, Name: "MPI_COMPLEX4", Size: 4, Class: Complex},
	{ID: 0x2db, Name: "MPI_COMPLEX8", Size: 8, Class: Complex, Mem: mem.C64},
	{ID: 0x2e3, Name: "MPI_COMPLEX16", Size: 16, Class: Complex, Mem: mem.C128},
	{ID: 0x2eb, Name: "MPI_COMPLEX32", Size: 32, Class: Complex},
}

// pairs are laid out as C's structs of the two.
var pairs = []struct {
	id                  int
	name, first, second string
}{
	{0x228, "MPI_FLOAT_INT", "MPI_FLOAT", "MPI_INT"},
	{0x229, "MPI_DOUBLE_INT", "MPI_DOUBLE", "MPI_INT"},
	{0x22a, "MPI_LONG_INT", "MPI_LONG", "MPI_INT"},
	{0x22b, "MPI_2INT", "MPI_INT", "MPI_INT"},
	{0x22c, "MPI_SHORT_INT", "MPI_SHORT", "MPI_INT"},
	{0x22d, "MPI_LONG_DOUBLE_INT", "MPI_LONG_DOUBLE", "MPI_INT"},
	{0x230, "MPI_2REAL", "MPI_REAL", "MPI_REAL"},
	{0x231, "MPI_2DOUBLE_PRECISION", "MPI_DOUBLE_PRECISION", "MPI_DOUBLE_PRECISION"},
	{0x232, "MPI_2INTEGER", "MPI_INTEGER", "MPI_INTEGER"},
	{0x402, "MPI_2COMPLEX", "MPI_COMPLEX", "MPI_COMPLEX"},
	{0x403, "MPI_2DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX"},
}

// PairOf returns the standard's pair of two types, nil if it has none.
func PairOf(first, second *Type) *Type {
	for _, p := range pairs {
		if p.id < firstBeside && Named(p.first) == first && Named(p.second) == second {
			return Named(p.name)
		}
	}
	return nil
}

// synonyms are second names.
var synonyms = map[string]string{
	"MPI_LONG_LONG":       "MPI_LONG_LONG_INT",
	"MPI_C_FLOAT_COMPLEX": "MPI_C_COMPLEX",
	"MPI_CXX_COMPLEX":     "MPI_CXX_FLOAT_COMPLEX",
}

func init() {
	for i := range basics {
		b := &basics[i]
		b.complete()
		add(b, leaf(b))
	}
	for _, p := range pairs {
		add(pair(&Basic{ID: p.id, Name: p.name, Class: Pair}, Named(p.first), Named(p.second)))
	}
	add(&Basic{ID: 0x400, Name: "MPI_LB", Align: 1}, &Type{combiner: NamedType, align: 1, lbMark: true})
	add(&Basic{ID: 0x401, Name: "MPI_UB", Align: 1}, &Type{combiner: NamedType, align: 1, ubMark: true})
	for name, of := range synonyms {
		ids[name] = ids[of]
	}
}

// complete fills in the fields that follow from the size and the class.
func (b *Basic) complete() {
	b.numbers = 1
	if b.Class == Complex {
		b.numbers = 2
	}
	b.Align = b.Size / b.numbers
	if b.External == 0 {
		b.External = b.Size
	}
	b.extended = b.extended && runtime.GOARCH == "amd64" // elsewhere long double is as in external32
}

func add(b *Basic, t *Type) {
	t.named = b
	named[b.ID], ids[b.Name] = t, b.ID
}

// pair makes the type of C's struct of two.
func pair(b *Basic, first, second *Type) (*Basic, *Type) {
	at := roundUp(first.size, second.align)
	t, err := build(slices.Values([]block{{0, 1, 0, 1, first}, {at, 1, 0, 1, second}}))
	if err != nil {
		panic(err) // only if too large
	}
	t.combiner = NamedType
	b.Size, b.Align, b.External = t.size, t.align, t.external
	return b, t
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
