package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/hello"
	"gompi/bench/report"
)

// launcher makes a script that stands for gompirun: it prints a row of the
// operation, and what GOMPI_TRANSPORT says as the number of iterations.
func launcher(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gompirun")
	script := `#!/bin/sh
for op; do :; done
echo ` + report.Header + `
iters=1; [ "$GOMPI_TRANSPORT" = tcp ] && iters=7
[ $op = scan ] && { echo "rank 1 died" >&2; exit 9; }
echo gompi,$op,2,8,4,3,9,$iters,4.5,0,0
`
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAComparisonSaysWhatIsMissing(t *testing.T) {
	gompirun := launcher(t)
	t.Setenv("PATH", "/nowhere")
	csv, html := filepath.Join(t.TempDir(), "raw.csv"), filepath.Join(t.TempDir(), "all.html")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", gompirun, "-bench", "gompi-bench", "-rounds", "2", "-np", "2", "-transport", "tcp", "-peers", "openmpi-tcp,mpich-tcp",
		"-busy", "1", "-csv", csv, "-html", html, "bcast", "scan"}, &out, &progress)
	if status != 0 {
		t.Errorf("status %d: %s", status, progress.String())
	}
	for _, want := range []string{
		"# gompi\n",
		"- threads that compute meanwhile: 1\n",
		"- rounds, in turn: 2; ",
		"-np 2 gompi-bench -format csv -sizes 8,1K,16K,64K,1M,4M,16M,64M -type float32 -redop sum -budget 20ms`",
		" | 4.00 / 4.50 | missing |   missing |\n", // once or twice: the machine may change its state between the rounds
		"- openmpi-tcp: not installed (Debian: apt-get install openmpi-bin libopenmpi-dev)\n- mpich-tcp: not installed",
		"- gompi, scan, np=2, round 2: exit status 9: rank 1 died\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	raw, err := os.ReadFile(csv)
	want := regexp.MustCompile("^# .+ processors, .+\n" + report.SampleHeader + "\n1,[a-z]+,gompi,bcast,2,8,4.000,3.000,9.000,7,4.500,0.0000,0.0000\n2,[a-z]+,gompi,bcast,2,8,4.000,3.000,9.000,7,4.500,0.0000,0.0000\n$")
	if err != nil || !want.Match(raw) {
		t.Errorf("raw rows, error %v:\n%swant\n%s", err, raw, want)
	}
	page, err := os.ReadFile(html)
	for _, want := range []string{"<h2>gompi-compare, 2 ranks, tcp, threads that compute meanwhile: 1</h2>", ">gompi: 4 us<", "mpich-tcp: not installed", "gompi, scan, np=2, round 2: exit status 9"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("error %v: no %q in\n%s", err, want, page)
		}
	}
}

// On other hosts, whose logins and launcher are scripts here, results are held against the links'.
func TestHostsAreComparedWithTheirLinks(t *testing.T) {
	dir := t.TempDir()
	scripts := map[string]string{
		"ssh":      "PATH=" + dir + ":/bin:/usr/bin SSH_CONNECTION='10.9.0.254 5000 10.9.0.1 22' exec sh -c \"$2\"\n",
		"ip":       "echo '2: eth7    inet 10.9.0.1/24'\n",
		"gompirun": "echo " + report.Header + "\necho gompi,bcast,4,8388608,134217.728,3,9,5,4.5,0,0\n",
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", filepath.Join(dir, "gompirun"), "-bench", "gompi-bench", "-rounds", "1", "-np", "4", "-peers", "openmpi-hosts",
		"-hostfile", hosts, "-rsh", filepath.Join(dir, "ssh"), "-link", "1gbit", "-sizes", "8M", "bcast"}, &out, &progress)
	if status != 0 {
		t.Errorf("status %d: %s", status, progress.String())
	}
	for _, want := range []string{
		"- 2 other hosts, by " + dir + "/ssh; the link of each carries 1gbit each way\n",
		"/hosts.4.slots -rsh " + dir + "/ssh gompi-bench -format csv -sizes 8M ",
		"| bcast |   4 | 8 MiB | any x1 |", " 50 % |\n", // 67109 us alone
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The threads use the processor, and rest gives back what they were given.
func TestThreadsCompute(t *testing.T) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano())
	}
	const enough = 300 * time.Millisecond
	before, processors, begun := used(), runtime.GOMAXPROCS(0), time.Now()
	rest := compute(3)
	for used()-before < enough && time.Since(begun) < time.Minute {
		time.Sleep(50 * time.Millisecond) // a thousand turns use a tenth of that
	}
	rest()
	if got := used() - before; got < enough || runtime.GOMAXPROCS(0) != processors {
		t.Errorf("they used %v in %v, and left %d processors of %d", got, time.Since(begun), runtime.GOMAXPROCS(0), processors)
	}
}

