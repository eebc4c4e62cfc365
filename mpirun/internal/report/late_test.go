package report

import (
	"slices"
	"strings"
	"testing"

	"gompi/internal/stats"
)

// A step is a rank's next action: it computes, or makes a call. Times are in milliseconds.
type step struct {
	op    string // "" to compute
	takes int64  // to compute, or in a call without a wait
	with  []int  // of a collective, the ranks that call it
	peer  int    // to which it sends, or from which it receives
	hangs bool   // it has not ended when the job is ended
}

func work(ms int64) step                   { return step{takes: ms} }
func alike(op string, with ...int) step    { return step{op: op, with: with} }
func sends(to int) step                    { return step{op: "MPI_Send", peer: to} }
func receives(from int) step               { return step{op: "MPI_Recv", peer: from} }
func writes(ms int64) step                 { return step{op: "MPI_File_write_at", takes: ms} }
func hangs(op string, with ...int) step    { return step{op: op, with: with, hangs: true} }
func times(n int, steps ...step) []step    { return slices.Repeat(steps, n) }
func program(parts ...[]step) (all []step) { return slices.Concat(parts...) }

var four = []int{0, 1, 2, 3}

// A player plays programs of ranks, in virtual time.
type player struct {
	t        *testing.T
	programs [][]step
	next     []int              // step of each rank
	clock    []int64            // of each rank
	sent     map[[2]int][]int64 // when messages were sent, by sender and receiver
	figures  []stats.Figures
}

// play returns the figures of ranks that run these programs, in a job that is ended at a time if
// that is not 0.
func play(t *testing.T, programs [][]step, end int64) []stats.Figures {
	n := len(programs)
	p := player{t, programs, make([]int, n), make([]int64, n), map[[2]int][]int64{}, make([]stats.Figures, n)}
	for moved := true; moved; {
		moved = false
		for i := range programs {
			for p.move(i) {
				moved = true
			}
		}
	}
	for i := range p.figures {
		f := &p.figures[i]
		f.Rank, f.Left = i, p.clock[i]*ms
		if p.next[i] < len(programs[i]) {
			s := programs[i][p.next[i]]
			if !s.hangs {
				t.Fatalf("rank %d waits in %+v", i, s)
			}
			if s.op != "" {
				p.count(i, s.op, end-p.clock[i])
			}
		}
		if end > 0 {
			f.Left, f.Ended = end*ms, true
		}
	}
	return p.figures
}

// move has a rank do its next step, if it can.
func (p *player) move(i int) bool {
	if p.next[i] == len(p.programs[i]) {
		return false
	}
	s := p.programs[i][p.next[i]]
	switch {
	case s.hangs:
		return false
	case s.op == "":
		p.clock[i] += s.takes
	case s.with != nil:
		return p.meet(s)
	case s.op == "MPI_Send":
		p.sent[[2]int{i, s.peer}] = append(p.sent[[2]int{i, s.peer}], p.clock[i])
		p.count(i, s.op, 0)
	case s.op == "MPI_Recv":
		m := p.sent[[2]int{s.peer, i}]
		if len(m) == 0 {
			return false
		}
		p.sent[[2]int{s.peer, i}] = m[1:]
		p.count(i, s.op, max(0, m[0]-p.clock[i]))
	default:
		p.count(i, s.op, s.takes)
	}
	p.next[i]++
	return true
}

// meet has the ranks of a collective do it, if all have come.
func (p *player) meet(s step) bool {
	last := int64(0)
	for _, i := range s.with {
		if p.next[i] == len(p.programs[i]) || p.programs[i][p.next[i]].op != s.op ||
			!slices.Equal(p.programs[i][p.next[i]].with, s.with) {
			return false
		}
		last = max(last, p.clock[i])
	}
	for _, i := range s.with {
		p.count(i, s.op, last-p.clock[i])
		p.next[i]++
	}
	return true
}

// count counts a call, which takes so long and 10 us.
func (p *player) count(i int, op string, took int64) {
	p.clock[i] += took
	f := &p.figures[i]
	k := slices.IndexFunc(f.Sites, func(s stats.Site) bool { return s.Op == op })
	if k < 0 {
		k = len(f.Sites)
		f.Sites = append(f.Sites, stats.Site{Op: op, Place: "a.c:" + op[4:]})
	}
	ns := took*ms + ms/100
	f.Sites[k].Add(&stats.Counts{Calls: 1, Time: ns, Fastest: ns + 1, Slowest: ns})
	f.Busy += ns
}

// round is a common step of all ranks, 20 times.
func round(ms int64) []step { return times(20, work(ms), alike("MPI_Allreduce", four...)) }

// pair is a common step of some ranks, 20 times.
func pair(ms int64, with ...int) []step { return times(20, work(ms), alike("MPI_Allreduce", with...)) }

// late is a call at the beginning, after work of a rank.
func late(ms int64) []step { return []step{work(ms), alike("MPI_Comm_dup", four...)} }

// stage is the steps of a rank in a pipeline.
func stage(rank int, ms int64) []step {
	s := []step{work(ms)}
	if rank > 0 {
		s = append([]step{receives(rank - 1)}, s...)
	}
	if rank < 3 {
		s = append(s, sends(rank+1))
	}
	return append(times(20, s...), alike("MPI_Barrier", four...))
}

// serve is rank 0, which the others ask.
func serve(ms int64) (s []step) {
	for _, r := range four[1:] {
		s = append(s, receives(r), work(ms), sends(r))
	}
	return times(20, s...)
}

func ask(ms int64) []step { return times(20, work(ms), sends(0), receives(0)) }

// turn is a rank that is slow in every fourth step.
func turn(rank int) (s []step) {
	for i := range 40 {
		s = append(s, work(10))
		if i%4 == rank {
			s = append(s, work(20))
		}
		s = append(s, alike("MPI_Barrier", four...))
	}
	return s
}

