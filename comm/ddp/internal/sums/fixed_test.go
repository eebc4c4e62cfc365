package sums

import "testing"

func TestFixedPointRoundsToTheNearest(t *testing.T) {
	fixed := FixedPoint{0.25, 100}
	for _, tc := range []struct {
		v    float32
		want int64
	}{{0, 0}, {0.25, 1}, {-0.25, -1}, {0.3, 1}, {0.375, 2}, {0.125, 0}, {-0.4, -2}, {100, 400}} {
		if got, ok := fixed.Of(tc.v); got != tc.want || !ok {
			t.Errorf("%v is %d quarters (%v), want %d", tc.v, got, ok, tc.want)
		}
	}
	if _, ok := fixed.Of(100.5); ok {
		t.Error("more than the most fits")
	}
	if most := NewFixedPoint(0x1p-44, 3).most; most*3 > 0x1p18 || most*3 < 0x1p18*0.999 {
		t.Errorf("most of 3 is %v", most)
	}
}
