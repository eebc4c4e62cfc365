package job

import (
	"reflect"
	"testing"

	"gompi/mpirun/internal/ctl"
)

func TestWhatFailedAlikeIsReportedInOneLine(t *testing.T) {
	j := &Job{}
	fail := func(rank, code, signal int, how string) *cause {
		c := &cause{text: how}
		j.failedToo(&ctl.Exited{Rank: rank, Code: code, Signal: signal}, how, c)
		return c
	}
	fail(3, 1, 0, "exited with status 1")
	j.end.cause = fail(4, 7, 0, "exited with status 7") // heard of later, but earlier in time
	fail(2, 1, 0, "exited with status 1")
	fail(0, 1, 0, "exited with status 1")
	fail(5, 0, 15, "was killed by signal 15 (SIGTERM)") // by the end of the job
	fail(6, 137, 0, "exited with status 137")
	j.failedToo(&ctl.Exited{Rank: 7, Signal: 15, Recorded: "ValueError: x"}, "failed, and was ended with the job", &cause{})
	fail(1, 0, 11, "was killed by signal 11 (SIGSEGV)")
	j.later.agents = []*cause{{text: "the agent on b exited"}}
	want := []string{
		"then: rank 0,2-3 exited with status 1",
		"then: rank 7 failed, and was ended with the job",
		"then: rank 1 was killed by signal 11 (SIGSEGV)",
		"then: the agent on b exited",
	}
	if got := j.later.then(j.end.cause); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Ranks 4 and 5 were in the place of rank 1.
func TestAReplacementThatFailedIsReportedByItsRank(t *testing.T) {
	j := &Job{}
	j.recover.originals = map[int]int{4: 1, 5: 1}
	for _, rank := range []int{5, 4, 2} {
		j.failedToo(&ctl.Exited{Rank: rank, Code: 3}, "exited with status 3", &cause{})
	}
	want := []string{"then: rank 1-2 exited with status 3"}
	if got := j.later.then(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for rank, want := range map[int]int{0: 0, 1: 5, 4: 5, 5: 5, 2: 2} {
		if got := j.recover.current(rank); got != want {
			t.Errorf("rank %d is now %d, want %d", rank, got, want)
		}
	}
}

// A rank that has called Abort exits by that. If a signal ends it instead, that is another failure.
func TestTheExitOfARankThatHasAbortedIsNotReported(t *testing.T) {
	j := &Job{}
	first := &cause{abort: true, rank: 1}
	for rank, signal := range []int{0, 0, 0, 11} {
		j.failedToo(&ctl.Exited{Rank: rank, Code: 3, Signal: signal}, "has ended", &cause{})
	}
	if got, want := j.later.then(first), []string{"then: rank 0,2-3 has ended"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	first.rank = 3
	if got, want := j.later.then(first), []string{"then: rank 0-3 has ended"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
