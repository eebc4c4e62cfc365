package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/bench/internal/contest"
	"gompi/internal/env"
)

func TestNumbers(t *testing.T) {
	if got, err := numbers("1,4,16"); err != nil || !slices.Equal(got, []int{1, 4, 16}) {
		t.Errorf("got %v, %v; want 1, 4 and 16", got, err)
	}
	for _, list := range []string{"", "1,", "0", "4,-1", "1;2"} {
		if got, err := numbers(list); err == nil {
			t.Errorf("%q is read as %v", list, got)
		}
	}
}

func TestParseRefusesWhatIsNoFlag(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"hello", `argument "hello": want flags only`},
		{"-peers openmpi,mvapich", `peer "mvapich": want some of`},
		{"-rounds 0", `-rounds "0": want a whole number, 1 or more`},
	} {
		if _, err := parse(strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestPeaksIsTheLargestRank(t *testing.T) {
	for printed, want := range map[string]int{
		"": 0, "hello from rank 0": 0, "rank 0 of 1: peak_kb=5100\n": 5100,
		"rank 0 of 2: peak_kb=5100\nrank 1 of 2: peak_kb=17000\n": 17000, "peak_kb=x": 0,
	} {
		if got := peaks(printed); got != want {
			t.Errorf("peaks(%q) = %d, want %d", printed, got, want)
		}
	}
	if got := highWater("VmPeak:\t 9 kB\nVmHWM:\t    5244 kB\nVmRSS:\t 8 kB\n"); got != 5244 {
		t.Errorf("got %d, want 5244", got)
	}
	if got := highWater("VmPeak:\t 9 kB\n"); got != 0 {
		t.Errorf("without the line: got %d, want 0", got)
	}
}

func TestARankTellsItsPeak(t *testing.T) {
	t.Setenv(env.Boot, "alone")
	var out, errs strings.Builder
	if status := rank(&out, &errs); status != 0 || peaks(out.String()) < 1000 {
		t.Errorf("status %d, %q, %q; want a peak of some megabytes", status, out.String(), errs.String())
	}
}

func TestReportCountsFailuresAndMarksLosses(t *testing.T) {
	r := newResults(config{gompirun: "gompirun", hello: "hello", nps: []int{1, 4}, rounds: 3})
	peer := contest.Gompi("mpirun", "mpihello")
	peer.Name = "mpich"
	r.entrants = append(r.entrants, peer)
	hung := errors.New("time limit of 30s")
	add := func(entrant string, np int, millis int, err error) {
		r.jobs = append(r.jobs, job{key{entrant, np}, 1, time.Duration(millis) * time.Millisecond, err})
	}
	for _, millis := range []int{10, 12, 500} {
		add("gompi", 1, millis, nil)
		add("mpich", 1, millis-6, nil)
	}
	add("gompi", 4, 10, nil)
	add("mpich", 4, 100, nil)
	add("mpich", 4, 30000, hung)
	r.peak[key{"gompi", 1}], r.peak[key{"mpich", 1}] = 5000, 15000
	var b strings.Builder
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"|  1 |    12 |                  6 | **0.50 lost** |\n",
		"|  4 |    10 | 100 (1 of 2 failed) |         10.00 |\n",
		"|  1 |     5.1 |    15.4 |    3.00 |\n",
		"|  4 | missing | missing | missing |\n",
	} {
		if !strings.Contains(squeeze(b.String()), squeeze(want)) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	if raw := r.raw(); !strings.Contains(raw, "1,mpich,4,30000.000,badly\n") || strings.Count(raw, "\n") != 1+len(r.jobs) {
		t.Errorf("raw times:\n%swant one line for each of %d jobs", raw, len(r.jobs))
	}
}

// squeeze makes runs of blanks one blank.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestARunWithoutPeersIsNoError(t *testing.T) {
	dir := t.TempDir()
	gompirun := filepath.Join(dir, "gompirun")
	script := "#!/bin/sh\n" + `[ "$4" = rank ] && echo peak_kb=4000 || echo hello` + "\n"
	if err := os.WriteFile(gompirun, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	csv := filepath.Join(dir, "raw.csv")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", gompirun, "-hello", "hello", "-np", "2", "-rounds", "2", "-peers", "mpich", "-csv", csv}, &out, &progress)
	if status != 0 || !strings.Contains(out.String(), "Not here: mpich: not installed") {
		t.Errorf("status %d\n%s%s", status, out.String(), progress.String())
	}
	if !strings.Contains(out.String(), "4.1") {
		t.Errorf("no memory in\n%s", out.String())
	}
	raw, err := os.ReadFile(csv)
	if err != nil || strings.Count(string(raw), ",gompi,2,") != 2 {
		t.Errorf("raw times %q, error %v; want two rounds", raw, err)
	}
}
