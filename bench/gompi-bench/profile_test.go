package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadingIsChosenWhereItWins(t *testing.T) {
	row := func(ratios ...float64) (all []timing) { // of the times of reading and of the ring
		for i, r := range ratios {
			all = append(all, timing{profileSizes[i], 10, 10 * r})
		}
		return all
	}
	for _, test := range []struct {
		timings []timing
		want    string
	}{
		{row(3, 3, 3, 3, 4, 4), "shm.read=never"},
		{row(1, 0.96, 1, 0.9, 1, 1), "shm.read=never"}, // no more than noise
		{row(0.9, 0.5, 0.6, 0.6, 1.1, 1.4), "shm.read=1;shm.read.below=4m"},
		{row(1.2, 0.9, 1.2, 0.8, 0.7, 1), "shm.read=1m;shm.read.below=16m"},
		{row(2, 1, 1, 1, 0.9, 0.5), "shm.read=4m"},
	} {
		if got := choose(test.timings).String(); got != test.want {
			t.Errorf("%v: got %s, want %s", test.timings, got, test.want)
		}
	}
}

func TestProfileIsMeasuredAndKept(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs and starts jobs")
	}
	dir, cache := t.TempDir(), t.TempDir()
	for _, pkg := range []string{"gompi/mpirun/gompirun", "gompi/bench/gompi-bench"} {
		if out, err := exec.Command("go", "build", "-o", dir, pkg).CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", pkg, err, out)
		}
	}
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, name), args...)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "GOMPI_PROFILE=", "GOMPI_LOG=", "GOMPI_TUNE=", "GOMPI_EAGER=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("gompi-bench", "-profile")
	if err != nil || !strings.Contains(out, "128K") || !strings.Contains(out, "shm.read=") || !strings.Contains(out, cache) {
		t.Fatalf("%v\n%s", err, out)
	}
	kept, err := filepath.Glob(cache + "/gompi/profile/*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %q, %v", kept, err)
	}
	if out, err = run("gompirun", "-np", "2", filepath.Join(dir, "gompi-bench"), "-sizes", "8", "latency"); err != nil || strings.Contains(out, "ignored") {
		t.Errorf("a job with what was kept: %v\n%s", err, out)
	}
	if err := os.WriteFile(kept[0], []byte("shm.read=many\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err = run("gompirun", "-np", "2", filepath.Join(dir, "gompi-bench"), "-sizes", "8", "latency"); err != nil || strings.Count(out, "a profile of this machine is ignored") != 1 || !strings.Contains(out, "many") {
		t.Errorf("a job with a profile that is wrong: %v, want one line that quotes it\n%s", err, out)
	}
	if out, err = run("gompirun", "-np", "1", filepath.Join(dir, "gompi-bench"), "-profile"); err == nil || !strings.Contains(out, "without gompirun") {
		t.Errorf("as a rank: %v\n%s", err, out)
	}
}
