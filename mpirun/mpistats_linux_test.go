package mpirun

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/mpirun/internal/report"
)

// countsOfMPI builds a program of MPI with known calls, and returns a function that runs it.
func countsOfMPI(t *testing.T) (prog string, summary func(args ...string) *report.Summary) {
	t.Helper()
	gompirun, _ := withMPI(t)
	prog = filepath.Join(t.TempDir(), "counted")
	compile := exec.Command("gcc", "-g", "-pthread", "-o", prog, "-I",
		filepath.Join(filepath.Dir(gompirun), "lib/abi/include"),
		"testdata/mpi/counted.c", filepath.Join(filepath.Dir(gompirun), "lib/abi/libmpi_abi.so.1"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return prog, func(args ...string) *report.Summary {
		t.Helper()
		return summaryOfMPI(t, gompirun, append([]string{"-np", "4"}, args...)...)
	}
}

// summaryOfMPI runs a job with -stats, which has to end well, and returns the summary.
func summaryOfMPI(t *testing.T, gompirun string, args ...string) *report.Summary {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stats.json")
	status, out, errs := runCommand(t, gompirun, append([]string{"-q", "-stats=" + file}, args...)...)
	data, err := os.ReadFile(file)
	s := &report.Summary{}
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if status != 0 || err != nil {
		t.Fatalf("%v: status %d, %v\n%s%s", args, status, err, out, errs)
	}
	return s
}

// Calls of MPI are counted whether C or Go does them, and the slow rank is named.
func TestCallsOfMPIAreCountedExactly(t *testing.T) {
	prog, summary := countsOfMPI(t)
	want := []string{
		"MPI_Allgather 28 896", "MPI_Allreduce 40 320", "MPI_Allreduce 4000 32000", "MPI_Barrier 4 0",
		"MPI_Finalize 4 0", "MPI_Isend 2000 1600000",
		"MPI_Recv 2000 1600000", "MPI_Sendrecv 4 800000", "MPI_Wait 2000 0",
	}
	for _, how := range []string{"GOMPI_SHORT=on", "GOMPI_SHORT=mix", "GOMPI_SHORT=off", "GOMPI_TRANSPORT=tcp"} {
		s := summary("-x", how, prog, "calls")
		if got := sites(t, s, "mpi/counted.c:"); !slices.Equal(got, want) {
			t.Errorf("%s: sites:\n%s\nwant\n%s", how, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, p := range s.Pairs {
			if p.To != (p.From+1)%4 || p.Messages != 501 || p.Bytes != 500*800+100_000 {
				t.Errorf("%s: pair %+v: want 501 messages to the next rank, of 500000 bytes", how, p)
			}
		}
		if strings.HasPrefix(how, "GOMPI_SHORT=") && how != "GOMPI_SHORT=on" {
			continue
		}
		for slow := range 4 {
			s, ok := until(isLate([]int{slow}, ""),
				func() *report.Summary { return summary("-x", how, prog, "work", fmt.Sprint(slow)) })
			if !ok {
				t.Errorf("%s: late %v, want %d: %s", how, s.Late, slow, s.Verdict)
			}
		}
	}
}

// A rank of MPI is named that works alone for long once: before MPI_Finalize, and before one of
// many short calls, of which few are timed.
func TestTheRankOfMPIThatWorksAloneIsNamed(t *testing.T) {
	prog, summary := countsOfMPI(t)
	for _, tt := range []struct {
		what, rounds string
		late         int
		where        string
	}{{"alone", "10", 0, "in MPI_Finalize at mpi/counted.c:"},
		{"once", "2000", 1, "in MPI_Barrier at mpi/counted.c:"}} {
		for _, how := range []string{"GOMPI_SHORT=on", "GOMPI_SHORT=off", "GOMPI_TRANSPORT=tcp"} {
			s, ok := until(isLate([]int{tt.late}, tt.where),
				func() *report.Summary { return summary("-x", how, prog, tt.what, tt.rounds) })
			if !ok {
				t.Errorf("%s, %s: late %v, %s (%s); want %v, %q", tt.what, how, s.Late, s.Verdict, s.Where,
					tt.late, tt.where)
			}
		}
	}
}

// While a thread waits for 8 bytes others are sent to, and its rank is in calls no longer than in
// the job.
func TestBytesAreThoseOfTheThreadThatMovesThem(t *testing.T) {
	prog, summary := countsOfMPI(t)
	s := summary(prog, "threads", "50")
	want := []string{"MPI_Comm_dup 4 0", "MPI_Finalize 4 0", "MPI_Recv 1 8", "MPI_Recv 50 52428800", "MPI_Send 1 8",
		"MPI_Send 50 52428800"}
	if got := sites(t, s, "mpi/counted.c:"); !slices.Equal(got, want) {
		t.Errorf("sites:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, r := range s.PerRank {
		if r.Share > 100 {
			t.Errorf("rank %+v: want at most 100 %% in calls", r)
		}
	}
}

// Calls of mpi4py are counted and traced at lines of Python, whatever else Python does: its lock is
// free, wanted by another thread, or taken by an operator meanwhile.
func TestCallsOfMPI4PyAreCountedAtTheirLines(t *testing.T) {
	const python, script = "/usr/bin/python3", "testdata/mpi/lines.py"
	if exec.Command(python, "-c", "import mpi4py").Run() != nil {
		t.Skip("left out: python3 has no mpi4py (package python3-mpi4py)")
	}
	gompirun, _ := withMPI(t, "mpicc.openmpi")
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	at := func(mark string) string {
		return fmt.Sprintf("mpi/lines.py:%d", 1+strings.Count(strings.Split(string(text), "  # "+mark+"\n")[0], "\n"))
	}
	want := []string{
		"MPI_Allreduce " + at("late") + " 20", "MPI_Allreduce " + at("operator") + " 2",
		"MPI_Allreduce " + at("step") + " 2000",
		"MPI_Barrier " + at("exit") + " 2", "MPI_Barrier " + at("thread") + " 10", "MPI_Bcast " + at("object") + " 4",
		"MPI_Comm_dup " + at("dup") + " 2", "MPI_Comm_free " + at("free") + " 2",
	}
	slices.Sort(want)
	s, ok := until(isLate([]int{1}, "in MPI_Allreduce at "+at("late")), func() *report.Summary {
		s := summaryOfMPI(t, gompirun, "-np", "2", python, script)
		var got []string
		for _, l := range s.Sites {
			if strings.HasPrefix(l.Place, "mpi/lines.py:") { // else in mpi4py itself, with the lock
				got = append(got, fmt.Sprintf("%s %s %d", l.Op, l.Place, l.Calls))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("sites:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return s
	})
	if !ok {
		t.Errorf("late %v, %s (%s); want rank 1", s.Late, s.Verdict, s.Where)
	}
	file := filepath.Join(t.TempDir(), "trace.json")
	if status, _, errs := runCommand(t, gompirun, "-q", "-np", "2", "-trace", file, python, script); status != 0 {
		t.Fatalf("-trace: status %d, %s", status, errs)
	}
	calls := map[string]int{}
	for _, e := range readTrace(t, file) {
		calls[fmt.Sprintf("%s %v", e.Name, e.Args["at"])]++
	}
	for _, line := range want {
		if i := strings.LastIndexByte(line, ' '); fmt.Sprint(calls[line[:i]]) != line[i+1:] {
			t.Errorf("-trace has %v, want %s", calls, line)
		}
	}
}
