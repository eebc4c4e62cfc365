package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/bench/internal/result"
)

// fake returns an entrant whose launcher is a shell script. The script sees the
// number of ranks as $1, and the operation as the last of its arguments.
func fake(name, script string) Entrant {
	return Entrant{Name: name, Start: func(np int, args ...string) Job {
		return Job{{Args: slices.Concat([]string{"sh", "-c", script, name, strconv.Itoa(np)}, args)}}
	}}
}

const lines = `for op; do :; done
echo ` + result.Header + `
echo x,$op,$1,8,1,1,1,5,1,0,0
`

// still is the Probe of a machine that stays as it is.
func still() Probe { return Probe{Nanoseconds: 50} }

func TestRoundsAreInterleavedAndKept(t *testing.T) {
	csv := filepath.Join(t.TempDir(), "raw.csv")
	c := Contest{Rounds: 2, NPs: []int{3, 4}, Limit: time.Minute, Probe: still}
	if err := c.Begin(io.Discard, csv); err != nil {
		t.Fatal(err)
	}
	b := fake("b", lines)
	b.Lacks = []string{"scan"}
	if err := errors.Join(c.Run(t.Context(), []Entrant{fake("a", lines), b}, []string{"bcast", "scan"}, "-flag"),
		c.End()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, round := range []string{"1", "2"} {
		for _, np := range []string{"3", "4"} {
			for _, r := range []string{"a,bcast", "b,bcast", "a,scan"} {
				want = append(want, round+",near,"+r+","+np+",8,1.000,1.000,1.000,5,1.000,0.0000,0.0000\n")
			}
		}
	}
	text, err := os.ReadFile(csv)
	_, got, ok := strings.Cut(string(text), result.SampleHeader+"\n")
	if err != nil || !ok || got != strings.Join(want, "") || !strings.HasPrefix(string(text), "# ") ||
		len(c.Samples) != len(want) {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, text, strings.Join(want, ""))
	}
}

func TestSamplesCarryTheStateBetweenTwoProbes(t *testing.T) {
	probes := []float64{50, 60, 50, 245, 245, 9e5}
	next := 0
	c := Contest{Rounds: 3, NPs: []int{2}, Limit: time.Minute, progress: io.Discard, Probe: func() Probe {
		next++
		return Probe{Nanoseconds: probes[next-1]}
	}}
	err := c.Run(t.Context(), []Entrant{fake("a", lines)}, []string{"bcast"})
	if err != nil || len(c.Samples) != 3 || c.Samples[0].State != Near || c.Samples[1].State != Moved ||
		c.Samples[2].State != Moved {
		t.Errorf("got %+v, error %v; want near, moved, moved", c.Samples, err)
	}
	if w := c.warning(); !strings.Contains(w, "1 of 6 probes") {
		t.Errorf("warning %q: want the one that was disturbed", w)
	}
	for ns, want := range map[float64]string{50: Near, 245: Far, 9e5: Busy} {
		if got := Between(Probe{Nanoseconds: ns}, Probe{Nanoseconds: ns}); got != want {
			t.Errorf("between two probes of %v ns: %s, want %s", ns, got, want)
		}
	}
	if got := (Probe{Err: errors.New("one processor")}).State(); got != Unknown {
		t.Errorf("without probes: %s, want %s", got, Unknown)
	}
	if took, ok := bounce(time.Now().Add(-time.Second)); ok {
		t.Errorf("a probe after its deadline took %v, want none", took)
	}
}

func TestAnEntrantThatFailsIsAMissAndKeepsItsRows(t *testing.T) {
	entrants := []Entrant{fake("dies", lines+"echo the reason >&2; exit 1\n"), fake("babbles", "echo hello\n"),
		fake("works", lines)}
	c := Contest{Rounds: 1, NPs: []int{2}, Limit: time.Minute, progress: io.Discard}
	if err := c.Run(t.Context(), entrants, []string{"bcast"}); err != nil {
		t.Fatal(err)
	}
	c.Limit = 5 * time.Second // of the one that needs it
	if err := c.Run(t.Context(), []Entrant{fake("hangs", lines+"exec sleep 1000\n")}, []string{"bcast"}); err != nil {
		t.Fatal(err)
	}
	var impls []string
	for _, s := range c.Samples {
		impls = append(impls, s.Impl)
	}
	if want := []string{"dies", "works", "hangs"}; !slices.Equal(impls, want) {
		t.Errorf("rows of %v, want %v", impls, want)
	}
	want := []string{
		"dies, bcast, np=2, round 1: exit status 1: the reason",
		`babbles, bcast, np=2, round 1: no rows, but "hello\n": want the header ` + result.Header,
		"hangs, bcast, np=2, round 1: time limit of 5s",
	}
	if !slices.Equal(c.misses, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(c.misses, "\n"), strings.Join(want, "\n"))
	}
	if r := c.Report("title", "a fact", ""); len(r.Misses) != 3 || len(r.Conditions) != 3 ||
		r.Conditions[1] != "a fact" {
		t.Errorf("report %+v: want three misses, and the machine, a fact, the rounds", r)
	}
}

func TestAnInterruptEndsTheRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := Contest{Rounds: 100, NPs: []int{2}, Limit: time.Minute, progress: io.Discard,
		Probe: func() Probe { cancel(); return still() }}
	if err := c.Run(ctx, []Entrant{fake("a", lines)}, []string{"bcast"}); err == nil || len(c.Samples) != 0 ||
		len(c.misses) != 0 {
		t.Errorf("%d samples, %v, error %v; want an end", len(c.Samples), c.misses, err)
	}
}

func TestAJobIsAllItsCommands(t *testing.T) {
	start := time.Now()
	out, err := Job{shell("echo one"), shell("echo two")}.Run(t.Context(), time.Minute)
	if err != nil || len(out.Stdout) != 8 || out.First <= 0 || out.First > out.Took || out.Took > time.Since(start) {
		t.Errorf("got %+v, %v; want both lines", out, err)
	}
	_, err = Job{shell("exec sleep 1000"), shell("echo the reason >&2; exit 3")}.Run(t.Context(), time.Minute)
	if err == nil || err.Error() != "exit status 3: the reason" || time.Since(start) > 30*time.Second {
		t.Errorf("one that fails: %v after %v, want the reason at once", err, time.Since(start))
	}
	if _, err := (Job{shell("exec sleep 1000")}).Run(t.Context(), 10*time.Millisecond); !errors.Is(err, ErrTimeLimit) {
		t.Errorf("got %v, want the time limit", err)
	}
}

func TestLinesAreReportedAsTheyCome(t *testing.T) {
	var got []string
	c := shell("printf 'a\\nb'; printf 'c\\n\\nd'")
	c.Line = func(s string) { got = append(got, s) }
	if out, err := c.Run(t.Context(), time.Minute); err != nil || strings.Join(got, "|") != "a|bc|" ||
		string(out.Stdout) != "a\nbc\n\nd" {
		t.Errorf("lines %q of %q, %v", got, out.Stdout, err)
	}
}

func TestTimeLeft(t *testing.T) {
	if got := left(10*time.Second, 4, 10); got != 15*time.Second {
		t.Errorf("10 s for 4 of 10 leave %v, want 15 s", got)
	}
	if got := left(7*time.Second, 10, 10); got != 0 {
		t.Errorf("all done leaves %v", got)
	}
}
