package contest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/bench/report"
)

func TestARecordTellsWhatWasMissed(t *testing.T) {
	var progress, out strings.Builder
	r := Record{progress: &progress, Absent: []string{"mpich: not installed"}}
	r.Miss(Miss{NP: 2, Entrant: "gloo", Op: "mlp", Err: errors.New("refused")})
	r.Miss(Miss{Round: 3, NP: 2, Entrant: "gloo", Op: "mlp", Err: errors.New("died")})
	missed := []string{"gloo, mlp, np=2: refused", "gloo, mlp, np=2, round 3: died"}
	if want := strings.Join(missed, "\n") + "\n"; progress.String() != want {
		t.Errorf("progress %q, want %q", progress.String(), want)
	}
	if err := r.Write(&out, "gompi", []string{"a machine"}, []string{"gompi: `true`"}, "\na table\n"); err != nil {
		t.Fatal(err)
	}
	want := "# gompi\n\n- a machine\n\nCommands:\n\n- gompi: `true`\n\na table\n\nNot here:\n\n- mpich: not installed\n" +
		"\nRuns that did not come to their end:\n\n- " + strings.Join(missed, "\n- ") + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	facts := []string{"a machine", "not here: mpich: not installed", "did not come to its end: " + missed[0], "did not come to its end: " + missed[1]}
	if s := r.Section("gompi", []string{"a machine"}, nil); s.Title != "gompi" || s.Warning != "" || !slices.Equal(s.Facts, facts) {
		t.Errorf("section %+v, want the facts %q", s, facts)
	}
}

func TestFiguresOfABusyMachineCarryAWarning(t *testing.T) {
	quiet := Record{Probes: []Probe{{Nanoseconds: 40}, {Nanoseconds: 250}}}
	if w := quiet.warning(); w != "" {
		t.Errorf("a quiet machine has the warning %q", w)
	}
	for want, busy := range map[string]Record{
		"other processes used 1.5 of ":                      {load: 1.5},
		", and 1 of 2 probes during them were disturbed. M": {Probes: []Probe{{Nanoseconds: 40}, {Nanoseconds: 2500}}},
	} {
		w := busy.warning()
		if !strings.HasPrefix(w, "the machine was busy: ") || !strings.Contains(w, want) {
			t.Errorf("%+v: warning %q, want %q in it", busy, w, want)
		}
		var out strings.Builder
		if err := busy.Write(&out, "gompi", nil, nil, ""); err != nil || out.String() != "# gompi\n\n**Warning: "+w+"**\n" || busy.Section("", nil, nil).Warning != w {
			t.Errorf("error %v: want %q in the report and on the page, got\n%s", err, w, out.String())
		}
	}
}

func TestSamplesAreWrittenAsTheyCome(t *testing.T) {
	var r Record
	file := filepath.Join(t.TempDir(), "raw.csv")
	if err := r.Create(file); err != nil {
		t.Fatal(err)
	}
	if err := r.Sample(report.Sample{Round: 2, State: Near, Row: report.Row{Impl: "gompi", Op: "bcast", NP: 2, Bytes: 8}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if lines := strings.Split(string(text), "\n"); err != nil || lines[0] != "# "+Machine() || lines[1] != report.SampleHeader || !strings.HasPrefix(lines[2], "2,near,gompi,bcast,2,8,") {
		t.Errorf("error %v, rows\n%s\nwant the machine, the header and the sample before the end", err, text)
	}
	if err := r.End(); err != nil || len(r.Samples) != 1 {
		t.Errorf("error %v, samples %v: want the one", err, r.Samples)
	}
	if err := r.Create(filepath.Join(file, "below")); err == nil {
		t.Error("a file below a file is made")
	}
}

func TestWhatIsComparedStandsInHeadAndTitle(t *testing.T) {
	f := Flags{Plan: Plan{Rounds: 5, NPs: []int{2, 4}}}
	var r Record
	began := time.Time{}.Format(time.DateOnly)
	if got, want := r.Head(&f, "", "a fact"), []string{Machine(), "a fact", "rounds, in turn: 5; " + began + ", 0s in all"}; !slices.Equal(got, want) {
		t.Errorf("head %q, want %q", got, want)
	}
	if got, want := f.Title("gompi-compare", "", "in place"), "gompi-compare, 2, 4 ranks, in place"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	f.HostNames, f.RSH, f.Transport = []string{"a", "b"}, []string{"ssh", "-q"}, "tcp"
	if err := f.Link.Set("1gbit"); err != nil {
		t.Fatal(err)
	}
	if got, want := r.Head(&f)[1], "2 other hosts, by ssh -q; the link of each carries 1gbit each way"; got != want {
		t.Errorf("head %q, want %q", got, want)
	}
	if got, want := f.Title("gompi-compare"), "gompi-compare, 2, 4 ranks, 2 hosts, 1gbit, tcp"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	if l := f.Links(4); l.Hosts != 2 || l.Ranks != 2 || l.Rate != 125e6 {
		t.Errorf("links %+v, want those of 2 hosts with 2 ranks each, 1 Gbit/s", l)
	}
}
