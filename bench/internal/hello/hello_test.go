package hello

import (
	"fmt"
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
		if got := Largest(printed, InitMark); got != want {
			t.Errorf("of %q: %v, want %v", printed, got, want)
		}
	}
	if got := highWater("VmPeak:\t 9 kB\nVmHWM:\t    5244 kB\nVmRSS:\t 8 kB\n"); got != 5244 {
		t.Errorf("got %d, want 5244", got)
	}
	if got := highWater("VmPeak:\t 9 kB\n"); got != 0 {
		t.Errorf("without the line: got %d, want 0", got)
	}
}

func TestARankTellsItsFigures(t *testing.T) {
	t.Setenv(env.Boot, "alone")
	marker := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	status := Rank([]string{marker}, &out, &errs)
	if status != 0 || Largest(out.String(), PeakMark) < 1000 || !strings.HasPrefix(out.String(), "here\n") {
		t.Errorf("status %d, %q, %q; want a peak of some megabytes", status, out.String(), errs.String())
	}
	if want := fmt.Sprintf("\n%s0 %d\n", ReadyMark, os.Getpid()); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %q", want, out.String())
	}
}
