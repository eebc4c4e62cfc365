package mem

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// halves are the two 16-bit formats by functions from and to their bits.
var halves = []struct {
	typ    Type
	widen  func(uint16) float32
	narrow func(float32) uint16
}{
	{F16, func(b uint16) float32 { return Float16{b}.Float32() }, func(f float32) uint16 { return ToFloat16(f).Bits }},
	{BF16, func(b uint16) float32 { return BFloat16{b}.Float32() },
		func(f float32) uint16 { return ToBFloat16(f).Bits }},
}

func TestHalfWidensEveryValueExactlyAndComesBack(t *testing.T) {
	for _, h := range halves {
		f := formats[h.typ]
		for b := range 1 << 16 {
			got, want := h.widen(uint16(b)), f.decode(uint64(b))
			if math.IsNaN(want) {
				if back := h.narrow(got); got == got || !math.IsNaN(f.decode(uint64(back))) ||
					back>>15 != uint16(b>>15) {
					t.Fatalf("%v %#04x is a NaN, widens to %v and comes back as %#04x", h.typ, b, got, back)
				}
				continue
			}
			if float64(got) != want || math.Signbit(float64(got)) != math.Signbit(want) {
				t.Fatalf("%v %#04x widens to %v, want %v", h.typ, b, got, want)
			}
			if back := h.narrow(got); back != uint16(b) {
				t.Fatalf("%v %#04x widens to %v and comes back as %#04x", h.typ, b, got, back)
			}
		}
	}
}

// TestHalfRoundsToNearestEven looks at every midpoint of two neighbours, the
// step from the largest number to infinity included, and at the float32 on
// either side of it.
func TestHalfRoundsToNearestEven(t *testing.T) {
	for _, h := range halves {
		f := formats[h.typ]
		for lower := range uint16(f.infinity()) {
			upper, even := lower+1, lower+lower&1
			above := f.decode(uint64(upper))
			if math.IsInf(above, 1) { // as if the exponent continued
				above = 2*f.decode(uint64(lower)) - f.decode(uint64(lower-1))
			}
			middle := float32((f.decode(uint64(lower)) + above) / 2)
			for _, c := range []struct {
				x    float32
				want uint16
			}{
				{math.Nextafter32(middle, 0), lower},
				{middle, even},
				{math.Nextafter32(middle, float32(math.Inf(1))), upper},
			} {
				if got := h.narrow(c.x); got != c.want {
					t.Fatalf("%v of %v is %#04x, want %#04x", h.typ, c.x, got, c.want)
				}
				if got := h.narrow(-c.x); got != c.want|0x8000 {
					t.Fatalf("%v of %v is %#04x, want %#04x", h.typ, -c.x, got, c.want|0x8000)
				}
			}
		}
	}
}

func TestHalfOfAnyFloat32MatchesReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x := math.Float32frombits(r.Uint32())
		for _, h := range halves {
			f, got := formats[h.typ], uint64(h.narrow(x))
			switch v := float64(x); {
			case math.IsNaN(v):
				if !math.IsNaN(f.decode(got)) {
					t.Fatalf("%v of NaN is %#04x, want a NaN", h.typ, got)
				}
			case math.IsInf(v, 0):
				if f.decode(got) != v {
					t.Fatalf("%v of %v is %#04x", h.typ, x, got)
				}
			case got != f.encode(new(big.Float).SetPrec(200).SetFloat64(v)):
				t.Fatalf("%v of %v is %#04x, want %#04x", h.typ, x, got,
					f.encode(new(big.Float).SetPrec(200).SetFloat64(v)))
			}
		}
	}
}

// TestHalfOfManyRoundsOnce adds to 2048 ones that float16, whose step is 2
// there, would lose one by one.
func TestHalfOfManyRoundsOnce(t *testing.T) {
	srcs := []Buffer{Of([]Float16{ToFloat16(2048)})}
	for range 6 {
		srcs = append(srcs, Of([]Float16{ToFloat16(1)}))
	}
	dst := make([]Float16, 1)
	if err := ReduceAll(Sum, Of(dst), srcs...); err != nil {
		t.Fatal(err)
	}
	if got := dst[0].Float32(); got != 2054 {
		t.Errorf("2048 + 6 x 1 = %v, want 2054", got)
	}
}

