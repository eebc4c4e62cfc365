package result

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func example() *Report {
	return &Report{
		Title: "gompi beside <peers>", Warning: "the machine was busy", Conditions: []string{"AMD & two processors"},
		Commands: []string{"gompi: `gompirun`"},
		Tables: []Table{{Title: "Times:", Left: 1,
			Lines: [][]string{{"op", "gompi", "ratio"}, {"bcast", "2.00", Ratio(0.5, true)},
				{"scan", Missing, Ratio(2, true)}}}},
		Charts: []Chart{
			{Title: "bcast <2>", X: "bytes", Y: "us",
				Points: []Point{{Series: "gompi", At: 8, Y: 1}, {Series: "gompi", At: 1024, Y: 2},
					{Series: "mpich", At: 8, Y: 0}}},
			{Title: "one", X: "bytes", Y: "us", Points: []Point{{Series: "gompi", At: 8, Y: 1}}},
			{Title: "models", Y: "ms", Points: []Point{{Series: "gompi", Word: "mlp", Y: 1},
				{Series: "gloo", Word: "cnn", Y: -3}}},
		},
		Absent: []string{"impi: not installed"}, Misses: []string{"mpich, scan: time limit"},
	}
}

func TestAReportIsMarkdown(t *testing.T) {
	var b strings.Builder
	if err := example().Write(&b, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# gompi beside <peers>\n\n**Warning: the machine was busy**\n\n- AMD & two processors\n\nCommands:\n\n- gompi: `gompirun`\n\nTimes:\n\n",
		"| op    |   gompi |         ratio |\n|-------|--------:|--------------:|\n| bcast |    2.00 | **0.50 lost** |\n| scan  | missing |          2.00 |\n",
		"\nNot here:\n\n- impi: not installed\n", "\nRuns that failed:\n\n- mpich, scan: time limit\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The page refers to nothing outside, escapes its quotations, and has a picture of each chart.
func TestAReportIsAPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	if err := example().Write(new(strings.Builder), file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	page := string(text)
	if err != nil || strings.Count(page, "<svg") != 3 || strings.Contains(page, "<peers>") ||
		strings.Contains(page, "href=\"http") || strings.Contains(page, "src=") {
		t.Errorf("error %v, page\n%s", err, page)
	}
	for _, want := range []string{`<td class="lost">0.50 lost</td>`, "bcast &lt;2&gt;", "AMD &amp; two",
		"not here: impi", "failed: mpich"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); err != nil {
			if err.Error() != "EOF" {
				t.Errorf("the page is not well-formed: %v", err)
			}
			return
		}
	}
}

func TestTimesAreWrittenShort(t *testing.T) {
	for us, want := range map[float64]string{0.1234: "0.12", 9.994: "9.99", 12.345: "12.3", 123.4: "123",
		12345.6: "12346", -12.345: "-12.3"} {
		if got := Time(us); got != want {
			t.Errorf("Time(%v) = %q, want %q", us, got, want)
		}
	}
}
