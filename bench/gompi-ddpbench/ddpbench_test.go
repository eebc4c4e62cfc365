package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/shapes"
	"gompi/bench/report"
)

func TestParseRefuses(t *testing.T) {
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"resnet51", `model "resnet51": want some of resnet18, `},
		{"-peers horovod", `peer "horovod": want some of openmpi-tcp,`},
		{"-peers torch-gloo,torch-gloo", `peer "torch-gloo" is named twice`},
		{"-np 2,x", `-np "2,x": "x": want numbers of ranks`},
		{"-rounds 0", `-rounds "0": want a whole number, 1 or more`},
		{"-rows -1", `-rows -1`},
		{"-bucket 0", `a bucket of 1 or more`},
		{"-busy x", `-busy "x": want seconds`},
		{"-link 1gbit", `-link 1gbit: want -hostfile, too`},
		{"-hostfile " + hosts + " -np 3", `-np 3 on 2 hosts: want as many ranks on each`},
		{"-hostfile /nosuch", `-hostfile: open /nosuch`},
	} {
		if _, err := parse(strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestParseTellsWhatIsMeasuredAndBesideWhom(t *testing.T) {
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, mpi := range map[string]string{
		"resnet50 -np 2 mlp":                                     "openmpi",
		"-np 2 resnet50 -transport tcp mlp":                      "openmpi-tcp",
		"-hostfile " + hosts + " -np 2 resnet50 mlp":             "openmpi-hosts",
		"-peers torch-gompi,torch-gloo,mpich -np 2 resnet50 mlp": "mpich",
	} {
		cfg, err := parse(strings.Fields(args))
		if err != nil || len(cfg.profiles) != 1 || cfg.profiles[0].Name != "resnet50" || !slices.Equal(cfg.models, []string{"mlp"}) {
			t.Errorf("%s: profiles %v, models %v, error %v; want resnet50 and mlp", args, cfg.profiles, cfg.models, err)
		}
		if len(cfg.libraries) != 1 || cfg.libraries[0].Name != mpi || len(cfg.torch) < 2 {
			t.Errorf("%s: libraries %v, in PyTorch %v; want %s and torch-gompi, torch-gloo", args, cfg.libraries, cfg.torch, mpi)
		}
	}
}

func TestBucketsHoldAllParametersFromTheLastOn(t *testing.T) {
	if got, want := buckets([]int{5, 7, 300000, 6_553_000, 600, 1000, 262_000}), []int{262_000, 1600, 6_553_000, 300_012}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the first at most 1 MiB, others 25 MiB", got, want)
	}
	if got, want := buckets([]int{10, 20_000_000, 30}), []int{30, 20_000_000, 10}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: a larger parameter has a bucket of its own", got, want)
	}
	for _, m := range shapes.All() {
		sum := 0
		for i, n := range buckets(m.Lengths) {
			sum += n
			if limit := map[bool]int{true: firstBucket, false: nextBucket}[i == 0]; n > limit && !slices.Contains(m.Lengths, n) {
				t.Errorf("%s: bucket %d has %d numbers: want at most %d", m.Name, i, n, limit)
			}
		}
		if sum != m.Size() {
			t.Errorf("%s: buckets of %d numbers in all, want %d", m.Name, sum, m.Size())
		}
	}
}

func TestPeersReadTheProfilesThatGompiHas(t *testing.T) {
	dir := t.TempDir()
	recommender := shapes.All()[slices.Index(profileNames(), "recommender")]
	if err := writeProfiles(dir, []shapes.Model{recommender}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		tensorsIn(dir): "ddp-recommender 35380 2664376 332 1\n",
		bucketsIn(dir): "ddp-recommender 333 2699756\n",
	} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %q, error %v; want %q", file, got, err, want)
		}
	}
}

// printed are losses as programs print them, that of one step changed by a factor.
func printed(step int, factor float64) string {
	var b strings.Builder
	b.WriteString("a line that is none\n")
	for i := 1; i <= lossSteps; i++ {
		x := 2.5 / float64(i)
		if i == step {
			x *= factor
		}
		fmt.Fprintf(&b, "loss %d %.9g\n", i, x)
	}
	return b.String()
}

func TestLossesThatDifferAreRefusedWithBoth(t *testing.T) {
	mine, err := parseLosses(printed(0, 1))
	if err != nil || len(mine) != lossSteps || mine[1] != 1.25 {
		t.Fatalf("got %v, error %v", mine, err)
	}
	for _, tt := range []struct {
		factor float64
		want   string
	}{
		{1 + 0.9e-4, ""},
		{1 + 1.1e-4, "in step 20 its loss is 0.1250137"},
		{1 - 1.1e-4, "gompi's 0.125:"},
		{-1, "its loss is -0.125, gompi's 0.125"},
	} {
		theirs, err := parseLosses(printed(lossSteps, tt.factor))
		if err != nil {
			t.Fatal(err)
		}
		if err = agree(mine, theirs); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("times %v: %v, want %q", tt.factor, err, tt.want)
		}
	}
}

func TestLossesThatAreNoneAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "0 losses: want 20",
		strings.ReplaceAll(printed(0, 1), "loss 7", "lost 7"): `line "loss 8 0.3125": want loss 7 and its value`,
		strings.ReplaceAll(printed(0, 1), "1.25\n", "nan\n"):  `loss 2 is "nan": want a finite number`,
		printed(0, 1) + "loss 21 0\n":                         "21 losses: want 20",
	} {
		if _, err := parseLosses(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// launcher is a gompirun that starts nothing: it prints what the named program would. PyTorch is
// another program to it, whose losses are not gompi's.
func launcher(t *testing.T) (gompirun, python string) {
	t.Helper()
	dir := t.TempDir()
	gompirun, python = filepath.Join(dir, "gompirun"), filepath.Join(dir, "python")
	script := `#!/bin/sh
np=$2 me=gompi first=2.5 ms=8000
for op; do :; done
case "$*" in *torch-gompi*) me=torch-gompi ms=24000;; *torch-gloo*) me=torch-gloo first=2.6 ms=60000;; esac
case "$*" in
*-losses*) echo "loss 1 $first"; for i in $(seq 2 20); do echo "loss $i 2"; done; exit;;
esac
echo ` + report.Header + `
case $op in
ddp-*) echo x,$op,$np,4,$ms,1,1,5,0,0,0;;
*) for part in step forward backward exposed optimiser comm; do echo x,$op/$part,$np,4,$ms,1,1,5,0,0,0; ms=$((ms / 2)); done;;
esac
`
	snake := "#!/bin/sh\ncase \"$2\" in *__version__*) echo 1.13.1;; *maps*) echo libfast.so;; esac\n"
	for path, text := range map[string]string{gompirun: script, python: snake, filepath.Join(dir, "steps"): "#!/bin/sh\n"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return gompirun, python
}

func TestAComparisonSaysWhatIsLostAndRefused(t *testing.T) {
	gompirun, python := launcher(t)
	csv, html := filepath.Join(t.TempDir(), "raw.csv"), filepath.Join(t.TempDir(), "all.html")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", gompirun, "-bench", "gompi-bench", "-steps", filepath.Join(filepath.Dir(gompirun), "steps"), "-python", python,
		"-np", "1,2", "-rounds", "2", "-peers", "torch-gompi,torch-gloo", "-csv", csv, "-html", html, "resnet50", "mlp"}, &out, &progress)
	if status != 0 {
		t.Errorf("status %d: %s", status, progress.String())
	}
	for _, want := range []string{
		`- PyTorch 1.13.1 computes with libfast.so, one thread for each rank\n`,
		"- gompi: `" + gompirun + ` -np 2 gompi-bench -format csv -budget 100ms ddp-resnet50` + "`\n",
		` -np 2 -bind-to none ` + python + ` .*ddpsteps.py --backend gloo -impl torch-gloo -in .* -bucket 26214400 mlp`,
		`\| resnet50 \| +1 \| +161 \| 102.2 \| +8.00 \| +24.0 \| +- \| +60.0 \| +- \| `,
		`\| resnet50 \| +2 \| +161 \| 102.2 \| +8.00 \| +24.0 \| +3.00 \| +60.0 \| +7.50 \| .*8.0 missed\*\* \|`,
		`\| mlp +\| 2 +\| gompi +\| +8.00 \| +4.00 \| +2.00 \| +1.00 \| +0.50 \| +0.25 \| +\|`,
		`\| mlp +\| 2 +\| torch-gompi \| +24.0 \| +12.0 \| +6.00 \| +3.00 \| +1.50 \| +0.75 \| +3.00 \|`,
		`\| mlp +\| 2 +\| torch-gloo +\| missing \| .* missing \|`,
		`- torch-gloo, mlp, np=2: refused: in step 1 its loss is 2.6, gompi's 2.5: want them equal to 0.0001, relatively\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	if rows, err := os.ReadFile(csv); err != nil || strings.Count(string(rows), ",gompi,ddp-resnet50,2,") != 2 || strings.Contains(string(rows), "torch-gloo,mlp") {
		t.Errorf("error %v, rows:\n%s\nwant two rounds of gompi, and no step of torch-gloo", err, rows)
	}
	page, err := os.ReadFile(html)
	if err != nil || !strings.Contains(string(page), "a step of mlp, 2 ranks") || !strings.Contains(string(page), "averaging gradients, 2 ranks") {
		t.Errorf("error %v: want a page with both charts, got\n%.2000s", err, page)
	}
}

func TestWhatIsHiddenIsHeldAgainstTheBar(t *testing.T) {
	row := func(impl, op string, us float64) report.Sample {
		return report.Sample{Round: 1, State: report.AnyState, Row: report.Row{Impl: impl, Op: op, NP: 2, Median: us}}
	}
	cells := report.Cells([]report.Sample{
		row(ours, "deep/exposed", 299), row(ours, "deep/comm", 1000),
		row(torchGompi, "deep/exposed", 301), row(torchGompi, "deep/comm", 1000),
		row(torchGloo, "deep/exposed", 1500), row(torchGloo, "deep/comm", 1000),
	})
	for who, want := range map[string][]string{
		ours: {"70 %", "70 % met"}, torchGompi: {"70 %", "**70 % missed**"}, torchGloo: {"-50 %", "-"}, "mpich": {"-", "-"},
	} {
		if got := hiddenCells(cells, "deep", 2, who); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", who, got, want)
		}
	}
}

func TestBars(t *testing.T) {
	var shared, tcp, hosts, shaped config
	tcp.Transport = "tcp"
	hosts.HostNames, shaped.HostNames = []string{"a", "b"}, []string{"a", "b"}
	if err := shaped.Link.Set("1gbit"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cfg        config
		model      string
		np         int
		processors int
		want       float64
	}{
		{shared, "resnet50", 2, 2, 8}, {shared, "resnet50", 4, 2, 4}, {shared, "resnet50", 4, 8, 0}, {shared, "resnet50", 1, 2, 0},
		{shared, "resnet50", 2, 1, 0}, {shared, "recommender", 2, 2, 0}, {tcp, "resnet50", 2, 2, 0}, {hosts, "resnet50", 2, 2, 1.5}, {shaped, "resnet50", 2, 2, 0},
	} {
		if got := tt.cfg.bar(tt.model, tt.np, tt.processors); got != tt.want {
			t.Errorf("%s, %d ranks on %d processors, %d hosts: %v, want %v", tt.model, tt.np, tt.processors, len(tt.cfg.HostNames), got, tt.want)
		}
	}
	for want, got := range map[string]string{"-": barCell(0, 9, true), "missing": barCell(8, 0, false), "8.0 met": barCell(8, 8, true), "**8.0 missed**": barCell(8, 7.99, true)} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWithoutPeersGompiIsMeasuredAlone(t *testing.T) {
	gompirun, _ := launcher(t)
	t.Setenv("PATH", "/nowhere:/usr/bin:/bin")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", gompirun, "-bench", "gompi-bench", "-python", "/nowhere/python", "-np", "2", "-rounds", "1",
		"-peers", "openmpi-tcp", "recommender"}, &out, &progress)
	if status != 0 || !strings.Contains(out.String(), "| recommender |") {
		t.Errorf("status %d\n%s%s", status, out.String(), progress.String())
	}
}

// TestPeersAreCompared is a real comparison, as small as it can be.
func TestPeersAreCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("builds gompi's programs, compiles and starts MPI programs and PyTorch")
	}
	bin := t.TempDir()
	build := contest.Command{Args: []string{"sh", "-c", "go build -C ../.. -o " + bin + " ./mpirun/gompirun ./examples/steps && go build -o " + bin + " ../gompi-bench"}}
	if _, err := build.Run(t.Context(), 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	status := run([]string{"-gompirun", filepath.Join(bin, "gompirun"), "-bench", filepath.Join(bin, "gompi-bench"), "-steps", filepath.Join(bin, "steps"),
		"-peers", "torch-gloo,torch-unsent,openmpi", "-np", "2", "-rounds", "1", "-budget", "1ms", "recommender", "cnn"}, &out, &progress)
	if status != 0 || strings.Contains(out.String(), "did not come to their end") {
		t.Fatalf("status %d\n%s%s", status, out.String(), progress.String())
	}
	if strings.Contains(out.String(), "Not here") {
		t.Skipf("peers are missing:\n%s", out.String())
	}
	for _, want := range []string{`\| recommender \| +2 \| +4 \| 10.8 \| +[0-9.]+ \| +[0-9.]+ \|`, `\| cnn +\| 2 +\| torch-gloo +\| +[0-9.]+ \|`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestAnInterruptedComparisonReportsWhatItHas(t *testing.T) {
	r := results{cfg: config{Flags: contest.Flags{Plan: contest.Plan{Rounds: 1, NPs: []int{2}}}}}
	r.record.Misses = []contest.Miss{{Round: 1, NP: 2, Entrant: torchGloo, Op: "ddp-resnet50", Err: errors.New("exit status 9")}}
	r.cfg.profiles = shapes.All()[:1]
	r.comm = []contest.Entrant{contest.Gompi("gompirun", "gompi-bench")}
	var out strings.Builder
	if err := r.write(&out); err != nil || !strings.Contains(out.String(), "torch-gloo, ddp-resnet50, np=2, round 1: exit status 9") || !strings.Contains(out.String(), "missing") {
		t.Errorf("error %v, report\n%s", err, out.String())
	}
}