// Sums are divided before they are rounded: also one that would be infinite in float16,
// and 305, which bfloat16 has not.
func TestHalfAveragesRoundOnce(t *testing.T) {
	big := Of([]Float16{ToFloat16(60_000)})
	if err := ReduceAll(Avg, big, big, big, big, big); err != nil {
		t.Fatal(err)
	}
	if got := Slice[Float16](big)[0].Float32(); got != ToFloat16(60_000).Float32() {
		t.Errorf("the average of 4 x 60000 = %v, want %v", got, ToFloat16(60_000).Float32())
	}
	var srcs []Buffer
	for _, x := range []float32{300, 2, 1, 1, 1} {
		srcs = append(srcs, Of([]BFloat16{ToBFloat16(x)}))
	}
	if err := ReduceAll(Avg, srcs[0], srcs...); err != nil {
		t.Fatal(err)
	}
	if got := Slice[BFloat16](srcs[0])[0]; got != ToBFloat16(61) {
		t.Errorf("the average of 300, 2, 1, 1 and 1 = %v, want 61", got.Float32())
	}
}

// Conversions of slices give the same bits as conversions of one number: of every 16-bit number,
// and of the float32 around every boundary between two roundings, infinities and NaNs included.
func TestConversionsOfSlicesAreThoseOfNumbers(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		testConversions(t, Float16.Float32, ToFloat16, func(b uint16) Float16 { return Float16{b} })
		testConversions(t, BFloat16.Float32, ToBFloat16, func(b uint16) BFloat16 { return BFloat16{b} })
	})
}

func testConversions[T Half](t *testing.T, widen func(T) float32, narrow func(float32) T, of func(uint16) T) {
	var all []T
	var wide []float32
	for b := range 1 << 16 {
		h := of(uint16(b))
		all = append(all, h)
		x, next := math.Float32bits(widen(h)), math.Float32bits(widen(of(uint16(b+1))))
		for _, bits := range []uint32{x, x + 1, x - 1, x/2 + next/2, x/2 + next/2 + 1, x/2 + next/2 - 1,
			uint32(b) << 16, uint32(b)<<16 | 0x8000, uint32(b)} {
			wide = append(wide, math.Float32frombits(bits))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 1 << 18 {
		wide = append(wide, math.Float32frombits(r.Uint32()))
	}
	widened := make([]float32, len(all))
	Widen(widened, all)
	for i, got := range widened {
		if want := widen(all[i]); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%#04x widens to %#08x, want %#08x", all[i], math.Float32bits(got), math.Float32bits(want))
		}
	}
	for _, by := range []float32{1, 2, 3} {
		narrowed := make([]T, len(wide))
		Narrow(narrowed, wide, by)
		for i, got := range narrowed {
			if want := narrow(wide[i] / by); got != want {
				t.Fatalf("%#08x / %v narrows to %#04x, want %#04x", math.Float32bits(wide[i]), by, got, want)
			}
		}
	}
}

// Every length and alignment converts exactly n elements.
func TestConversionsOfSlicesKeepToTheirLength(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		const guard = 12345
		for n := range 200 {
			wide, half := make([]float32, n+2), make([]BFloat16, n+2)
			for i := range wide {
				wide[i] = guard
				half[i] = ToBFloat16(float32(i))
			}
			Widen(wide[1:], half[1:n+1])
			for i, x := range wide {
				if inside := i > 0 && i <= n; inside && x != float32(i) || !inside && x != guard {
					t.Fatalf("of %d elements, number %d widens to %v", n, i-1, x)
				}
			}
			Narrow(half[1:], wide[1:n+1], 0.5)
			for i, x := range half {
				want := float32(i)
				if i > 0 && i <= n {
					want *= 2
				}
				if x.Float32() != want {
					t.Fatalf("of %d elements, number %d narrows to %v, want %v", n, i-1, x.Float32(), want)
				}
			}
		}
	})
}
