package result

import (
	"fmt"
	"slices"
	"testing"
)

func sample(round int, impl, op string, bytes int, median, b2b float64) Sample {
	return Sample{round, "near", Row{Impl: impl, Op: op, NP: 2, Bytes: bytes, Median: median, B2B: b2b}}
}

// samples of two operations: gompi wins allreduce and loses bcast of 1 KiB, and
// nobody else has bcast of 8 bytes.
func samples() []Sample {
	return []Sample{
		sample(1, "gompi", "bcast", 1024, 6, 6),
		sample(1, "mpich", "bcast", 1024, 3, 9),
		sample(1, "gompi", "bcast", 8, 5, 5),
		sample(1, "gompi", "allreduce", 8, 4, 4),
		sample(1, "openmpi", "allreduce", 8, 9, 12),
		sample(1, "mpich", "allreduce", 8, 8, 14),
		sample(2, "gompi", "allreduce", 8, 100, 4), // an outlier, as the median of three
		sample(2, "mpich", "allreduce", 8, 8, 14),
		sample(3, "gompi", "allreduce", 8, 4, 4),
		sample(3, "mpich", "allreduce", 8, 8, 14),
	}
}

func TestRatiosAreOfMediansAgainstTheFastestPeer(t *testing.T) {
	cells := Cells(samples())
	if len(cells) != 3 {
		t.Fatalf("%d cells, want 3", len(cells))
	}
	for i, want := range []struct {
		op            string
		bytes, rounds int
		median, b2b   float64 // 0: none
	}{
		{"bcast", 8, 1, 0, 0}, {"bcast", 1024, 1, 0.5, 1.5}, {"allreduce", 8, 3, 2, 3},
	} {
		c := cells[i]
		if c.Op != want.op || c.Bytes != want.bytes || c.Rounds != want.rounds {
			t.Errorf("cell %d is %s of %d bytes in %d rounds, want %s of %d in %d", i, c.Op, c.Bytes, c.Rounds, want.op,
				want.bytes, want.rounds)
		}
		if got, ok := c.Ratio("gompi", ByMedian, "openmpi", "mpich"); got != want.median || ok != (want.median > 0) {
			t.Errorf("%s of %d bytes: ratio %v, %v; want %v", c.Op, c.Bytes, got, ok, want.median)
		}
		if got, ok := c.Ratio("gompi", ByB2B, "openmpi", "mpich"); got != want.b2b || ok != (want.b2b > 0) {
			t.Errorf("%s of %d bytes: ratio back to back %v, %v; want %v", c.Op, c.Bytes, got, ok, want.b2b)
		}
	}
	if got, ok := cells[2].Ratio("gompi", ByMedian, "openmpi"); got != 2.25 || !ok {
		t.Errorf("ratio to openmpi alone: %v, %v; want 9/4", got, ok)
	}
	if _, ok := cells[1].Ratio("openmpi", ByMedian, "gompi", "mpich"); ok {
		t.Error("one that is missing in a cell has a ratio")
	}
}

func TestOnlyLikeIsComparedWithLike(t *testing.T) {
	far := sample(4, "mpich", "allreduce", 8, 80, 80)
	far.State = "far"
	cells := Cells(append(samples(), far))
	if len(cells) != 4 || cells[2].State != "near" || cells[3].State != "far" || cells[3].Rounds != 1 {
		t.Fatalf("cells %+v: want a last one, of one round, for the other state", cells)
	}
	if got, _ := cells[2].Ratio("gompi", ByMedian, "openmpi", "mpich"); got != 2 {
		t.Errorf("ratio in the first state: %v, want 2", got)
	}
	if _, ok := cells[3].Ratio("gompi", ByMedian, "openmpi", "mpich"); ok {
		t.Error("a ratio between states")
	}
}

func TestMeansAreOfOneState(t *testing.T) {
	other := sample(1, "gompi", "bcast", 8, 1, 1)
	other.NP = 4
	moved := sample(1, "gompi", "bcast", 8, 1, 1)
	moved.State = Moved
	var got []string
	for _, m := range Means(Cells(append(samples(), other, moved)), "gompi", "openmpi", "mpich") {
		x, y := m.ByMedian, m.ByB2B
		got = append(got, fmt.Sprintf("%s %s %d %d: %.2f %.1f %d, %.2f %.1f %d", m.Op, m.State, m.NP, m.Cells,
			x.Mean, x.Least, x.Lost, y.Mean, y.Least, y.Lost))
	}
	want := []string{"bcast near 2 2: 0.50 0.5 1, 1.50 1.5 0", "allreduce near 2 1: 2.00 2.0 0, 3.00 3.0 0",
		"all near 2 3: 1.00 0.5 1, 2.12 1.5 0", "bcast near 4 1: 0.00 0.0 0, 0.00 0.0 0",
		"all near 4 1: 0.00 0.0 0, 0.00 0.0 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSizesAreWrittenShort(t *testing.T) {
	for n, want := range map[int]string{0: "0 B", 8: "8 B", 1000: "1000 B", 1024: "1 KiB", 64 << 20: "64 MiB",
		1 << 40: "1024 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}
