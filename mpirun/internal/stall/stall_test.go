package stall

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gompi/mpirun/internal/ctl"
)

// A fakeHost remembers the questions to its agent.
type fakeHost struct {
	name  string
	kept  string
	asked []*ctl.Ask
}

func (h *fakeHost) Name() string { return h.name }

func (h *fakeHost) Kept() string { return h.kept }

func (h *fakeHost) Send(m ctl.Message) { h.asked = append(h.asked, m.(*ctl.Ask)) }

// A bench is a Watch of two hosts, and its output.
type bench struct {
	Watch
	t      *testing.T
	a, b   *fakeHost
	output []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, a: &fakeHost{name: "a"}, b: &fakeHost{name: "b"}}
	b.Named = func(rank int) int { return rank }
	b.Agents = func() []Agent { return []Agent{b.a, b.b} }
	b.Log = func(format string, args ...any) { b.output = append(b.output, fmt.Sprintf(format, args...)) }
	return b
}

// expect checks the output since the last call, and the questions to each agent.
func (b *bench) expect(asks []*ctl.Ask, lines ...string) {
	b.t.Helper()
	if !slices.Equal(b.output, lines) {
		b.t.Errorf("said %q, want %q", b.output, lines)
	}
	for _, h := range []*fakeHost{b.a, b.b} {
		if !reflect.DeepEqual(h.asked, asks) {
			b.t.Errorf("%s was asked %v, want %v", h.name, h.asked, asks)
		}
		h.asked = nil
	}
	b.output = nil
}

// barrier is the answer of a host whose rank is in a barrier, or, with 0, has been in the
// one before.
func barrier(rank int, since time.Duration) *ctl.Doing {
	r := ctl.RankDoing{Rank: rank, Text: "is in no call", Marks: []ctl.Mark{{Seq: 1}}}
	if since > 0 {
		m := ctl.Mark{Seq: 2}
		r = ctl.RankDoing{Rank: rank, Text: "is in barrier() number 2", Since: since, In: m, Marks: []ctl.Mark{m}}
	}
	return &ctl.Doing{Ranks: []ctl.RankDoing{r}}
}

var (
	survey = []*ctl.Ask{{}}
	report = []string{"barrier() number 2: arrived: rank 0; missing: rank 1",
		"a: rank 0 is in barrier() number 2 for 1s", "b: rank 1 is in no call"}
)

func TestASurveyIsReportedWhenAllHaveAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Survey()
		b.Survey() // is under way
		b.expect(survey)
		b.Answered(b.b, barrier(1, 0))
		b.expect(nil)
		b.Answered(b.a, barrier(0, time.Second))
		b.expect(nil, report...)
		b.Answered(b.a, barrier(0, time.Second)) // to a question of somebody else's
		b.Conclude()
		b.expect(nil)
	})
}

func TestAStackIsAskedOfThoseWhoAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Stacks = true
		b.Survey()
		b.expect(survey)
		b.Answered(b.a, barrier(0, time.Second))
		b.Answered(b.b, barrier(1, 0))
		b.expect([]*ctl.Ask{{Stacks: []int{1}}}, report...)
		b.Stack(b.b, &ctl.Stacks{Rank: 1, Text: "main.main()\n\tmain.go:7\n"})
		b.expect(nil, "b: rank 1 stands in\n  | main.main()\n  | \tmain.go:7")
	})
}

func TestASurveyDoesNotWaitForThoseWhoDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Survey()
		b.Answered(b.a, barrier(0, time.Second))
		b.Gone(b.b)
		b.expect(survey, "a: rank 0 is in barrier() number 2 for 1s")
		b.Survey()
		b.Answered(b.a, barrier(0, time.Second))
		begun := time.Now()
		<-b.Late
		if waited := time.Since(begun); waited != SurveyTime {
			t.Errorf("late after %v, want %v", waited, SurveyTime)
		}
		b.Conclude()
		b.expect(survey, "a: rank 0 is in barrier() number 2 for 1s", "b: the agent does not answer")
	})
}

