package typemap

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"
)

// external checks external32 of n elements of a type against that of each of its elements.
func external(t testing.TB, of *Type, m []entry, n int) {
	t.Helper()
	lb, ub := bounds(m)
	at := places(m, n)
	lo, hi := 0, 0
	if len(at) > 0 {
		lo, hi = min(0, slices.Min(at)), max(0, slices.Max(at)+1)
	}
	from := newArena(-lo, hi)
	defer runtime.KeepAlive(from)
	var want []byte
	for i := range n {
		for _, e := range m {
			if b := e.basic; b != nil {
				part := make([]byte, b.External)
				b.encode(part, from.bytes[from.at+i*(ub-lb)+e.disp:][:b.Size])
				want = append(want, part...)
			}
		}
	}
	got := make([]byte, len(want)+1)
	if of.ExternalSize(n) != len(want) {
		t.Fatalf("%d elements have %d bytes in external32, want %d", n, of.ExternalSize(n), len(want))
	}
	if k, err := of.PackExternal(got, from.base(), n); err != nil || k != len(want) || !bytes.Equal(got[:k], want) {
		t.Fatalf("external32: %d bytes %x, %v, want %x", k, got, err, want)
	}
	if len(want) == 0 {
		return
	}
	var e *Error
	if _, err := of.PackExternal(got[:len(want)-1], from.base(), n); !errors.As(err, &e) || e.Class != ErrTruncate {
		t.Fatalf("a buffer that is too short: %v", err)
	}
	if _, err := of.UnpackExternal(from.base(), n, want[1:]); !errors.As(err, &e) || e.Class != ErrTruncate {
		t.Fatalf("too little to unpack: %v", err)
	}
	seen := map[int]bool{}
	for _, p := range at {
		if seen[p] {
			return // what is unpacked twice to one place need not come back
		}
		seen[p] = true
	}
	to := newArena(-lo, hi)
	defer runtime.KeepAlive(to)
	if k, err := of.UnpackExternal(to.base(), n, want); err != nil || k != len(want) {
		t.Fatalf("unpacked %d bytes of external32, %v, want %d", k, err, len(want))
	}
	if k, err := of.PackExternal(got, to.base(), n); err != nil || !bytes.Equal(got[:k], want) {
		t.Fatalf("external32 of what was unpacked: %x, %v, want %x", got[:k], err, want)
	}
}

// image returns the bytes of a value.
func image[T any](v T) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)))
}