// A truth is a job whose late ranks are known.
type truth struct {
	name  string
	ranks [][]step
	end   int64 // when it is ended
	late  []int
	says  string // of verdict and where
}

func truths() []truth {
	finalize, barrier := []step{alike("MPI_Finalize", four...)}, alike("MPI_Barrier", four...)
	ends, waits := program(round(1), finalize), program(round(1), []step{hangs("MPI_Barrier")})
	begins, meets := program(late(0), round(10)), times(20, barrier)
	long := program(late(0), round(500))
	return []truth{
		{"all work as long", [][]step{round(10), round(10), round(10), round(10)}, 0, nil, "balanced"},
		{"one works a fifth longer", [][]step{round(10), round(12), round(10), round(10)}, 0, []int{1},
			"in MPI_Allreduce at a.c:Allreduce; the longest"},
		{"two work longer", [][]step{round(10), round(12), round(10), round(12)}, 0, []int{1, 3},
			"ranks 1, 3 were late"},
		{"three work longer", [][]step{round(10), round(14), round(14), round(14)}, 0, nil,
			"most ranks have waited little"},
		{"one is fast and one slow", [][]step{round(1), round(10), round(10), round(30)}, 0, []int{3}, ""},
		{"rank 0 works alone before MPI_Finalize",
			[][]step{program(round(1), []step{work(2000)}, finalize), ends, ends, ends}, 0,
			[]int{0}, "in MPI_Finalize at a.c:Finalize, in few calls"},
		{"rank 0 works alone when the others have left",
			[][]step{program(round(1), []step{work(2000)}), round(1), round(1), round(1)}, 0,
			[]int{0}, "after the others had left the job"},
		{"rank 0 reads for all", [][]step{program(late(600), round(10)), begins, begins, begins}, 0, []int{0},
			"in MPI_Comm_dup at a.c:Comm_dup, in few calls"},
		{"rank 0 reads for all, and rank 2 is slow",
			[][]step{program(late(600), round(10)), begins, program(late(0), round(14)), begins}, 0,
			[]int{2}, "in MPI_Allreduce"},
		{"a call of the beginning is 30 ms late", [][]step{begins, program(late(30), round(10)), begins, begins}, 0,
			nil, "balanced"},
		{"a call of the beginning is 30 ms late in a long job",
			[][]step{long, program(late(30), round(500)), long, long}, 0, nil, "balanced"},
		{"a slow stage of a pipeline", [][]step{stage(0, 10), stage(1, 10), stage(2, 30), stage(3, 10)}, 0,
			[]int{2}, ""},
		{"workers that a master waits for", [][]step{serve(0), ask(30), ask(30), ask(30)}, 0, nil,
			"most ranks have waited little"},
		{"a master that workers wait for", [][]step{serve(10), ask(1), ask(1), ask(1)}, 0, []int{0},
			"in MPI_Recv at a.c:Recv; the longest"},
		{"a slow rank of a group, and a rank of none",
			[][]step{pair(10, 0, 1, 2), pair(10, 0, 1, 2), pair(20, 0, 1, 2), {work(400)}}, 0,
			[]int{2}, "rank 2 was late"},
		{"a group of equals, and ranks of none", [][]step{pair(10, 0, 1), pair(10, 0, 1), {work(200)}, {work(200)}}, 0,
			nil, "balanced"},
		{"each in turn", [][]step{turn(0), turn(1), turn(2), turn(3)}, 0, nil, "balanced"},
		{"the job is ended while rank 0 works",
			[][]step{program(round(1), []step{hangs("")}), waits, waits, waits}, 3000,
			[]int{0}, "in MPI_Barrier at a.c:Barrier, in few calls"},
		{"rank 0 writes files for all", [][]step{times(20, writes(30), barrier), meets, meets, meets}, 0, []int{0},
			"in MPI_Barrier"},
		{"a rank without others", [][]step{{work(100)}}, 0, nil, "no other rank"},
		{"no rank", nil, 0, nil, "no rank has used gompi"},
	}
}

func TestTheVerdictIsTheTruth(t *testing.T) {
	for _, tt := range truths() {
		c := New("./prog", len(tt.ranks))
		c.Run()
		for _, f := range play(t, tt.ranks, tt.end) {
			c.Add("here", &f, 1e9)
		}
		s := c.Summary()
		if says := s.Verdict + " " + s.Where; !slices.Equal(s.Late, tt.late) || !strings.Contains(says, tt.says) {
			t.Errorf("%s: late %v, %s; want %v, %q", tt.name, s.Late, says, tt.late, tt.says)
		}
		for _, r := range s.PerRank {
			if r.Share > 100 || r.Outside < 0 {
				t.Errorf("%s: %+v: want no more than all of its time in calls", tt.name, r)
			}
		}
	}
}

// Calls of two threads at once are no longer wait than one.
func TestCallsAtOnceCountOnce(t *testing.T) {
	c := New("./prog", 2)
	ten := stats.Counts{Calls: 10, Time: 600 * ms, Slowest: 60 * ms}
	for i, sites := range [][]stats.Site{
		{{Op: "MPI_Recv", Counts: ten}, {Op: "MPI_Barrier", Counts: ten}},
		{{Op: "MPI_Barrier", Counts: ten}},
	} {
		c.Add("here", &stats.Figures{Rank: i, Left: 1000 * ms, Busy: 610 * ms, Sites: sites}, 1e9)
	}
	if s := c.Summary(); s.Late != nil || s.PerRank[0].InCalls != 0.61 || s.PerRank[0].Share != 61 {
		t.Errorf("%s: %+v", s.Verdict, s.PerRank)
	}
}
