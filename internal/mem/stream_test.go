package mem

import (
	"bytes"
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
