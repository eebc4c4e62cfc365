package mem

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// stays is what stands around the memory that Stream writes.
const stays = 0x5a

func streams(t *testing.T, from, to, n int) {
	src, dst := make([]byte, from+n), bytes.Repeat([]byte{stays}, to+n+64)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	Stream(dst[to:to+n], src[from:])
	want := append(bytes.Repeat([]byte{stays}, to), src[from:]...)
	want = append(want, bytes.Repeat([]byte{stays}, 64)...)
	if !bytes.Equal(dst, want) {
		t.Fatalf("%d bytes from offset %d to %d: wrong bytes, or more than these", n, from, to)
	}
}

func TestStreamCopiesAnyLengthFromAnywhere(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 1000, 4096, 40_001} {
		for _, from := range []int{0, 1, 31, 64} {
			for to := range 66 {
				streams(t, from, to, n)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(uint8(0), uint8(8), uint16(5000))
	f.Fuzz(func(t *testing.T, from, to uint8, n uint16) { streams(t, int(from), int(to), int(n)) })
}

// Past the caches or through them, a reduction has the same result, wherever it begins,
// and into an operand.
func TestStreamReduceIsReduce(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for op := Sum; op < Custom; op++ {
			for _, typ := range definedTypes[op] {
				for _, n := range []int{1, 64, 291} {
					for _, skew := range []int{0, 1} {
						testStreamReduce(t, op, typ, n, skew)
					}
				}
			}
		}
		testStreamReduce(t, Sum, F32, stretch/4+77, 0)
	})
}

func testStreamReduce(t *testing.T, op Op, typ Type, n, skew int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
	operand := [...]Buffer{refOperand(r, typ, n), refOperand(r, typ, n), refOperand(r, typ, n)}
	for _, into := range []int{-1, 1} {
		srcs := []Buffer{skewed(operand[0], skew), skewed(operand[1], skew), skewed(operand[2], 3)}
		want := clone(srcs[0])
		if err := Host.Reduce(op, want, srcs...); err != nil {
			t.Fatal(err)
		}
		dst := skewed(operand[0], skew)
		if into >= 0 {
			dst = srcs[into]
		}
		if err := StreamReduce(op, dst, srcs...); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(dst.HostSlice(), want.HostSlice()) {
			continue
		}
		for i := range n { // NaN may differ
			if !refSame(typ, slice(dst, i), slice(want, i)) {
				t.Fatalf("%v of %d %v from place %d, into %d: element %d is %x, want %x", op, n, typ, skew, into, i, slice(dst, i), slice(want, i))
			}
		}
	}
}
