package mem

import (
	"bytes"
	"testing"
	"time"
)

func TestSlowCopiesInARowAreNonTemporal(t *testing.T) {
	const n = 32 << 10
	fast, slow := time.Duration(n>>10*slowCopy-1), time.Duration(n>>10*slowCopy)
	var d Distance
	for _, took := range []time.Duration{slow, slow, fast, slow, slow} {
		if d.learn(n, took); d.nonTemporal != 0 {
			t.Fatalf("after accidents: %+v, want no term of non-temporal stores", d)
		}
	}
	for want := leastTerm; want <= mostTerm; want *= 2 {
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
	const n = timed
	src := bytes.Repeat([]byte{1}, n)
	for _, d := range []Distance{{}, {rest: 1}, {nonTemporal: 1}} {
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
