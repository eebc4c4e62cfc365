package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/bench/internal/contest"
)

func TestParseRefusesWhatIsNoFlag(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"hello", `argument "hello": want flags only`},
		{"-peers openmpi,mvapich", `peer "mvapich": want some of`},
		{"-rounds 0", `-rounds "0": want a whole number, 1 or more`},
		{"-restart 1", `-restart 1: want 2 ranks or more, or 0`},
		{"-torch-np x", `-torch-np "x": "x": want numbers of ranks`},
		{"-hostfile /nosuch", `-hostfile: open /nosuch`},
		{"-csv /nosuch/raw.csv", `open /nosuch/raw.csv: no such file`},
		{"-html /nosuch/page", `open /nosuch/page: no such file`},
	} {
		if _, err := parse(strings.Fields(tt.args)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
	cfg, err := parse([]string{"-peers", "torchrun-c10d,mpich"})
	if err != nil || len(cfg.peers) != 1 || len(cfg.torchruns) != 1 || cfg.torchruns[0].Name != "torchrun-c10d" {
		t.Errorf("got %v and %v, error %v; want mpich and torchrun-c10d", cfg.peers, cfg.torchruns, err)
	}
}

// fakes returns an entrant of which only the name matters.
func fakes(names ...string) []entrant {
	var es []entrant
	for _, name := range names {
		es = append(es, entrant{name: name, job: func(np int) contest.Job {
			return contest.Job{{Args: []string{name, "-np", fmt.Sprint(np)}}}
		}})
	}
	return es
}

func TestReportCountsFailuresAndMarksLosses(t *testing.T) {
	r := results{cfg: config{restart: 2, Flags: contest.Flags{Plan: contest.Plan{Rounds: 3, Limit: 30 * time.Second}}}, absent: []string{"srun: not installed"}, groups: []group{
		{name: "hello", nps: []int{1, 4}, figures: helloFigures, entrants: fakes("gompi", "mpich", floor)},
	}}
	hung := errors.New("time limit of 30s")
	add := func(entrant string, np int, ms, peak float64, err error) {
		r.jobs = append(r.jobs, job{key{"hello", entrant, np}, 1, [numFigures]float64{startToFinish: ms, peakMemory: peak}, err})
	}
	for _, ms := range []float64{10, 12, 500} {
		add("gompi", 1, ms, 5000, nil)
		add("mpich", 1, ms-6, 15000, nil)
	}
	add("gompi", 4, 10, 0, nil)
	add("mpich", 4, 100, 0, nil)
	add("mpich", 4, 30000, 0, hung)
	add(floor, 1, 2, 0, nil)
	add(floor, 4, 5, 0, nil)
	r.agains = []again{{"gompi", "kill -9", 1, 90 * time.Millisecond, nil}, {"gompi", "kill -STOP", 1, 0, hung}}
	var b strings.Builder
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 1 | 12.0 | 6.0 | 2.0 | **0.50 lost** |",
		"| 4 | 10.0 | 100 (1 failed) | 5.0 | 10.00 |",
		"| 1 | 5.1 | 15.4 | missing | 3.00 |",
		"| 4 | missing | none ended well | missing | missing |",
		"less the logins, ms:\n\n| np | gompi | mpich | ratio |",
		"| 4 | 5.0 | 95.0 | 19.00 |",
		"| kill -9 | 90.0 |", "| kill -STOP | never |", "gompi after kill -STOP: time limit of 30s",
		"Not here: srun: not installed",
	} {
		if !strings.Contains(squeeze(b.String()), squeeze(want)) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	raw := r.raw()
	if !strings.Contains(raw, "1,hello,mpich,4,30000.000,0.000,0.000,0.000,0.000,badly\n") || strings.Count(raw, "\n") != 1+len(r.jobs)+len(r.agains) {
		t.Errorf("raw figures:\n%swant one line for each of %d jobs", raw, len(r.jobs)+len(r.agains))
	}
	columns := strings.Count(raw[:strings.IndexByte(raw, '\n')], ",")
	for line := range strings.Lines(raw) {
		if strings.Count(line, ",") != columns {
			t.Errorf("%q has not the %d columns of the header", line, columns+1)
		}
	}
	if s := r.section(); len(s.Points) != 2+2+2+2+1 {
		t.Errorf("%d points, want 4 times, 2 logins, 2 memories and 1 restart: %+v", len(s.Points), s.Points)
	}
}

// squeeze makes runs of blanks and dashes one blank.
func squeeze(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' }), " ")
}

func TestARunWithoutPeersIsNoError(t *testing.T) {
	dir := t.TempDir()
	gompirun := filepath.Join(dir, "gompirun")
	if err := os.WriteFile(gompirun, []byte("#!/bin/sh\necho here; echo init_ms=3.5 peak_kb=4000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	csv, html := filepath.Join(dir, "raw.csv"), filepath.Join(dir, "all.html")
	var out, progress strings.Builder
	status := run([]string{"-gompirun", gompirun, "-np", "2", "-torch-np", "0", "-rounds", "2", "-restart", "0", "-csv", csv, "-html", html}, &out, &progress)
	if status != 0 || !strings.Contains(out.String(), "Not here: mpich: not installed") {
		t.Errorf("status %d\n%s%s", status, out.String(), progress.String())
	}
	if !strings.Contains(out.String(), "4.1") || !strings.Contains(out.String(), "3.5") {
		t.Errorf("no memory, or no time inside init, in\n%s", out.String())
	}
	raw, err := os.ReadFile(csv)
	if err != nil || strings.Count(string(raw), ",gompi,2,") != 2 {
		t.Errorf("raw figures %q, error %v; want two rounds", raw, err)
	}
	if page, err := os.ReadFile(html); err != nil || !strings.Contains(string(page), "<h2>gompi-launchbench</h2>") {
		t.Errorf("page %.200q, error %v", page, err)
	}
}

// TestARestartIsTimedFromTheBlow runs a shell that stands for a launcher: its
// "ranks" are two processes, and it starts them again when the last has died.
func TestARestartIsTimedFromTheBlow(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "again")
	script := `echo "ready 0 $$"
sleep 1000 & echo "ready 1 $!"
wait $!
[ -e "$1" ] || exit 1
echo "ready 0 $$"; echo "ready 1 $$"`
	job := func() contest.Job {
		return contest.Job{{Args: []string{"sh", "-c", script, "sh", marker}}}
	}
	took, err := restart(t.Context(), job(), marker, 2, blow{"kill -9", syscall.SIGKILL}, time.Minute)
	if err != nil || took <= 0 || took > 30*time.Second {
		t.Errorf("got %v, %v; want a short time", took, err)
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	if _, err := restart(t.Context(), job(), marker, 2, blow{"kill -STOP", syscall.SIGSTOP}, time.Second); !errors.Is(err, contest.ErrTimeLimit) {
		t.Errorf("one that does not notice: %v, want the time limit", err)
	}
	once := contest.Job{{Args: []string{"true"}}}
	if _, err := restart(t.Context(), once, marker, 2, blow{"kill -9", syscall.SIGKILL}, time.Minute); err == nil {
		t.Error("a job that is not restarted is no error")
	}
}

// Ranks that are told of another file than the one that is made never learn that they were
// restarted: their job ends at its time limit.
func TestRanksThatAreRestartedAreToldOfTheMarker(t *testing.T) {
	shop, err := contest.NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	cfg := config{Flags: contest.Flags{Gompirun: "gompirun", Plan: contest.Plan{NPs: []int{2}}}}
	groups, _, err := cfg.enter(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	job := groups[0].entrants[0].restart(2, "marker")
	self, err := os.Executable()
	if want := "gompirun -np 2 -max-restarts 1 " + self + " rank marker"; err != nil || job.String() != want {
		t.Errorf("got %s, want %s, error %v", job, want, err)
	}
}
