package report

import (
	"math"
	"strings"
	"testing"
)

func sample(round int, impl, op string, bytes int, median, b2b float64) Sample {
	return Sample{round, "near", Row{Impl: impl, Op: op, NP: 2, Bytes: bytes, Median: median, B2B: b2b}}
}

// samples of two operations: gompi wins allreduce and loses bcast of 1 KiB, and
// nobody else has bcast of 8 bytes. The limit is nobody.
func samples() []Sample {
	return []Sample{
		sample(1, "gompi", "bcast", 1024, 6, 6),
		sample(1, "mpich", "bcast", 1024, 3, 9),
		sample(1, Limit, "bcast", 1024, 1, 0),
		sample(1, Limit, "bcast", 4096, 1, 0),
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
			t.Errorf("cell %d is %s of %d bytes in %d rounds, want %s of %d in %d", i, c.Op, c.Bytes, c.Rounds, want.op, want.bytes, want.rounds)
		}
		if got, ok := c.Ratio("gompi", ByMedian); got != want.median || ok != (want.median > 0) {
			t.Errorf("%s of %d bytes: ratio %v, %v; want %v", c.Op, c.Bytes, got, ok, want.median)
		}
		if got, ok := c.Ratio("gompi", ByB2B); got != want.b2b || ok != (want.b2b > 0) {
			t.Errorf("%s of %d bytes: ratio back to back %v, %v; want %v", c.Op, c.Bytes, got, ok, want.b2b)
		}
	}
	if got, ok := cells[2].RatioTo("gompi", ByMedian, "openmpi"); got != 2.25 || !ok {
		t.Errorf("ratio to openmpi alone: %v, %v; want 9/4", got, ok)
	}
	if _, ok := cells[1].Ratio("openmpi", ByMedian); ok {
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
	if got, _ := cells[2].Ratio("gompi", ByMedian); got != 2 {
		t.Errorf("ratio in the first state: %v, want 2", got)
	}
	if _, ok := cells[3].Ratio("gompi", ByMedian); ok {
		t.Error("a ratio between states")
	}
	slow, alone := sample(1, "gloo", "allreduce", 8, 2, 2), sample(1, "gloo", "gather", 8, 2, 2)
	slow.State, alone.State = AnyState, AnyState
	cells = Cells(append(samples(), far, slow, slow, slow, slow, alone))
	if len(cells) != 5 || cells[4].State != AnyState || cells[4].Op != "gather" {
		t.Fatalf("cells %+v: want one more, for what was measured in any state alone", cells)
	}
	for _, c := range cells[2:4] {
		if c.Rows["gloo"].Median != 2 || c.State == "far" && c.Rounds != 1 {
			t.Errorf("%s: %+v: want what holds in any state, and the rounds of this one", c.State, c)
		}
	}
}

func TestRatioTableMarksWhatIsLostAndWhatIsMissing(t *testing.T) {
	var b strings.Builder
	dirty := sample(1, "gompi", "scan_dirty", 8, 1, 0)
	cells := Cells(append(samples(), dirty, sample(1, "mpich", "scan_dirty", 8, 2, 0)))
	if err := RatioTable(&b, cells, "gompi", []string{"gompi", "mpich"}, Column{"more", func(c Cell) string { return c.Op[:1] }}); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"| op         |  np | bytes |   state |       gompi |       mpich |         ratio | ratio b2b | more |\n" +
		"|------------|----:|------:|--------:|------------:|------------:|--------------:|----------:|-----:|\n" +
		"| bcast      |   2 |   8 B | near x1 | 5.00 / 5.00 |     missing |       missing |   missing |    b |\n" +
		"| bcast      |   2 | 1 KiB | near x1 | 6.00 / 6.00 | 3.00 / 9.00 | **0.50 lost** |      1.50 |    b |\n" +
		"| allreduce  |   2 |   8 B | near x3 | 4.00 / 4.00 | 8.00 / 14.0 |          2.00 |      3.00 |    a |\n" +
		"| scan_dirty |   2 |   8 B | near x1 |    1.00 / - |    2.00 / - |          2.00 |         - |    s |\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestMeanTableCountsALossOfEitherTime(t *testing.T) {
	var b strings.Builder
	other := sample(1, "gompi", "bcast", 8, 1, 1)
	other.NP = 4
	if err := MeanTable(&b, Means(Cells(append(samples(), other)), "gompi")); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"| op        |  np | cells | lost |    mean ratio | mean ratio b2b |\n" +
		"|-----------|----:|------:|-----:|--------------:|---------------:|\n" +
		"| bcast     |   2 |     2 |    1 | **0.50 lost** |           1.50 |\n" +
		"| allreduce |   2 |     1 |    0 |          2.00 |           3.00 |\n" +
		"| all       |   2 |     3 |    1 |          1.00 |           2.12 |\n" +
		"| bcast     |   4 |     1 |    0 |       missing |        missing |\n" +
		"| all       |   4 |     1 |    0 |       missing |        missing |\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if got := GeoMean([]float64{1.5, 3}); math.Abs(got-2.1213) > 1e-4 {
		t.Errorf("the mean of the table: %v, want 2.12", got)
	}
}

func TestSizesAndTimesAreWrittenShort(t *testing.T) {
	for n, want := range map[int]string{0: "0 B", 8: "8 B", 1000: "1000 B", 1024: "1 KiB", 64 << 20: "64 MiB", 1 << 40: "1024 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	for us, want := range map[float64]string{0.1234: "0.12", 9.994: "9.99", 12.345: "12.3", 123.4: "123", 12345.6: "12346", -12.345: "-12.3"} {
		if got := Time(us); got != want {
			t.Errorf("Time(%v) = %q, want %q", us, got, want)
		}
	}
}
