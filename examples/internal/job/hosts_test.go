//go:build linux

package job_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// The programs as processes, on one host and on two that are this one: all follow one curve.
func TestProgramsRunOnOneHostAndOnTwo(t *testing.T) {
	stress.Long(t, "builds and starts programs")
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "gompi/mpirun/gompirun", "gompi/examples/toy",
		"gompi/examples/cnn",
		"gompi/examples/movielens").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	rsh := filepath.Join(bin, "rsh")
	if err := os.WriteFile(rsh, []byte("#!/bin/sh\nshift\nexec sh -c \"$*\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "gompirun"),
			append([]string{"-oversubscribe", "-timeout", "100s"}, args...)...)
		cmd.Dir = bin
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("gompirun %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, line := range []string{
		"./toy -batch 64 -batch-per all 2",
		"./cnn -samples 50 -batch 20 -batch-per all -epochs 1",
		"./movielens -ratings 1500 -width 8 -batch 64 -batch-per all -epochs 2",
	} {
		program := strings.Fields(line)
		one := run(append([]string{"-np", "2"}, program...)...)
		two := run(append([]string{"-rsh", rsh, "-H", "127.0.0.2:2,127.0.0.3:2"}, program...)...)
		if !strings.Contains(one, " of all 2 ranks") || !strings.Contains(two, " of all 4 ranks") {
			t.Errorf("want 2 ranks on one host and 4 on two:\n%s%s", one, two)
		}
		if got, want := figures(two), figures(one); got != want || want == "" {
			t.Errorf("%s: two hosts end with %q, one with %q\n%s", line, got, want, two)
		}
	}
}

// figures are the results of the last epoch, to four digits.
func figures(out string) string {
	lines := regexp.MustCompile(`(?m)^epoch \d+/\d+: .*`).FindAllString(out, -1)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(regexp.MustCompile(`(loss|error|RMSE) \d+\.\d{2}`).FindAllString(lines[len(lines)-1], -1), " ")
}
