package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var rows = []Row{
	{"gompi", "allreduce", 2, 8, 4.75, 4.5, 9.125, 5000, 4.25, 0.0016, 0.0016},
	{"gompi", "allreduce", 2, 65536, 25, 24, 40, 2000, 22, 2.6214, 2.6214},
	{"gompi", "barrier", 2, 0, 5, 4.875, 6, 5000, 5, 0, 0},
}

func written(t *testing.T, format string, rows []Row) string {
	t.Helper()
	var b strings.Builder
	w, err := NewWriter(&b, format)
	if err != nil {
		t.Fatal(err)
	}
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

func TestCSVIsWhatItsUsersParse(t *testing.T) {
	want := "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps\n" +
		"gompi,allreduce,2,8,4.750,4.500,9.125,5000,4.250,0.0016,0.0016\n" +
		"gompi,allreduce,2,65536,25.000,24.000,40.000,2000,22.000,2.6214,2.6214\n" +
		"gompi,barrier,2,0,5.000,4.875,6.000,5000,5.000,0.0000,0.0000\n"
	if got := written(t, "csv", rows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := written(t, "csv", nil); got != Header+"\n" {
		t.Errorf("without rows: %q, want the header", got)
	}
}

func TestCSVIsReadBack(t *testing.T) {
	got, err := ReadCSV(strings.NewReader(written(t, "csv", rows)))
	if err != nil || !slices.Equal(got, rows) {
		t.Errorf("got %v and %v, want %v", got, err, rows)
	}
}

func TestReadCSVSaysWhatIsWrongAndKeepsWhatIsRight(t *testing.T) {
	good := strings.Join(rows[0].Fields(), ",")
	for _, tt := range []struct {
		name, text, want string
		rows             int
	}{
		{"empty", "", "no rows: want the header " + Header, 0},
		{"no header", good + "\n", `header "` + good + `": want ` + Header, 0},
		{"cut short", Header + "\n" + good + "\ngompi,allreduce,2,16,4", `row "gompi,allreduce,2,16,4": want the 11 columns ` + Header, 1},
		{"letters", Header + "\n" + strings.Replace(good, "5000", "many", 1) + "\n", `iters "many": want a whole number`, 0},
		{"no time", Header + "\n" + strings.Replace(good, "4.750", "", 1) + "\n", `usec_median "": want a number`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadCSV(strings.NewReader(tt.text))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if len(got) != tt.rows {
				t.Errorf("%d rows, want %d", len(got), tt.rows)
			}
		})
	}
}

func TestJSONIsOneArrayWithTheNamesOfTheCSV(t *testing.T) {
	var objects []map[string]any
	if err := json.Unmarshal([]byte(written(t, "json", rows)), &objects); err != nil {
		t.Fatal(err)
	}
	if len(objects) != len(rows) {
		t.Fatalf("%d objects, want %d", len(objects), len(rows))
	}
	names := strings.Split(Header, ",")
	for _, name := range names {
		if _, ok := objects[0][name]; !ok || len(objects[0]) != len(names) {
			t.Errorf("%v: want %s, and nothing beyond %v", objects[0], name, names)
		}
	}
	if got := written(t, "json", nil); got != "[]\n" {
		t.Errorf("without rows: %q, want []", got)
	}
}

func TestTableHasABlockForEachOperation(t *testing.T) {
	want := "" +
		"op                np        bytes    median us       min us       p99 us       b2b us    iters  alg GB/s  bus GB/s\n" +
		"allreduce          2            8         4.75         4.50         9.12         4.25     5000     0.002     0.002\n" +
		"allreduce          2        65536        25.00        24.00        40.00        22.00     2000     2.621     2.621\n" +
		"\n" +
		"op                np        bytes    median us       min us       p99 us       b2b us    iters  alg GB/s  bus GB/s\n" +
		"barrier            2            0         5.00         4.88         6.00         5.00     5000     0.000     0.000\n"
	if got := written(t, "table", rows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	_, err := NewWriter(nil, "xml")
	if want := `format "xml": want table, csv or json`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
