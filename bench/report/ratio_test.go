package report

import (
	"math"
	"strings"
	"testing"
)

func sample(round int, impl, op string, bytes int, median, b2b float64) Sample {
	return Sample{round, Row{Impl: impl, Op: op, NP: 2, Bytes: bytes, Median: median, B2B: b2b}}
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
	cells := Cells(Medians(samples()))
	if len(cells) != 3 {
		t.Fatalf("%d cells, want 3", len(cells))
	}
	for i, want := range []struct {
		op          string
		bytes       int
		median, b2b float64 // 0: none
	}{
		{"bcast", 8, 0, 0}, {"bcast", 1024, 0.5, 1.5}, {"allreduce", 8, 2, 3},
	} {
		c := cells[i]
		if c.Op != want.op || c.Bytes != want.bytes {
			t.Errorf("cell %d is %s of %d bytes, want %s of %d", i, c.Op, c.Bytes, want.op, want.bytes)
		}
		if got, ok := c.Ratio("gompi", ByMedian); got != want.median || ok != (want.median > 0) {
			t.Errorf("%s of %d bytes: ratio %v, %v; want %v", c.Op, c.Bytes, got, ok, want.median)
		}
		if got, ok := c.Ratio("gompi", ByB2B); got != want.b2b || ok != (want.b2b > 0) {
			t.Errorf("%s of %d bytes: ratio back to back %v, %v; want %v", c.Op, c.Bytes, got, ok, want.b2b)
		}
	}
	if _, ok := cells[1].Ratio("openmpi", ByMedian); ok {
		t.Error("one that is missing in a cell has a ratio")
	}
}

func TestRatioTableMarksWhatIsLostAndWhatIsMissing(t *testing.T) {
	var b strings.Builder
	if err := RatioTable(&b, Cells(Medians(samples())), "gompi", []string{"gompi", "mpich"}); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"| op        |  np | bytes |       gompi |       mpich |         ratio | ratio b2b |\n" +
		"|-----------|----:|------:|------------:|------------:|--------------:|----------:|\n" +
		"| bcast     |   2 |   8 B | 5.00 / 5.00 |     missing |       missing |   missing |\n" +
		"| bcast     |   2 | 1 KiB | 6.00 / 6.00 | 3.00 / 9.00 | **0.50 lost** |      1.50 |\n" +
		"| allreduce |   2 |   8 B | 4.00 / 4.00 | 8.00 / 14.0 |          2.00 |      3.00 |\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestMeanTableCountsALossOfEitherTime(t *testing.T) {
	var b strings.Builder
	if err := MeanTable(&b, Cells(Medians(samples())), "gompi"); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"| op        | cells | lost |    mean ratio | mean ratio b2b |\n" +
		"|-----------|------:|-----:|--------------:|---------------:|\n" +
		"| bcast     |     2 |    1 | **0.50 lost** |           1.50 |\n" +
		"| allreduce |     1 |    0 |          2.00 |           3.00 |\n" +
		"| all       |     3 |    1 |          1.00 |           2.12 |\n"
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
	for us, want := range map[float64]string{0.1234: "0.12", 9.994: "9.99", 12.345: "12.3", 123.4: "123", 12345.6: "12346"} {
		if got := Usec(us); got != want {
			t.Errorf("Usec(%v) = %q, want %q", us, got, want)
		}
	}
}
