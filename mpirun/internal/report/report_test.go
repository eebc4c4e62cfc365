package report

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gompi/internal/stats"
)

const ms = 1_000_000

// job collects ranks that have been in one collective for so long each, of a second.
func job(inCalls ...int64) *Collector {
	c := New("./prog", len(inCalls))
	c.Run()
	for i, t := range inCalls {
		c.Add("here", &stats.Figures{
			Rank: i, Begun: 5, Left: 5 + 1000*ms, Busy: t,
			Sites: []stats.Site{{Op: "MPI_Allreduce", Place: "a.c:1",
				Counts: stats.Counts{Calls: 10, Bytes: 80, Time: t, Fastest: 1001, Slowest: t / 5}}},
			Peers: []stats.Peer{{Rank: (i + 1) % len(inCalls), Messages: 2, Bytes: 16}},
		}, 1e9)
	}
	return c
}

func TestWhoIsLate(t *testing.T) {
	for _, tt := range []struct {
		inCalls []int64
		late    []int
		says    string
	}{
		{[]int64{300 * ms, 290 * ms, 310 * ms, 320 * ms}, nil, "balanced"},
		{[]int64{300 * ms, 290 * ms, 100 * ms, 320 * ms}, []int{2},
			"rank 2 was late: in calls for 80 ms, the others for 243 ms on average, of 1 s"},
		{[]int64{90 * ms, 290 * ms, 100 * ms, 320 * ms}, []int{0, 2}, "ranks 0, 2 were late"},
		{[]int64{90 * ms, 100 * ms, 100 * ms, 320 * ms}, nil, "most ranks have waited little"},
		{[]int64{200 * ms, 10 * ms}, []int{1}, "rank 1 was late"},
		{[]int64{200 * ms}, nil, "no other rank"},
		{nil, nil, "no rank has used gompi"},
	} {
		s := job(tt.inCalls...).Summary()
		if !slices.Equal(s.Late, tt.late) || !strings.Contains(s.Verdict, tt.says) {
			t.Errorf("%v: %v, %q; want %v, %q", tt.inCalls, s.Late, s.Verdict, tt.late, tt.says)
		}
	}
}

// In these runs of examples/train on four ranks, of 5.4 s, all have waited half a second for rank
// 0's reading at the start, and for the last rank at the end.
func TestWhatIsWaitedForOnceDoesNotHideWhoIsSlow(t *testing.T) {
	for _, tt := range []struct {
		bcast, wait [4]int64 // of which the one is one call, and of the other the longest took 20 ms
		late        []int
		says        string
	}{
		{[4]int64{9 * ms, 440 * ms, 450 * ms, 450 * ms}, [4]int64{390 * ms, 380 * ms, 70 * ms, 370 * ms}, []int{2},
			"most of it in wait at train/trainer.go:183; the longest"},
		{[4]int64{9 * ms, 440 * ms, 450 * ms, 450 * ms}, [4]int64{390 * ms, 90 * ms, 440 * ms, 80 * ms}, []int{1, 3},
			"most of it in wait at train/trainer.go:183; the longest"},
		{[4]int64{9 * ms, 440 * ms, 450 * ms, 450 * ms}, [4]int64{180 * ms, 210 * ms, 190 * ms, 200 * ms}, []int{0},
			"most of it in bcast at train/setup.go:128, in few calls"},
		{[4]int64{9 * ms, 9 * ms, 9 * ms, 2000 * ms}, [4]int64{180 * ms, 180 * ms, 180 * ms, 180 * ms}, nil,
			"most ranks have waited little: rank 0 was in calls for 189 ms, and rank 3 for 2.18 s"},
	} {
		c := New("train", 4)
		for i := range 4 {
			c.Add("here", &stats.Figures{Rank: i, Left: 5400 * ms, Busy: tt.bcast[i] + tt.wait[i], Sites: []stats.Site{
				{Op: "bcast", Place: "train/setup.go:128",
					Counts: stats.Counts{Calls: 1, Time: tt.bcast[i], Slowest: tt.bcast[i]}},
				{Op: "wait", Place: "train/trainer.go:183",
					Counts: stats.Counts{Calls: 120, Time: tt.wait[i], Slowest: 20 * ms}},
			}}, 1e9)
		}
		s := c.Summary()
		if says := s.Where + s.Verdict; !slices.Equal(s.Late, tt.late) || !strings.HasPrefix(says, tt.says) {
			t.Errorf("bcast %v, wait %v: %v, %q; want %v, %q", tt.bcast, tt.wait, s.Late, says, tt.late, tt.says)
		}
	}
}

