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
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/report"
	"gompi/mpirun/internal/testbed"
)

// counted returns a program whose calls are known.
func counted(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "counted")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/counted").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// summary runs a job with -stats, which has to end with a status, and returns the summary.
func summary(t *testing.T, want int, args ...string) *report.Summary {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stats.json")
	status, out, errs := runJob(t, append([]string{"-stats=" + file}, args...)...)
	if status != want {
		t.Fatalf("gompirun %v: status %d, want %d:\n%s%s", args, status, want, out, errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &report.Summary{}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// until runs a job again until its summary is right, because other work of a processor makes its
// ranks late, too. It returns the last summary, and whether it is right.
func until(right func(*report.Summary) bool, run func() *report.Summary) (*report.Summary, bool) {
	s := run()
	for end := time.Now().Add(soon); !right(s) && time.Now().Before(end); {
		s = run()
	}
	return s, right(s)
}

// isLate returns the condition that a summary names these ranks, and a place with a text.
func isLate(ranks []int, where string) func(*report.Summary) bool {
	return func(s *report.Summary) bool { return slices.Equal(s.Late, ranks) && strings.Contains(s.Where, where) }
}

// sites returns the sites as "call calls bytes", all of which are to be in a file of the program.
func sites(t *testing.T, s *report.Summary, file string) (lines []string) {
	t.Helper()
	for _, l := range s.Sites {
		if !strings.HasPrefix(l.Place, file) {
			t.Errorf("%s is called at %q: want %s", l.Op, l.Place, file)
		}
		lines = append(lines, fmt.Sprintf("%s %d %d", l.Op, l.Calls, l.Bytes))
	}
	slices.Sort(lines)
	return lines
}

func TestCallsAreCountedExactly(t *testing.T) {
	program := counted(t)
	want := []string{
		"allgather 28 896", "allreduce 40 320", "allreduce 4000 32000",
		"barrier 4 0", "iallreduce 12 96", "isend 20 16000",
		"recv 20 16000", "sendrecv 4 800000", "wait 12 0", "waitall 20 0",
	}
	for how, flags := range map[string][]string{
		"shm": {"-np", "4"}, "tcp": {"-np", "4", "-x", "GOMPI_TRANSPORT=tcp"},
		"threads": {"-np", "4", "-x", "GOMAXPROCS=4"},
	} {
		t.Run(how, func(t *testing.T) {
			s := summary(t, 0, append(flags, program, "calls")...)
			if got := sites(t, s, "counted/main.go:"); !slices.Equal(got, want) {
				t.Errorf("sites:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if len(s.Pairs) != 4 {
				t.Fatalf("%d pairs: want those of a ring", len(s.Pairs))
			}
			for _, p := range s.Pairs {
				if p.To != (p.From+1)%4 || p.Messages != 6 || p.Bytes != 5*800+100_000 {
					t.Errorf("pair %+v: want 6 messages to the next rank, of 104000 bytes", p)
				}
			}
			for _, r := range s.PerRank {
				if r.Calls != 1040 || r.Elapsed <= 0 || r.InCalls > r.Elapsed {
					t.Errorf("rank %+v: want 1040 calls, and no longer in calls than in the job", r)
				}
			}
		})
	}
}

// Each rank in turn is slowed by a fifth, and two at once.
func TestTheSlowRankIsNamed(t *testing.T) {
	stress.Slow(t, "it runs jobs for seconds")
	program := counted(t)
	for _, how := range [][]string{nil, {"-x", "GOMPI_TRANSPORT=tcp"}} {
		for _, slow := range [][]int{{0}, {1}, {2}, {3}, {1, 3}, nil} {
			args := append(slices.Clone(how), "-np", "4", program, "work")
			for _, r := range slow {
				args = append(args, fmt.Sprint(r))
			}
			right := func(s *report.Summary) bool {
				l := s.Sites[0]
				return isLate(slow, "")(s) && l.Op == "allreduce" && (len(slow) != 1 || l.Latest == slow[0])
			}
			if s, ok := until(right, func() *report.Summary { return summary(t, 0, args...) }); !ok {
				t.Errorf("%v: late %v: %s; %+v: want allreduce, and the rank that came last", args, s.Late,
					s.Verdict, s.Sites[0])
			}
		}
	}
}

// A rank is named that works alone for long once: at the end, or before one of many short calls, of
// which few are timed; also when it is for ever, and the job is ended.
func TestTheRankThatWorksAloneIsNamed(t *testing.T) {
	stress.Slow(t, "it runs jobs for seconds")
	program := counted(t)
	for _, tt := range []struct {
		what   string
		rounds string
		late   int
		where  string
		flags  []string
		status int
	}{
		{"alone", "10", 0, "after the others had left the job", nil, 0},
		{"once", "2000", 1, "in barrier at counted/main.go:", nil, 0},
		{"once", "2", 1, "in barrier at counted/main.go:", []string{"-x", "GOMPI_TRANSPORT=tcp"}, 0},
		{"hang", "2000", 1, "in barrier at counted/main.go:", []string{"-timeout", "3"}, 124},
		{"hang", "2", 1, "in barrier at counted/main.go:", []string{"-timeout", "3"}, 124},
	} {
		s, ok := until(isLate([]int{tt.late}, tt.where), func() *report.Summary {
			return summary(t, tt.status, append(slices.Clone(tt.flags), "-np", "2", program, tt.what, tt.rounds)...)
		})
		if !ok {
			t.Errorf("%s %s: late %v, %s (%s); want %v, %q", tt.what, tt.rounds, s.Late, s.Verdict, s.Where,
				tt.late, tt.where)
		}
	}
}

// A killed rank's counters are kept, and added to the counters of its next run.
func TestCountsOutliveARank(t *testing.T) {
	program := counted(t)
	s := summary(t, 137, "-np", "2", program, "die", "100")
	// rank 0 may be in one more
	if got := sites(t, s, "counted/main.go:"); len(got) == 0 || got[len(got)-1] != "barrier 200 0" {
		t.Errorf("killed: %v, want 200 barriers, and perhaps one of which rank 0 had no end", got)
	}
	if len(s.PerRank) != 2 || s.PerRank[1].Calls != 100 {
		t.Errorf("killed: %+v: want 100 calls of rank 1", s.PerRank)
	}
	s = summary(t, 0, "-np", "2", "-max-restarts", "1", program, "die", "100")
	if got := sites(t, s, "counted/main.go:"); s.Runs != 2 || len(got) != 2 || got[1] != "barrier 400 0" {
		t.Errorf("restarted: %d runs, %v, want 400 barriers", s.Runs, got)
	}
}

func TestCountsComeFromAllHosts(t *testing.T) {
	b := testbed.New(t, 2)
	program := counted(t)
	s := summary(t, 0, "-rsh", b.RSH(), "-H", "host1:2,host2:2", program, "calls")
	if !slices.Contains(sites(t, s, "counted/main.go:"), "allreduce 4000 32000") || len(s.Hosts) != 2 ||
		len(s.PerRank) != 4 {
		t.Errorf("%v of %v, want those of four ranks on two hosts", sites(t, s, "counted/main.go:"), s.Hosts)
	}
}

func TestStatsAreWrittenAsTheFileIsNamed(t *testing.T) {
	program, dir := counted(t), t.TempDir()
	status, _, errs := runJob(t, "-np", "2", "-stats", program, "calls")
	if status != 0 || !strings.Contains(errs, "2 ranks on 1 host,") || !strings.Contains(errs, "allreduce") {
		t.Errorf("status %d:\n%s\nwant a table on stderr", status, errs)
	}
	page := filepath.Join(dir, "page.html")
	status, _, errs = runJob(t, "-np", "2", "-stats="+page, program, "calls")
	data, _ := os.ReadFile(page)
	if status != 0 || !strings.Contains(string(data), "counted/main.go:") ||
		!strings.Contains(string(data), "</html>") || errs != "" {
		t.Errorf("status %d, %v:\n%s\nwant a page with the calls", status, errs, data)
	}
	rows := filepath.Join(dir, "rows.csv")
	status, _, errs = runJob(t, "-np", "2", "-stats="+rows, program, "calls")
	data, _ = os.ReadFile(rows)
	if status != 0 || !strings.Contains(string(data), "\nallreduce,counted/main.go:") || errs != "" {
		t.Errorf("status %d, %v:\n%s\nwant a line for each call", status, errs, data)
	}
	missing := filepath.Join(dir, "no", "such")
	status, out, errs := runJob(t, "-np", "2", "-stats="+missing, program, "calls")
	if status != 125 || out != "" || !strings.HasPrefix(errs, "gompirun: -stats and -trace: open "+missing) {
		t.Errorf("status %d, %v: want 125 for a file that cannot be, before a rank starts", status, errs)
	}
	status, _, errs = runJob(t, "-np", "2", "-trace", "/dev/full", program, "calls")
	if status != 125 || !strings.HasPrefix(errs,
		"gompirun: all ranks ended well, but -stats and -trace: write /dev/full: no space") {
		t.Errorf("status %d, %v: want 125 for a trace that cannot be written", status, errs)
	}
}

// A job in which no rank uses gompi is reported as such, with a flag to type.
func TestStatsOfAJobWithoutGompi(t *testing.T) {
	for program, want := range map[string]string{"hostname": "-mpi-lib gompi", "python3": "-torch-backend gompi"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no ", program)
		}
		status, _, errs := runJob(t, "-np", "2", "-stats", program, "--version")
		if status != 0 || strings.Contains(errs, "0 hosts") ||
			!strings.Contains(errs, "-stats: "+program+": no rank has used gompi") || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s; want %s", program, status, errs, want)
		}
	}
	status, _, errs := runJob(t, "-np", "2", "-stats", "./no-such-program")
	if status == 0 || strings.Contains(errs, "-stats") {
		t.Errorf("status %d, %s; want nothing of -stats where no rank has started", status, errs)
	}
}

// A traceEvent is one of a file of -trace.
type traceEvent struct {
	Name  string
	Phase string `json:"ph"`
	PID   int
	ID    int
	Begin float64 `json:"ts"`
	Dur   float64
	Args  map[string]any
}

// trace runs a job with -trace, which has to end with a status, and returns the trace.
func trace(t *testing.T, want int, args ...string) []traceEvent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.json")
	status, out, errs := runJob(t, append([]string{"-trace", file}, args...)...)
	if status != want || strings.Contains(errs, "wait  late") {
		t.Fatalf("gompirun %v: status %d, want %d, and no table:\n%s%s", args, status, want, out, errs)
	}
	return readTrace(t, file)
}

func readTrace(t *testing.T, file string) []traceEvent {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return all.TraceEvents
}

// All ranks' calls are on one clock: a message begins before it has arrived, also on another host.
// It has no arrow if the clocks of hosts are not known well enough to say so.
func TestATraceHasAllCallsOnOneClock(t *testing.T) {
	program := counted(t)
	b := testbed.New(t, 2)
	for how, flags := range map[string][]string{"one host": {"-np", "4"},
		"two hosts": {"-rsh", b.RSH(), "-H", "host1:2,host2:2"}} {
		calls, arrows := map[int]int{}, map[int][]traceEvent{}
		for _, e := range trace(t, 0, append(flags, program, "calls")...) {
			switch e.Phase {
			case "X":
				calls[e.PID]++
			case "s", "f":
				arrows[e.ID] = append(arrows[e.ID], e)
			}
		}
		for r := range 4 {
			if calls[r] != 1040 {
				t.Errorf("%s: %d calls of rank %d, want 1040", how, calls[r], r)
			}
		}
		within := 0 // a host, if there are two
		for _, a := range arrows {
			if a[0].PID%2 == 0 {
				within++
			}
			if len(a) != 2 || a[0].Phase != "s" || a[1].PID != (a[0].PID+1)%4 || a[0].Begin > a[1].Begin {
				t.Errorf("%s: message %+v, want one to the next rank", how, a)
			}
		}
		if within != 2*5 || len(arrows) > 4*5 || how == "one host" && len(arrows) < 4*5 {
			t.Errorf("%s: %d messages, %d of them by ranks 0 and 2; want the 5 of each rank that a Recv gets", how,
				len(arrows), within)
		}
	}
}

func TestATraceOutlivesARank(t *testing.T) {
	calls := 0
	for _, e := range trace(t, 137, "-np", "2", counted(t), "die", "100") {
		if e.Phase == "X" && e.PID == 1 && e.Name == "barrier" {
			calls++
		}
	}
	if calls != 100 {
		t.Errorf("%d calls of the rank that was killed, want 100", calls)
	}
}