// When ranks have ended for as long as others may wait, the user wants to know, once, the calls
// of the others.
func TestRanksThatHaveEndedAreReportedBesideTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Warning = time.Minute
		begun := time.Now()
		b.Ended(2)
		b.Ended(1)
		b.a.kept = "the agent (process 7) is stopped"
		<-b.RunOn
		if waited := time.Since(begun); waited != b.Warning {
			t.Errorf("after %v, want %v", waited, b.Warning)
		}
		b.Survey()
		m := barrier(0, time.Second)
		m.Ranks[0].Kept = "is stopped"
		b.Answered(b.b, m)
		<-b.Late
		b.Conclude()
		b.expect(survey, "rank 1-2 has ended, and others run on",
			"b: rank 0 is in barrier() number 2 for 1s; it is stopped", "a: the agent (process 7) is stopped")
		b.Ended(0)
		b.Survey() // output is not read, perhaps
		b.Answered(b.a, &ctl.Doing{})
		b.Answered(b.b, &ctl.Doing{})
		b.expect(survey)
	})
}

func TestRanksThatWaitAreReportedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Warning = time.Minute
		b.Stalled(b.a, &ctl.Stalled{On: true, Since: time.Minute}, false)
		b.Stalled(b.b, &ctl.Stalled{On: true, Since: time.Minute}, false) // is told together
		begun := time.Now()
		for _, want := range []time.Duration{2 * time.Minute, 6 * time.Minute, 14 * time.Minute} {
			b.expect(survey)
			b.Answered(b.a, barrier(0, time.Second))
			b.Answered(b.b, barrier(1, 0))
			b.expect(nil, report...)
			<-b.Repeat
			if at := time.Since(begun); at != want {
				t.Errorf("told again after %v, want %v", at, want)
			}
			b.Warn()
		}
		b.Answered(b.a, barrier(0, time.Second))
		b.Answered(b.b, barrier(1, 0))
		b.expect(survey, report...)
		b.Stalled(b.a, &ctl.Stalled{}, false)
		b.expect(nil)
		b.Stalled(b.b, &ctl.Stalled{Since: 3 * time.Minute}, false)
		b.expect(nil, "the ranks continue, after having waited for about 3m0s")
		if b.Repeat != nil {
			t.Error("ranks that continue are to be told of again")
		}
		b.Quiet = true
		b.Stalled(b.a, &ctl.Stalled{On: true, Since: time.Minute}, false)
		b.Stalled(b.a, &ctl.Stalled{}, true) // at the end of a job
		b.expect(nil)
	})
}

func TestDetailsAreReportedOfAFewRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := &ctl.Doing{}
		for rank := range mostStacks + 1 {
			m.Ranks = append(m.Ranks, ctl.RankDoing{Rank: rank, Text: "is outside gompi",
				Details: "5 s of CPU time\nits last output:\nhello"})
		}
		b.Survey()
		b.Gone(b.b)
		b.Answered(b.a, m)
		if got := len(b.output); got != 1+mostStacks ||
			b.output[1] != "a: rank 0: 5 s of CPU time\n  | its last output:\n  | hello" {
			t.Errorf("%d lines, %q; want %d", got, b.output, 1+mostStacks)
		}
	})
}

