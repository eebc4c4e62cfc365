package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/internal/machine"
	"gompi/internal/stress"
)

func TestReadingIsChosenWhereItWins(t *testing.T) {
	for _, test := range []struct {
		ratios      []float64 // of the times of reading and of the ring
		from, below int64
	}{
		{[]float64{3, 3, 3, 3, 4, 4}, machine.Never, 0},
		{[]float64{1, 0.96, 1, 0.9, 1, 1}, machine.Never, 0}, // no more than noise
		{[]float64{0.9, 0.5, 0.6, 0.6, 1.1, 1.4}, 1, 4 << 20},
		{[]float64{1.2, 0.9, 1.2, 0.8, 0.7, 1}, 1 << 20, 16 << 20},
		{[]float64{2, 1, 1, 1, 0.9, 0.5}, 4 << 20, 0},
	} {
		ring := []float64{1, 1, 1, 1, 1, 1}
		if from, below := chooseReads(ring, test.ratios); from != test.from || below != test.below {
			t.Errorf("%v: from %d below %d, want %d and %d", test.ratios, from, below, test.from, test.below)
		}
	}
}

// A shape has to win in every round, and stores whatever the shape.
func TestAShapeIsChosenWhereItWins(t *testing.T) {
	ways := ringShapes()
	row := func(ratios ...float64) (r rounds) {
		for i := range r {
			r[i] = []float64{ratios[i] * 8, ratios[i] * 32}
		}
		return r
	}
	times := make([]rounds, len(ways))
	for k := range times {
		times[k] = row(1, 1, 1)
	}
	check := func(what string, chunk, bytes, nonTemporal, str int64) {
		t.Helper()
		s := chooseShape(ways, times).settings
		if s[machine.RingChunk] != chunk || s[machine.RingBytes] != bytes || s[machine.NonTemporal] != nonTemporal ||
			s[machine.String] != str {
			t.Errorf("%s: %v", what, s)
		}
	}
	check("all are alike", 32<<10, 2<<20, 8<<10, machine.Never)
	times[1] = row(0.5, 0.5, 0.96)
	check("one wins in two rounds", 32<<10, 2<<20, 8<<10, machine.Never)
	times[2], times[3] = row(0.9, 0.9, 0.9), row(0.8, 0.92, 0.7)
	check("one wins in all", ways[2].settings[machine.RingChunk], ways[2].settings[machine.RingBytes], 8<<10,
		machine.Never)
	times[len(ways)-2] = row(0.9, 0.9, 0.9)
	check("plain stores win too", ways[2].settings[machine.RingChunk], ways[2].settings[machine.RingBytes],
		machine.Never, machine.Never)
	times[len(ways)-1] = row(0.8, 0.7, 0.8)
	check("string copies win more", ways[2].settings[machine.RingChunk], ways[2].settings[machine.RingBytes],
		machine.Never, 2<<10)
}

func TestProfileIsMeasuredAndKept(t *testing.T) {
	stress.Long(t, "it builds programs and starts jobs")
	dir, cache := built(t), t.TempDir()
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, name), args...)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "GOMPI_PROFILE=", "GOMPI_LOG=", "GOMPI_TUNE=",
			"GOMPI_EAGER=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("gompi-bench", "profile")
	if err != nil || !strings.Contains(out, "plain stores") || !strings.Contains(out, "shm.read=") ||
		!strings.Contains(out, "shm.ring.chunk=") || !strings.Contains(out, cache) {
		t.Fatalf("%v\n%s", err, out)
	}
	kept, err := filepath.Glob(cache + "/gompi/profile/*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %q, %v", kept, err)
	}
	if out, err = run("gompirun", "-np", "2", filepath.Join(dir, "gompi-bench"), "run", "-sizes", "8",
		"latency"); err != nil || strings.Contains(out, "ignored") {
		t.Errorf("a job with what was kept: %v\n%s", err, out)
	}
	if err := os.WriteFile(kept[0], []byte("shm.read=many\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err = run("gompirun", "-np", "2", filepath.Join(dir, "gompi-bench"), "run", "-sizes", "8",
		"latency"); err != nil || strings.Count(out, "a profile of this machine is ignored") != 1 ||
		!strings.Contains(out, "many") {
		t.Errorf("a job with a profile that is wrong: %v, want one line that quotes it\n%s", err, out)
	}
	if out, err = run("gompirun", "-np", "1", filepath.Join(dir, "gompi-bench"), "profile"); err == nil ||
		!strings.Contains(out, "without gompirun") {
		t.Errorf("as a rank: %v\n%s", err, out)
	}
}

// built builds gompi's programs, once for all tests.
func built(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		if buildDir, buildErr = os.MkdirTemp("", "gompi-bench-test"); buildErr != nil {
			return
		}
		for module, pkgs := range map[string][]string{"../..": {"./mpirun/gompirun", "./examples/steps"}, ".": {"."}} {
			out, err := exec.Command("go", slices.Concat([]string{"build", "-C", module, "-o", buildDir},
				pkgs)...).CombinedOutput()
			if err != nil {
				buildErr = fmt.Errorf("go build %v: %w\n%s", pkgs, err, out)
			}
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return buildDir
}

var (
	buildOnce sync.Once
	buildDir  string
	buildErr  error
)

func TestAProfileThatCannotBeKeptIsNotMeasured(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/dev/null/cache")
	var out strings.Builder
	if err := profile(&out); err == nil || err.Error() != "mkdir /dev/null: not a directory" || out.Len() > 0 {
		t.Errorf("%v, and %q; want that its folder cannot be made, and nothing measured", err, &out)
	}
}
