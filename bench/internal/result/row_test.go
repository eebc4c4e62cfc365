package result

import (
	"strings"
	"testing"
)

var rows = []Row{
	{Impl: "gompi", Op: "bcast", NP: 4, Bytes: 8, Median: 1.5, Min: 1.25, P99: 9, Iters: 100, B2B: 1.125, AlgBW: 0.0053,
		BusBW: 0.0053},
	{Impl: "gompi", Op: "bcast", NP: 4, Bytes: 64, Median: 2, Min: 1, P99: 3, Iters: 5},
	{Impl: "gompi", Op: "scan_ip", NP: 4, Bytes: 64, Median: 2, Min: 1, P99: 3, Iters: 5},
}

func written(t *testing.T, form string, rows []Row) string {
	t.Helper()
	var b strings.Builder
	w := NewWriter(&b, form)
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCSVReadsBack(t *testing.T) {
	for _, want := range [][]Row{rows, nil} {
		got, err := ReadCSV([]byte("a library says something\n" + written(t, "csv", want)))
		if err != nil || len(got) != len(want) {
			t.Fatalf("got %v, error %v; want %v", got, err, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("row %d: got %+v, want %+v", i, got[i], want[i])
			}
		}
	}
}

func TestReadCSVQuotesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"hello\n":            `no rows, but "hello\n": want the header impl,op,np`,
		Header + "\na,b,1\n": `row "a,b,1": want the 11 columns`,
		written(t, "csv", rows[:1]) + "gompi,scan,two,8,1,1,1,1,1,0,0\n": `np "two": want a number`,
	} {
		got, err := ReadCSV([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if strings.Contains(text, "two") && len(got) != 1 {
			t.Errorf("%d rows before the wrong one, want 1", len(got))
		}
	}
}

func TestATableHasAHeadForEachOperation(t *testing.T) {
	got := written(t, "table", rows)
	if strings.Count(got, "median (us)") != 2 || !strings.HasPrefix(got, "# bcast, 4 ranks\n") ||
		!strings.Contains(got, "\n\n# scan_ip, 4 ranks\n") {
		t.Errorf("got\n%s", got)
	}
}