func TestParseRefuses(t *testing.T) {
	twoHosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(twoHosts, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"alreduce", `operation "alreduce": want one of latency,`},
		{"-peers mvapich", `peer "mvapich": want some of openmpi-tcp,`},
		{"-busy -1", "want a whole number, 1 or more"},
		{"-np 2 -peers ucx -transport tcp", "peer ucx: want -np 2, -transport ucx:NAMES"},
		{"-np 2 -link 1gbit", "-link 1gbit: want -hostfile, too"},
		{"-np 2 -rsh=", `-rsh "": want a command`},
		{"-np 2 -peers gloo,mpich,gloo", `peer "gloo" is named twice`},
		{"-link 1mb", `want a rate as 1gbit or 100mbit, not "1mb"`},
		{"-link 1gbit,x", `"x"`},
		{"-hostfile /nowhere/hosts", "-hostfile: open /nowhere/hosts"},
		{"-np 3 -hostfile " + twoHosts, "-np 3 on 2 hosts: want as many ranks on each"},
		{"-np 2 -peers gloo -hostfile " + twoHosts, "peers gloo and ucx: want no -hostfile"},
		{"-np 2,0", `-np "2,0": "0": want numbers of ranks, 1 or more`},
	} {
		if _, err := parse(strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
}

// TestMain lets the test binary be the rank whose memory is measured, as the
// command is.
func TestMain(m *testing.M) {
	hello.ExitIfRank()
	os.Exit(m.Run())
}

// TestPeersAreCompared is a real comparison, as small as it can be.
func TestPeersAreCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("builds gompi's programs, compiles and starts MPI programs")
	}
	bin := t.TempDir()
	build := contest.Command{Args: []string{"sh", "-c", "go build -C ../.. -o " + bin + " ./mpirun/gompirun && go build -o " + bin + " ../gompi-bench"}}
	if _, err := build.Run(t.Context(), 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	html := filepath.Join(bin, "all.html")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", filepath.Join(bin, "gompirun"), "-bench", filepath.Join(bin, "gompi-bench"), "-html", html,
		"-np", "2", "-rounds", "1", "-budget", "1ms", "-sizes", "8,64K", "skew", "bcast", "allreduce"}, &out, &progress)
	if status != 0 || strings.Contains(out.String(), "did not come to their end") {
		t.Fatalf("status %d\n%s%s", status, out.String(), progress.String())
	}
	if !strings.Contains(out.String(), "| openmpi |") && !strings.Contains(out.String(), "| mpich |") {
		t.Skipf("no peer here:\n%s", out.String())
	}
	report := out.String()
	for _, want := range []string{
		`\| bcast +\| +2 \| +64 KiB \|`, `\| allreduce +\| +2 \| +8 B \|`, `\| all +\| +2 \| +4 \|`,
		`[0-9]+ of 4 bars are met`, `How far apart ranks leave the barrier`, `Peak resident memory`, `- openmpi-xhc: `,
	} {
		if !regexp.MustCompile(want).MatchString(report) {
			t.Errorf("no %s in\n%s", want, report)
		}
	}
	page, err := os.ReadFile(html)
	if err != nil || !strings.Contains(string(page), "allreduce, 2 ranks") || strings.Contains(strings.ReplaceAll(string(page), "http://www.w3.org/", ""), "http") {
		t.Errorf("error %v: want a page with the plots that refers to nothing outside, got\n%.2000s", err, page)
	}
}

// TestUCXIsCompared is the same beside UCX itself, over which gompi goes, too.
func TestUCXIsCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("builds gompi's programs, and a program in C")
	}
	shop, err := contest.NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	if _, err := shop.UCX(t.Context(), "tcp"); err != nil {
		t.Skip(err)
	}
	bin := t.TempDir()
	args := []string{"-gompirun", filepath.Join(bin, "gompirun"), "-bench", filepath.Join(bin, "gompi-bench"),
		"-transport", "ucx:tcp", "-peers", "ucx",
		"-np", "2", "-rounds", "1", "-budget", "1ms", "-sizes", "8,1M", "-alloc", "latency", "bw"}
	for _, tt := range []struct {
		cgo    string
		status int
		want   []string
	}{
		{"0", 1, []string{"gompi-bench was built without C"}},
		{"1", 0, []string{
			`# gompi, ucx\n`, `UCX_TLS=tcp .*ucxbench.ucx -np 2 `,
			`GOMPI_TRANSPORT=ucx:tcp .*gompirun -np 2 -H 127.0.0.1,127.0.0.2 .*gompi-bench -alloc `,
			`\| latency +\| +2 \| +8 B \|`, `\| bw +\| +2 \| +1 MiB \|`, `\| all +\| +2 \| +4 \|`,
		}},
	} {
		build := contest.Command{
			Args: []string{"sh", "-c", "go build -C ../.. -o " + bin + " ./mpirun/gompirun && go build -o " + bin + " ../gompi-bench"},
			Env:  []string{"CGO_ENABLED=" + tt.cgo},
		}
		if _, err := build.Run(t.Context(), 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		var out, progress strings.Builder
		status := run(args, &out, &progress)
		said := out.String() + progress.String()
		if status != tt.status || strings.Contains(said, "did not come to their end") {
			t.Fatalf("CGO_ENABLED=%s: status %d, want %d\n%s", tt.cgo, status, tt.status, said)
		}
		for _, want := range tt.want {
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("CGO_ENABLED=%s: no %s in\n%s", tt.cgo, want, said)
			}
		}
	}
}

