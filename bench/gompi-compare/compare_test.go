package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	status := run([]string{"-gompirun", gompirun, "-bench", "gompi-bench", "-rounds", "2", "-csv", csv, "-html", html, "bcast", "scan"}, &out, &progress)
	if status != 0 {
		t.Errorf("status %d: %s", status, progress.String())
	}
	for _, want := range []string{
		"# gompi, np=2\n",
		"2 rounds, in turn.",
		"-np 2 gompi-bench -format csv -sizes 8,1K,64K,4M,64M -type float32 -redop sum`",
		"| bcast |   2 |   8 B | 4.00 / 4.50 | missing |   missing |\n",
		"- openmpi-tcp: not installed (Debian: apt-get install openmpi-bin libopenmpi-dev)\n- mpich-tcp: not installed",
		"- gompi, scan, round 2: exit status 9: rank 1 died\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	raw, err := os.ReadFile(csv)
	want := report.SampleHeader + "\n1,gompi,bcast,2,8,4.000,3.000,9.000,7,4.500,0.0000,0.0000\n2,gompi,bcast,2,8,4.000,3.000,9.000,7,4.500,0.0000,0.0000\n"
	if err != nil || string(raw) != want {
		t.Errorf("raw rows, error %v:\n%swant\n%s", err, raw, want)
	}
	page, err := os.ReadFile(html)
	for _, want := range []string{"<h2>gompi-compare, 2 ranks, tcp</h2>", ">gompi: 4 us<", "mpich-tcp: not installed", "gompi, scan, round 2: exit status 9"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("error %v: no %q in\n%s", err, want, page)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"alreduce", `operation "alreduce": want one of latency,`},
		{"-peers mvapich", `peer "mvapich": want some of openmpi-tcp,`},
		{"-np 0", `-np "0": want a whole number, 1 or more`},
	} {
		if _, err := parse(strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
}
