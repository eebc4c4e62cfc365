package result

import (
	"math"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i + 1)
	}
	for _, tt := range []struct {
		name   string
		sorted []int64
		q      float64
		want   int64
	}{
		{"nothing", nil, 0.5, 0},
		{"one", []int64{7}, 0.99, 7},
		{"least", []int64{1, 2, 3}, 0, 1},
		{"most", []int64{1, 2, 3}, 1, 3},
		{"middle of an odd number", []int64{1, 2, 30}, 0.5, 2},
		{"lower middle of an even number", []int64{1, 2, 3, 40}, 0.5, 2},
		{"99th of a hundred", hundred, 0.99, 99},
	} {
		if got := Quantile(tt.sorted, tt.q); got != tt.want {
			t.Errorf("%s: Quantile(%v) = %d, want %d", tt.name, tt.q, got, tt.want)
		}
	}
}

func TestMedianKeepsItsArgument(t *testing.T) {
	for _, tt := range []struct {
		xs   []float64
		want float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 100, 2}, 3},
	} {
		before := slices.Clone(tt.xs)
		if got := Median(tt.xs); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.xs, got, tt.want)
		}
		if !slices.Equal(tt.xs, before) {
			t.Errorf("Median changed %v to %v", before, tt.xs)
		}
	}
}

func TestGeoMeanOfARatioAndItsInverseIsOne(t *testing.T) {
	if got := GeoMean([]float64{4, 0.25, 3, 1.0 / 3}); math.Abs(got-1) > 1e-12 {
		t.Errorf("got %v, want 1", got)
	}
	if got := GeoMean([]float64{2, 8}); math.Abs(got-4) > 1e-12 {
		t.Errorf("of 2 and 8: got %v, want 4", got)
	}
	if got := GeoMean(nil); got != 0 {
		t.Errorf("of nothing: got %v, want 0", got)
	}
}