func TestBars(t *testing.T) {
	row := func(median, b2b float64) report.Row { return report.Row{Median: median, B2B: b2b} }
	for _, tt := range []struct {
		op        string
		np, bytes int
		state     string
		want      string // for a ratio of 1.5, and 1.2 back to back, against mpich; half of that against openmpi
	}{
		{"latency", 2, 8, contest.Near, "1.0 met"},
		{"bw", 2, 8, contest.Near, "-"},
		{"barrier", 2, 0, contest.Far, "**1.8 missed**"},
		{"bcast", 2, 8, contest.Near, "**1.3 missed**"}, // back to back
		{"bcast", 2, 8, contest.Far, "1.0 met"},
		{"scan", 2, 8, contest.Near, "-"},
		{"bw", 2, 4096, contest.Near, "1.0 met"},
		{"gather_ip", 2, 1024, contest.Near, "**1.3 missed**"},
		{"gather", 2, 4096, contest.Near, "1.3 met"}, // from here on back to back does not count
		{"allreduce", 2, 64 << 10, contest.Near, "**3.0 missed**"},
		{"allreduce", 2, 256 << 10, contest.Near, "-"},
		{"allreduce_dirty", 2, 4 << 20, contest.Near, "**2.5 missed**"},
		{"allreduce", 2, 16 << 20, contest.Near, "**3.0 missed**"},
		{"allreduce", 2, 64 << 20, contest.Near, "**4.0 missed**"},
		{"bw", 2, 1 << 20, contest.Near, "**2.0 missed**"},
		{"alltoall", 2, 1 << 20, contest.Near, "**1.7 missed**"},
		{"scan", 2, 1 << 20, contest.Near, "-"},
		{"scan", 4, 4096, contest.Near, "1.0 met"}, // more ranks than processors: against Open MPI
		{"scan", 4, 8, contest.Near, "1.0 met"},
		{"scan", 4, 1 << 20, contest.Near, "1.7 met"},
	} {
		rows := map[string]report.Row{"gompi": row(2, 2), "mpich": row(3, 2.4), "openmpi": row(6, 4.8), report.Limit: row(0.5, 0)}
		c := report.Cell{Op: tt.op, NP: tt.np, Bytes: tt.bytes, State: tt.state, Rows: rows}
		if got := barOf(c, 2, false).in(c, "gompi"); got != tt.want {
			t.Errorf("%s of %d bytes, %d ranks, %s: %s, want %s", tt.op, tt.bytes, tt.np, tt.state, got, tt.want)
		}
		if got := ofLimit(c, "gompi"); got != "25 %" {
			t.Errorf("limit of 0.5 us for 2 us: %s, want 25 %%", got)
		}
	}
	heap := report.Cell{Op: "allreduce", NP: 2, Bytes: 1 << 20, Rows: map[string]report.Row{"gompi": row(2, 2), "mpich": row(9, 9)}}
	if got := barOf(heap, 2, true).in(heap, "gompi"); got != "**5.0 missed**" {
		t.Errorf("allreduce on memory from Alloc, 4.5 times as fast: %s, want **5.0 missed**", got)
	}
	alone := report.Cell{Op: "bcast", NP: 2, Bytes: 8, Rows: map[string]report.Row{"gompi": row(1, 1)}}
	if got := barOf(alone, 2, false).in(alone, "gompi"); got != "-" || ofLimit(alone, "gompi") != "-" {
		t.Errorf("without peers and limit: %s and %s, want -", got, ofLimit(alone, "gompi"))
	}
}

func TestMemoryIsLostToOpenMPIAlone(t *testing.T) {
	var b strings.Builder
	if err := memoryTable(&b, []footprint{{"gompi", 2, 5}, {"openmpi", 2, 11}, {"mpich", 2, 4}, {"gompi", 4, 15}, {"openmpi", 4, 14.5}, {"mpich", 4, 0}}); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"| np  |         gompi | openmpi |   mpich |\n" +
		"|-----|--------------:|--------:|--------:|\n" +
		"| 2   |           5.0 |    11.0 |     4.0 |\n" +
		"| 4   | **15.0 lost** |    14.5 | missing |\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestStatesAreSummedUp(t *testing.T) {
	probes := []contest.Probe{{Nanoseconds: 50}, {Nanoseconds: 245}, {Nanoseconds: 30}}
	if got, want := states(probes), "near in 2 of 3 probes (30 to 50 ns), far in 1 of 3 probes (245 to 245 ns)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
