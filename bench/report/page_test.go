package report

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func section() Section {
	var samples []Sample
	for _, r := range []Row{
		{Impl: "gompi", Op: "allreduce", NP: 2, Bytes: 65536, Median: 25},
		{Impl: "gompi", Op: "allreduce", NP: 2, Bytes: 8, Median: 4.75},
		{Impl: "mpich", Op: "allreduce", NP: 2, Bytes: 8, Median: 3.8},
		{Impl: "mpich", Op: "allreduce", NP: 2, Bytes: 65536, Median: 150},
		{Impl: Limit, Op: "allreduce", NP: 2, Bytes: 65536, Median: 5},
		{Impl: "gompi", Op: "barrier", NP: 2, Bytes: 0, Median: 5},
	} {
		samples = append(samples, Sample{1, "near", r})
	}
	points := Points(Cells(samples), []string{"gompi", "mpich", Limit})
	points = append(points, Point{"restart", "after", "ms", "gompi", "kill -9", 1234}, Point{"ratios", "op", Times, "median", "bcast", 0.5}, Point{"ratios", "op", Times, "back to back", "bcast", 1.5}, Point{"rate", "ranks", "GB/s", "gompi", "2", 9}, Point{"rate", "ranks", "GB/s", "mpich", "2", 3})
	return Section{Title: "compare, np=2", Warning: "busy <once>", Facts: []string{"AMD <EPYC> & \"co\"", "`mpirun -np 2`"}, Points: points}
}

// page writes sections and checks that the result is well-formed.
func page(t *testing.T, sections ...Section) string {
	t.Helper()
	var b strings.Builder
	if err := WritePage(&b, sections); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); err == io.EOF {
			return b.String()
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
	}
}

func TestAPageShowsWhatWasMeasured(t *testing.T) {
	got := page(t, section())
	for _, want := range []string{
		"<h2>compare, np=2</h2>", "AMD &lt;EPYC&gt; &amp; &#34;co&#34;",
		`<title>gompi, 64 KiB: 25 us</title>`, `<path class="line" d="M52.0 `,
		"<th>8 B</th><td>4.75</td><td>3.8</td><td>missing</td><td class=\"lost\">0.80 lost</td>",
		"<th>64 KiB</th><td>25</td><td>150</td><td>5</td><td>6.00</td>", // the limit is nobody to win against
		"<title>best of the others / gompi, 64 KiB: 6 times</title>", `<path class="even" d="M52 `, `<g class="limit"><path class="line"`,
		"<p class=\"verdict\">gompi is at least as fast as the fastest of the others in 2 of 3 cells; ratio (above 1 is faster): geometric mean 2.43, best 6 (allreduce, 2 ranks, 64 KiB), worst 0.8 (allreduce, 2 ranks, 8 B).</p>",
		"<p class=\"warning\">Warning: busy &lt;once&gt;</p>",
		"<th>bcast</th><td class=\"lost\">0.50 lost</td><td>1.50</td></tr>", // ratios are compared with nothing
		"<th>2</th><td>9</td><td>3</td><td>3.00</td>",                       // more is better
		">gompi: 1234 ms</text>", ">gompi: 5 us</text>",                     // bars: a word, and the size 0
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, not := range []string{"NaN", "Inf", "http:", "https:", "<script"} {
		if strings.Contains(strings.ReplaceAll(got, "http://www.w3.org/", ""), not) {
			t.Errorf("the page has %q, want it whole in itself", not)
		}
	}
}

// A value far from the others does not flatten them: the axis is logarithmic. Ratios go to
// both sides of a line at 1.
func TestBarsOfAnyLengthAreSeen(t *testing.T) {
	length := func(chart, series string, values ...float64) (lengths []float64) {
		s := Section{Title: "bars"}
		for i, v := range values {
			s.Points = append(s.Points, Point{Chart: chart, XUnit: "op", YUnit: series, Series: "s", X: string(rune('a' + i)), Y: v})
		}
		for _, m := range regexp.MustCompile(`<g class="s0"><path d="M([0-9.]+) [0-9]+H([0-9.]+)v`).FindAllStringSubmatch(page(t, s), -1) {
			lengths = append(lengths, number(m[2])-number(m[1]))
		}
		return lengths
	}
	if got := length("times", "us", 1, 2, 1000); len(got) != 3 || got[0] < 50 || got[1] < got[0]+10 {
		t.Errorf("bars of 1, 2 and 1000 us are %v long, want all seen and told apart", got)
	}
	if got := length("times", "us", 1, 2, 4); len(got) != 3 || math.Abs(got[2]-4*got[0]) > 0.5 {
		t.Errorf("bars of 1, 2 and 4 us are %v long, want lengths like the values", got)
	}
	if got := length("ratios", Times, 0.5, 1, 2); len(got) != 3 || math.Abs(got[0]-got[2]) > 0.5 || got[1] != 0 {
		t.Errorf("bars of 1/2, 1 and 2 times are %v long, want the first and last alike and none between", got)
	}
}

func TestPagesOfLittle(t *testing.T) {
	if got := page(t); !strings.Contains(got, "Nothing has been measured yet") {
		t.Errorf("no section:\n%s", got)
	}
	one := Point{Chart: "c", XUnit: "ranks", YUnit: "ms", Series: "s", X: "4", Y: 0}
	for name, points := range map[string][]Point{
		"none": nil, "a zero": {one}, "zeros": {one, {"c", "ranks", "ms", "s", "8", 0}},
		"odd": {{"c\x1b\x00", "x\xff", "y", "a,\"b\"\n", "w<", 1}, {"c", "", "", "", "-3", -2}},
		"gap": {{"c", "n", "us", "a", "1", 1}, {"c", "n", "us", "b", "2", 1}, {"c", "n", "us", "a", "3", 1e12}},
	} {
		if got := page(t, Section{Title: name, Points: points}); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Errorf("%s: a number that is none in\n%s", name, got)
		}
	}
}