var externals = []struct {
	name     string
	memory   []byte
	external []byte
}{
	{"MPI_INT", image(int32(1)), []byte{0, 0, 0, 1}},
	{"MPI_INT", image(int32(-2)), []byte{0xff, 0xff, 0xff, 0xfe}},
	{"MPI_SHORT", image(int16(0x1234)), []byte{0x12, 0x34}},
	{"MPI_CHAR", []byte{7}, []byte{7}},
	{"MPI_LONG", image(int64(-3)), []byte{0xff, 0xff, 0xff, 0xfd}},
	{"MPI_LONG", image(int64(0x7fffffff)), []byte{0x7f, 0xff, 0xff, 0xff}},
	{"MPI_UNSIGNED_LONG", image(uint64(0xfffffffe)), []byte{0xff, 0xff, 0xff, 0xfe}},
	{"MPI_LONG_LONG", image(int64(-3)), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd}},
	{"MPI_AINT", image(int64(1) << 40), []byte{0, 0, 1, 0, 0, 0, 0, 0}},
	{"MPI_WCHAR", image(int32(0xe9e8)), []byte{0xe9, 0xe8}},
	{"MPI_FLOAT", image(float32(1)), []byte{0x3f, 0x80, 0, 0}},
	{"MPI_DOUBLE", image(-2.0), []byte{0xc0, 0, 0, 0, 0, 0, 0, 0}},
	{"MPI_C_FLOAT_COMPLEX", image(complex64(1 - 2i)), []byte{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}},
	{"MPI_DOUBLE_COMPLEX", image(complex(1, -2)), []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0}},
	{"MPI_COMPLEX4", []byte{1, 2, 3, 4}, []byte{2, 1, 4, 3}},
	{"MPI_INTEGER16", []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		[]byte{16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
	{"MPI_LOGICAL", image(int32(1)), []byte{0, 0, 0, 1}},
	{"MPI_SHORT_INT", []byte{1, 0, 0, 0, 2, 0, 0, 0}, []byte{0, 1, 0, 0, 0, 2}},
}

func TestExternal32OfEachKind(t *testing.T) {
	for _, c := range externals {
		of := Named(c.name)
		got := make([]byte, of.ExternalSize(1))
		if n, err := of.PackExternal(got, address(c.memory), 1); err != nil || n != len(got) ||
			!bytes.Equal(got, c.external) {
			t.Errorf("%s: %x is %x, %v, want %x", c.name, c.memory, got, err, c.external)
		}
		back := make([]byte, len(c.memory))
		if _, err := of.UnpackExternal(address(back), 1, c.external); err != nil || !bytes.Equal(back, c.memory) {
			t.Errorf("%s: %x is %x, %v, want %x", c.name, c.external, back, err, c.memory)
		}
	}
}

// address returns that of Go's memory, which the caller uses afterwards.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Sizes of external32 that differ from those in memory: table 15.2 of MPI 4.1.
func TestExternal32Sizes(t *testing.T) {
	differ := map[string]int{"MPI_LONG": 4, "MPI_UNSIGNED_LONG": 4, "MPI_WCHAR": 2, "MPI_LONG_INT": 8}
	for of := range All() {
		want, ok := differ[of.Basic().Name]
		if !ok {
			want = of.Size()
		}
		if got := of.ExternalSize(3); got != 3*want || of.Basic().External != want {
			t.Errorf("3 elements of %s have %d bytes in external32, want %d", of.Basic().Name, got, 3*want)
		}
	}
}

// extendedNumbers are numbers of x87 as sign and exponent, and mantissa, and the same in binary128.
var extendedNumbers = []struct {
	exponent         uint16
	mantissa         uint64
	high, low        uint64
	low2, high2      uint64 // binary128 that is rounded to the number, if low2 is not 0
	whyTheSecondOnes string
}{
	{0x3fff, 1 << 63, 0x3fff << 48, 0, 1, 0x3fff << 48, "just above 1"},
	{0xbfff, 3 << 62, 0xbfff8 << 44, 0, 1 << 48, 0xbfff8 << 44, "half way, to even"},
	{0x3fff, 1<<63 | 2, 0x3fff << 48, 1 << 50, 3 << 48 << 1 >> 1, 0x3fff << 48, "half way, up to even"},
	{0x4000, 1 << 63, 0x4000 << 48, 0, 0xffffffffffffffff, 0x3fff<<48 | (1<<48 - 1), "carries into the exponent"},
	{0x0000, 0, 0, 0, 1, 0, "vanishes"},
	{0x8000, 0, 0x8000 << 48, 0, 0, 0, ""},
	{0x0000, 1, 0, 1 << 49, 1<<49 + 1, 0, "denormal"},
	{0x0001, 1 << 63, 1 << 48, 0, 0xffffffffffffffff, 1<<48 - 1, "denormal, carries into normal"},
	{0x7fff, 1 << 63, 0x7fff << 48, 0, 0, 0, ""},
	{0x7fff, 3 << 62, 0x7fff8 << 44, 0, 0x10, 0x7fff8 << 44, "not a number"},
	{0x7ffe, 1<<64 - 1, 0x7ffe<<48 | (1<<48 - 1), 0xfffe << 48, 0, 0, ""},
}

func TestExtendedNumbersInExternal32(t *testing.T) {
	for _, c := range extendedNumbers {
		x87, quad := number{uint64(c.exponent), c.mantissa}, number{c.high, c.low}
		if got := quadruple(x87); got != quad {
			t.Errorf("%x is %x, want %x", x87, got, quad)
		}
		if got := doubleExtended(quad); got != x87 {
			t.Errorf("%x is %x, want %x", quad, got, x87)
		}
		if quad = (number{c.high2, c.low2}); c.low2 != 0 {
			if got := doubleExtended(quad); got != x87 {
				t.Errorf("%s: %x is %x, want %x", c.whyTheSecondOnes, quad, got, x87)
			}
		}
	}
	nan := number{0x7fff << 48, 1}
	if got := doubleExtended(nan); got.low<<1 == 0 {
		t.Errorf("%x, not a number, is %x, infinite", nan, got)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		v := number{uint64(r.Uint32N(0x7fff)) | uint64(r.Uint32N(2))<<15, r.Uint64() | 1<<63}
		if v.high&0x7fff == 0 {
			continue
		}
		if got := doubleExtended(quadruple(v)); got != v {
			t.Fatalf("%x is %x after there and back", v, got)
		}
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	one := append(binaryLittle(1<<63), 0xff, 0x3f, 1, 2, 3, 4, 5, 6) // with rubbish where C has padding
	got := make([]byte, 16)
	if _, err := Named("MPI_LONG_DOUBLE").PackExternal(got, address(one), 1); err != nil ||
		!bytes.Equal(got, append([]byte{0x3f, 0xff}, make([]byte, 14)...)) {
		t.Errorf("1 is %x, %v", got, err)
	}
	pair := make([]byte, 32)
	two := slices.Concat(one, binaryLittle(1<<63), []byte{0, 0xc0, 0, 0, 0, 0, 0, 0})
	if _, err := Named("MPI_C_LONG_DOUBLE_COMPLEX").PackExternal(pair, address(two), 1); err != nil ||
		!bytes.Equal(pair[:16], got) || pair[16] != 0xc0 || pair[17] != 0 {
		t.Errorf("1 - 2i is %x, %v", pair, err)
	}
	back := make([]byte, 32)
	if _, err := Named("MPI_C_LONG_DOUBLE_COMPLEX").UnpackExternal(address(back), 1, pair); err != nil ||
		!bytes.Equal(back[:10], two[:10]) || !bytes.Equal(back[16:26], two[16:26]) {
		t.Errorf("%x is %x, %v, want %x", pair, back, err, two)
	}
}

func binaryLittle(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return b
}