// A rank that has waited long once, for one that was held up, has come last all the same.
func TestTheLatestIsTheVerdicts(t *testing.T) {
	c := New("train", 2)
	for i, took := range []int64{200 * ms, 80 * ms} {
		c.Add("here", &stats.Figures{Rank: i, Left: 1000 * ms, Busy: took, Sites: []stats.Site{
			{Op: "allreduce", Place: "a.go:1", Counts: stats.Counts{Calls: 10, Time: took,
				Slowest: []int64{199 * ms, 10 * ms}[i]}}}}, 1e9)
	}
	if s := c.Summary(); !slices.Equal(s.Late, []int{0}) || s.Sites[0].Latest != 0 {
		t.Errorf("%s; %d came last: want rank 0", s.Verdict, s.Sites[0].Latest)
	}
}

// A thread that waits for requests does not make its rank a waiting rank.
func TestWhoServesDoesNotWait(t *testing.T) {
	c := job(100*ms, 300*ms)
	c.Add("here", &stats.Figures{Rank: 0,
		Sites: []stats.Site{{Op: "probe", Counts: stats.Counts{Calls: 3, Time: 1000 * ms, Slowest: 900 * ms}}}}, 1e9)
	if s := c.Summary(); !slices.Equal(s.Late, []int{0}) {
		t.Errorf("%s: want rank 0, which was in collectives for the least time", s.Verdict)
	}
}

func TestSitesOfAllRanksAreAddedUp(t *testing.T) {
	c := job(300*ms, 100*ms)
	c.Run()
	c.Add("there", &stats.Figures{Rank: 1, Begun: 0, Left: 500 * ms, Busy: 40 * ms,
		Sites: []stats.Site{{Op: "MPI_Recv", Place: "a.c:2",
			Counts: stats.Counts{Calls: 4, Time: 40 * ms, Fastest: 2*ms + 1, Slowest: 20 * ms}}}}, 2e9)
	c.Lost("elsewhere")
	s := c.Summary()
	reduce, recv := s.Sites[0], s.Sites[1]
	if reduce.Calls != 20 || reduce.Bytes != 160 || reduce.Min != 0.1 || reduce.Max != 0.3 || reduce.Mean != 0.2 ||
		reduce.Latest != 1 {
		t.Errorf("%+v", reduce)
	}
	if int(reduce.Wait) != 50 || int(reduce.Imbalance+0.5) != 50 || reduce.Bandwidth != 400 {
		t.Errorf("%+v: want half of it waiting, and 50 %% above the mean", reduce)
	}
	if recv.Ranks != 1 || recv.Latest != -1 || int(recv.Wait+0.5) != 80 {
		t.Errorf("%+v: want 80 %% beyond the fastest call", recv)
	}
	if s.PerRank[1].Elapsed != 1.5 || s.PerRank[1].Calls != 14 || s.Runs != 2 || s.Copies != 1e9 ||
		!slices.Equal(s.Missing, []string{"elsewhere"}) {
		t.Errorf("%+v", s)
	}
}

var update = flag.Bool("update", false, "write the golden file")

// Each form of a report is in testdata/forms.golden.
func TestEachFormHasTheFigures(t *testing.T) {
	c := job(300*ms, 100*ms)
	c.Run()
	c.Add("there", &stats.Figures{Rank: 1, Left: 500 * ms, Busy: 40 * ms, Uncounted: 3, Sites: []stats.Site{
		{Op: "MPI_Recv", Counts: stats.Counts{Calls: 4, Time: 40 * ms, Fastest: 2*ms + 1, Slowest: 20 * ms}},
		{Op: "MPI_Barrier", Place: "a.c:<2>",
			Counts: stats.Counts{Calls: 1, Time: 123456789, Fastest: 123456790, Slowest: 123456789}}}}, 2e9)
	c.Lost("elsewhere")
	s := c.Summary()
	var b strings.Builder
	for _, file := range []string{"x.txt", "x.csv", "x.json", "x.html"} {
		fmt.Fprintln(&b, "==", file)
		if err := s.Write(&b, file); err != nil {
			t.Fatal(err)
		}
	}
	const golden = "testdata/forms.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || b.String() != string(want) {
		t.Errorf("%v; the forms are now (go test -update writes them)\n%s", err, &b)
	}
}
