package mem

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// stays is the content around the memory that the copy writes.
const stays = 0x5a

func streams(t *testing.T, from, to, n int) {
	t.Helper()
	copies(t, CopyNonTemporal, from, to, n)
	copies(t, CopyString, from, to, n)
}

func copies(t *testing.T, copies func(dst, src []byte), from, to, n int) {
	t.Helper()
	src, dst := make([]byte, from+n), bytes.Repeat([]byte{stays}, to+n+64)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	copies(dst[to:to+n], src[from:])
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

// A fork is two copies, the first non-temporal or not, of any length from anywhere.
func TestForkCopiesTwice(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 129, 1000, 40_001} {
		for _, to := range []int{0, 1, 32, 63} {
			for _, nonTemporal := range []bool{false, true} {
				testFork(t, n, to, nonTemporal)
			}
		}
	}
}

func testFork(t *testing.T, n, to int, nonTemporal bool) {
	t.Helper()
	src := make([]byte, n)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	around := func() []byte { return bytes.Repeat([]byte{stays}, to+n+64) }
	want, dst, also := around(), around(), around()
	copy(want[to:], src)
	Fork(dst[to:to+n], also[to:to+n], src, nonTemporal)
	if !bytes.Equal(dst, want) || !bytes.Equal(also, want) {
		t.Fatalf("%d bytes to offset %d, non-temporal %v: wrong bytes, or more than these", n, to, nonTemporal)
	}
}

// With non-temporal stores or plain ones, to several destinations or one, a reduction has the
// same result, wherever it begins, and into operands.
func TestReduceNonTemporalIsReduce(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for op := Sum; op < Custom; op++ {
			for _, typ := range definedTypes[op] {
				for _, n := range []int{1, 64, 291} {
					for _, skew := range []int{0, 1} {
						testReduceNonTemporal(t, op, typ, n, skew)
					}
				}
			}
		}
		testReduceNonTemporal(t, Sum, F32, stretch/4+77, 0)
	})
}

func testReduceNonTemporal(t *testing.T, op Op, typ Type, n, skew int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
	operand := [...]Buffer{refOperand(r, typ, n), refOperand(r, typ, n), refOperand(r, typ, n)}
	for _, into := range [][]int{{-1}, {1}, {-1, -1, -1}, {-1, 2}, {0, 1, -1}} { // operands, or -1: elsewhere
		for _, forks := range []bool{false, true} {
			srcs := []Buffer{skewed(operand[0], skew), skewed(operand[1], skew), skewed(operand[2], 3)}
			want := clone(srcs[0])
			if err := ReduceAll(op, want, srcs...); err != nil {
				t.Fatal(err)
			}
			var dsts []Buffer
			for _, i := range into {
				if i >= 0 {
					dsts = append(dsts, srcs[i])
				} else {
					dsts = append(dsts, skewed(operand[0], skew))
				}
			}
			results, also := dsts, Buffer{}
			if forks {
				also = skewed(operand[1], 1)
				results = append(results, also)
			}
			if err := ReduceNonTemporal(op, dsts, also, srcs...); err != nil {
				t.Fatal(err)
			}
			for at, got := range results {
				for i := range n { // NaN may differ
					if !refSame(typ, slice(got, i), slice(want, i)) {
						t.Fatalf("%v of %d %v from place %d, into %v: element %d of result %d is %x, want %x",
							op, n, typ, skew, into, i, at, slice(got, i), slice(want, i))
					}
				}
			}
		}
	}
}
