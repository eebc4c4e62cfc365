package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/bench/internal/result"
	"gompi/comm/sim"
)

func simOutput(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	var b strings.Builder
	status = simMain(args, &b, &b)
	return b.String(), status
}

func TestSimMarksWhatGompiChooses(t *testing.T) {
	out, status := simOutput(t, "-np", "2", "-sizes", "1000", "-machine",
		"latency=1ms,overhead=0.1ms,rate=8mbit", "bcast")
	want := `# machine latency=1ms,overhead=100us,rate=8mbit

# bcast, 2 ranks, simulated (us)
    size (B)      binomial       scatter         chain
        1000      2200.00*      `
	if status != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("status %d:\n%s\nwant\n%s", status, out, want)
	}
	out, status = simOutput(t, "-np", "4", "-sizes", "8", "-format", "csv", "-algorithms", "cubes",
		"reduce_scatter", "barrier")
	rows, err := result.ReadCSV([]byte(out))
	if status != 0 || err != nil || len(rows) != 1 || rows[0].Impl != "cubes" || rows[0].Bytes != 8 ||
		rows[0].NP != 4 || rows[0].Median <= 0 {
		t.Errorf("status %d, %v: %+v: want a row of reduce_scatter by cubes", status, err, rows)
	}
}

// A value of GOMPI_TUNE decides among the algorithms, and their chunks.
func TestSimIsTuned(t *testing.T) {
	sizes := []string{"-np", "16", "-sizes", "1M", "-machine", "cluster", "-format", "csv"}
	times := func(args ...string) map[string]float64 {
		out, status := simOutput(t, append(args, sizes...)...)
		rows, err := result.ReadCSV([]byte(out))
		if status != 0 || err != nil {
			t.Fatalf("%q: status %d, %v: %s", args, status, err, out)
		}
		of := map[string]float64{}
		for _, r := range rows {
			of[r.Impl] = r.Median
		}
		return of
	}
	plain, whole := times("allreduce"), times("-tune", "hier.chunk=never", "allreduce")
	if whole["leader"] <= plain["leader"] || whole["halving"] != plain["halving"] {
		t.Errorf("in chunks %v, whole %v: want only hierarchical ones to take longer whole", plain, whole)
	}
	if ring := times("-tune", "allreduce:rdouble", "allreduce"); ring["gompi"] != plain["rdouble"] {
		t.Errorf("by rdouble %v, want what it takes among %v", ring, plain)
	}
}

// A chart is well-formed, and has a line for each algorithm and a ring around the chosen one.
func TestSimDrawsAChart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bcast.svg")
	out, status := simOutput(t, "-np", "16", "-sizes", "8,1K,1M", "-machine", "cluster", "-svg", file, "bcast")
	text, err := os.ReadFile(file)
	if status != 0 || err != nil || xml.Unmarshal(text, new(struct{})) != nil {
		t.Fatalf("status %d, %v, %s:\n%s", status, err, out, text)
	}
	for _, want := range []string{">bcast, 16 ranks, simulated<", ">binomial<", ">leader<", ">chosen<", ">64 KiB<"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestSimRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "no operation: want some of barrier, bcast",
		"sort":                   `collective "sort": want one of`,
		"-np 0 bcast":            `-np "0"`,
		"-np 2000000 bcast":      "want at most 1048576",
		"-machine fast bcast":    `machine "fast": want one of`,
		"-format xml bcast":      "want table or csv",
		"-algorithms ring bcast": `-algorithms "ring": bcast has none`,
		"-tune shm=1 bcast":      `tuning: unknown threshold "shm"`,
		"-measured x bcast":      "want no operation",
		"-svg x bcast reduce":    "want one operation and one number of ranks",
	} {
		if out, status := simOutput(t, strings.Fields(args)...); status != 2 || !strings.Contains(out, want) {
			t.Errorf("%q: status %d, %s; want %s", args, status, out, want)
		}
	}
	if out, status := simOutput(t, "-measured", filepath.Join(t.TempDir(), "none")); status != 1 ||
		!strings.Contains(out, "no such file") {
		t.Errorf("status %d, %s: want an error that the file is not there", status, out)
	}
}

func TestMeasuredTimesStandBesideSimulatedOnes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	row := func(impl, op string, us float64) string {
		return result.Row{Impl: impl, Op: op, NP: 2, Bytes: 1000, Median: us}.CSV() + "\n"
	}
	text := result.Header + "\n" + row("gompi", "bcast", 2200) + row("gompi", "latency", 1) + result.Header + "\n" +
		row("scatter", "bcast", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	chart := file + ".svg"
	out, status := simOutput(t, "-measured", file, "-svg", chart, "-machine", "latency=1ms,overhead=0.1ms,rate=8mbit")
	if text, err := os.ReadFile(chart); err != nil || !strings.Contains(string(text), ">equal<") {
		t.Errorf("%v: want a chart with a line where both are equal:\n%s", err, text)
	}
	for _, want := range []string{"| bcast | ", "| binomial * |", "|         2200 |    1.00 |", "|    scatter |",
		"2 times; * is what gompi chooses"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d:\n%s\nwant %s", status, out, want)
		}
	}
}

func TestALinkIsFitted(t *testing.T) {
	const ms = 1e3
	rows := []result.Row{
		{Op: "latency", NP: 2, Bytes: 8, Median: 10}, {Op: "latency", NP: 2, Bytes: 100_000, Median: 60 * ms},
		{Op: "bw", NP: 2, Bytes: 8, Median: 2}, // and then 1 us a byte, and 5 us a message
		{Op: "bw", NP: 2, Bytes: 1000, Median: ms + 5}, {Op: "bw", NP: 2, Bytes: 10_000, Median: 10*ms + 5},
	}
	var m sim.Machine
	if err := fitLinks(&m, rows); err != nil {
		t.Fatal(err)
	}
	// Bytes that would take 100 ms take 60: so 40,000 of them pass at once, and the bytes of
	// latency and gap.
	if got, want := m.String(), "latency=6us,overhead=2us,rate=8mbit,gap=5us,burst=40011"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := fitLinks(&m, rows[:2]); err == nil || !strings.Contains(err.Error(), "want rows of 2 ranks: latency and bw") {
		t.Errorf("%v: want an error that rows of bw are missing", err)
	}
}
