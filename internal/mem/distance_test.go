package mem

import (
	"bytes"
	"testing"
	"time"
)

func TestSlowCopiesInARowAreNonTemporal(t *testing.T) {
	const n = 32 << 10
	const least = 25 << 10 * time.Nanosecond // 25 ns a KiB
	fast, slow := n*slowCopy*least>>20-1, n*slowCopy*least>>20
	d := Distance{From: n, least: least, compared: 1 << 30}
	for _, took := range []time.Duration{slow, slow, fast, slow, slow} {
		if d.learn(n, took); d.nonTemporal != 0 {
			t.Fatalf("after accidents: %+v, want no term of non-temporal stores", d)
		}
	}
	for want := int32(leastTerm); want <= mostTerm; want *= 2 {
		for d.nonTemporal == 0 {
			d.learn(n, slow)
		}
		if d.nonTemporal != want {
			t.Errorf("%d copies are to be non-temporal, want %d", d.nonTemporal, want)
		}
		src, dst := bytes.Repeat([]byte{1}, n), make([]byte, n)
		for d.nonTemporal > 0 {
			d.Copy(dst, src)
		}
		if !bytes.Equal(dst, src) {
			t.Fatal("copied something else")
		}
	}
	d.learn(n, fast)
	for range slowCopies {
		d.learn(n, slow)
	}
	if d.nonTemporal != leastTerm {
		t.Errorf("after a fast one: %d copies, want %d again", d.nonTemporal, leastTerm)
	}
}

// Whatever is known of the reader, a fork arrives twice.
func TestForksArriveNearAndFar(t *testing.T) {
	const n = 8 << 10
	src := bytes.Repeat([]byte{1}, n)
	for _, d := range []Distance{{}, {From: n}, {From: n + 1}, {rest: 1}, {nonTemporal: 1},
		{StringFrom: n}, {From: n, StringFrom: n + 1}, {From: n, rest: 1, StringFrom: n}} {
		for _, nonTemporal := range []bool{false, true} {
			d, dst, own := d, make([]byte, n), make([]byte, n)
			if d.Fork(dst, own, src, nonTemporal); !bytes.Equal(dst, src) || !bytes.Equal(own, src) {
				t.Errorf("%+v, non-temporal %v: copied something else", d, nonTemporal)
			}
			if d.Far() {
				t.Errorf("%+v: it still counts a copy that was made", d)
			}
		}
	}
}

// The first copy measures the time for comparison, and another does so after many, but never a
// short one.
func TestCopiesAreComparedWithNonTemporalOnes(t *testing.T) {
	d := Distance{From: 8 << 10}
	src, dst := bytes.Repeat([]byte{1}, d.From), make([]byte, d.From)
	if d.Copy(dst[1:], src[1:]); d.least != 0 {
		t.Errorf("after a short one: %+v, want no comparison", d)
	}
	if d.Copy(dst, src); d.least <= 0 || d.compared != compareEvery || !bytes.Equal(dst, src) {
		t.Errorf("after the first: %+v, want a comparison, and the same bytes", d)
	}
	d.rest, d.nonTemporal, d.compared, d.least = 0, 0, 0, 1<<40
	if d.Copy(dst, src); d.least == 1<<40 {
		t.Errorf("after many: %+v, want a comparison", d)
	}
}

// Where string instructions copy, nothing is measured.
func TestStringCopiesAreNotTimed(t *testing.T) {
	d := Distance{From: 4 << 10, StringFrom: 4 << 10}
	src, dst := bytes.Repeat([]byte{1}, d.From), make([]byte, d.From)
	if d.Copy(dst, src); d != (Distance{From: 4 << 10, StringFrom: 4 << 10}) || !bytes.Equal(dst, src) {
		t.Errorf("%+v: want nothing measured, and the same bytes", d)
	}
	if d.Copy(dst[1:], src[1:]); d.least != 0 {
		t.Errorf("%+v: a short copy was timed", d)
	}
}