func TestAPageIsReadBack(t *testing.T) {
	first, second := section(), Section{Title: "launch", Facts: []string{}, Points: []Point{{"c", "ranks", "ms", "a, \"b\"", "1", 0.5}}}
	got, err := ReadPage(strings.NewReader(page(t, first, second)))
	if err != nil || !reflect.DeepEqual(got, []Section{first, second}) {
		t.Errorf("got %+v, %v; want %+v", got, err, []Section{first, second})
	}
	for _, bad := range []string{"", "<html><body><p>mine</p></body></html>", "plain & text", "<h1/><pre class=\"rows\"># t\nchart\n</pre>"} {
		if got, err := ReadPage(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestBenchmarksShareAPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "all.html")
	other := Section{Title: "launch", Points: []Point{{"c", "ranks", "ms", "gompi", "1", 77}}}
	again := section()
	again.Points = again.Points[:2]
	for _, s := range []Section{section(), other, again} {
		if err := s.AddTo(file); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := ReadPage(f)
	if err != nil || len(got) != 2 || len(got[0].Points) != 2 || got[1].Title != "launch" {
		t.Errorf("got %+v, %v; want the first section replaced and the other kept", got, err)
	}
	mine := filepath.Join(t.TempDir(), "mine.html")
	if err := os.WriteFile(mine, []byte("<p>mine</p>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := other.AddTo(mine); err == nil || !strings.Contains(err.Error(), mine) {
		t.Errorf("a page of somebody else: %v, want an error that names it", err)
	}
	if text, _ := os.ReadFile(mine); string(text) != "<p>mine</p>" {
		t.Errorf("it has become %q", text)
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		want   []float64
	}{{3, 60, []float64{5, 10, 20, 50}}, {0.5, 5000, []float64{1, 10, 100, 1000}}} {
		if got := ticks(tt.lo, tt.hi); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ticks(%v, %v) = %v, want %v", tt.lo, tt.hi, got, tt.want)
		}
	}
	for v, want := range map[float64]string{0.5: "0.5", 1000: "1000", 1e4: "10k", 2e5: "200k", 5e6: "5M", 1e9: "1G"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
}

func FuzzParseSection(f *testing.F) {
	f.Add(section().Text())
	f.Add("# t\n" + pointHeader + "\na,b,c,d,e,1\n")
	f.Add("# t\n# warning: w\n" + pointHeader + "\n")
	f.Add("# t\n#\n" + pointHeader + "\n\"a\nb\",,,,,1e999\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSection(text)
		if err != nil {
			return
		}
		page(t, s)
		again, err := ParseSection(s.Text())
		if err != nil || again.Text() != s.Text() {
			t.Errorf("%q came back as %q, %v", s.Text(), again.Text(), err)
		}
	})
}