func TestSurveyNamesThoseWhoAreMissing(t *testing.T) {
	a, b := &fakeHost{name: "a"}, &fakeHost{name: "b"}
	in := func(rank int, comm uint64, seq int64) ctl.RankDoing {
		m := ctl.Mark{Comm: comm, Seq: seq}
		return ctl.RankDoing{Rank: rank, Text: fmt.Sprintf("is in barrier() number %d", seq), Since: time.Second, In: m,
			Marks: []ctl.Mark{m}}
	}
	out := func(rank int, marks ...ctl.Mark) ctl.RankDoing {
		return ctl.RankDoing{Rank: rank, Text: "is in no call", Marks: marks}
	}
	w := Watch{Named: func(rank int) int { return rank }}
	r := &Round{asked: []Agent{a, b}, answers: map[Agent]*ctl.Doing{
		a: {Ranks: []ctl.RankDoing{in(0, 0, 5), in(1, 0, 5), out(2, ctl.Mark{Comm: 0, Seq: 5})}},
		b: {Ranks: []ctl.RankDoing{in(3, 0, 4), out(4), in(5, 1<<32, 7), out(6, ctl.Mark{Comm: 1 << 32, Seq: 6})}},
	}}
	got, missing := w.summary(r, 0)
	want := []string{
		"barrier() number 4: arrived: rank 3; missing: rank 4-6",
		"barrier() number 5: arrived: rank 0-1; missing: rank 3-6",
		"barrier() number 7: arrived: rank 5; missing: rank 6",
		"a: rank 0-1 is in barrier() number 5 for 1s",
		"a, b: rank 2,4,6 is in no call",
		"b: rank 3 is in barrier() number 4 for 1s",
		"b: rank 5 is in barrier() number 7 for 1s",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if want := []int{3, 4, 5, 6}; !reflect.DeepEqual(missing, want) {
		t.Errorf("missing ranks %v, want %v", missing, want)
	}
	if lines := w.Lines(r); !reflect.DeepEqual(lines, got) {
		t.Errorf("Lines are %q, want the same", lines)
	}
	r.answers = map[Agent]*ctl.Doing{a: {Ranks: []ctl.RankDoing{{Rank: 0, Text: "is in x",
		In: ctl.Mark{Seq: 1}}, out(1)}}}
	if lines := w.Lines(r); len(lines) != 2 { // no rank has been in it for long
		t.Errorf("Lines are %q, want none of what a collective lacks", lines)
	}
}

// Processes 4 and 5 are in the places of ranks 1 and 2. The user reads these numbers; agents are
// asked by the processes' numbers.
func TestReplacementsAreKnownByTheRanksInWhosePlacesTheyAre(t *testing.T) {
	a := &fakeHost{name: "a"}
	world, restored := ctl.Mark{Seq: 9}, ctl.Mark{Comm: 1 << 32, Seq: 2}
	doing := func(rank int, in ctl.Mark, marks ...ctl.Mark) ctl.RankDoing {
		return ctl.RankDoing{Rank: rank, Text: "is in barrier() number " + fmt.Sprint(in.Seq), In: in, Marks: marks}
	}
	var output []string
	w := Watch{
		Agents: func() []Agent { return []Agent{a} }, Stacks: true,
		Log:   func(format string, args ...any) { output = append(output, fmt.Sprintf(format, args...)) },
		Named: func(rank int) int { return []int{0, 1, 2, 3, 1, 2}[rank] },
	}
	w.Survey()
	w.Answered(a, &ctl.Doing{Ranks: []ctl.RankDoing{
		doing(0, restored, restored), doing(3, world, world), doing(4, restored, restored),
		{Rank: 5, Text: "is in no call", Details: "more", Marks: []ctl.Mark{{Comm: 1 << 32, Seq: 1}}},
	}})
	w.Stack(a, &ctl.Stacks{Rank: 5, Text: "main"})
	want := []string{
		"barrier() number 9: arrived: rank 3; missing: rank 0",
		"barrier() number 2: arrived: rank 0-1; missing: rank 2",
		"a: rank 0-1 is in barrier() number 2",
		"a: rank 3 is in barrier() number 9",
		"a: rank 2 is in no call",
		"a: rank 2: more",
		"a: rank 2 stands in\n  | main",
	}
	if !slices.Equal(output, want) {
		t.Errorf("said %q\nwant %q", output, want)
	}
	if last := a.asked[len(a.asked)-1].Stacks; !slices.Equal(last, []int{0, 5}) {
		t.Errorf("asked for the stacks of %v, want those of processes 0 and 5", last)
	}
}
