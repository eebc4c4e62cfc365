package main

import (
	"strings"
	"testing"
)

// A star and a tree stand below each other, and where there is no tree a line alone.
func TestSimStart(t *testing.T) {
	out, status := simOutput(t, "start", "-np", "64,1000", "-machine", "cluster,processors=16", "-fanout", "16")
	var rows []string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 13 && f[0] != "ranks" {
			rows = append(rows, strings.Join(f[:3], " "))
		}
	}
	want := "64 star 8, 1000 star 125, 1000 tree 11"
	if got := strings.Join(rows, ", "); status != 0 || got != want {
		t.Errorf("status %d, rows %s, want %s\n%s", status, got, want, out)
	}
	if out, status = simOutput(t, "start", "-np", "64", "-machine", "oversubscribed"); status != 0 ||
		!strings.Contains(out, "64 agent      0") {
		t.Errorf("status %d: want one agent, no login\n%s", status, out)
	}
	for _, args := range [][]string{{"start", "bcast"}, {"start", "-fanout", "0"}, {"start", "-np", "0"},
		{"start", "-machine", "fast"}} {
		if out, status = simOutput(t, args...); status != 2 {
			t.Errorf("%v: status %d, want 2: %s", args, status, out)
		}
	}
}
