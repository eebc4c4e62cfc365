package job

import (
	"reflect"
	"testing"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
)

func TestWhatFailedAlikeIsReportedInOneLine(t *testing.T) {
	j := &Job{}
	fail := func(rank, code, signal int, how string) *failure.Cause {
		c := &failure.Cause{Text: how}
		j.failedToo(&ctl.Exited{Rank: rank, Code: code, Signal: signal}, how, c)
		return c
	}
	fail(3, 1, 0, "exited with status 1")
	j.end.cause = fail(4, 7, 0, "exited with status 7") // heard of later, but earlier in time
	fail(2, 1, 0, "exited with status 1")
	fail(0, 1, 0, "exited with status 1")
	fail(5, 0, 15, "was killed by signal 15 (SIGTERM)") // by the end of the job
	fail(6, 137, 0, "exited with status 137")
	j.failedToo(&ctl.Exited{Rank: 7, Signal: 15, Recorded: "ValueError: x"}, "failed, and was ended with the job",
		&failure.Cause{})
	fail(1, 0, 11, "was killed by signal 11 (SIGSEGV)")
	j.later.AddAgent(&failure.Cause{Text: "the agent on b exited"})
	want := []string{
		"then: rank 0,2-3 exited with status 1",
		"then: rank 7 failed, and was ended with the job",
		"then: rank 1 was killed by signal 11 (SIGSEGV)",
		"then: the agent on b exited",
	}
	if got := j.later.Lines(j.end.cause); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Ranks 4 and 5 were in the place of rank 1.
func TestAReplacementThatFailedIsReportedByItsRank(t *testing.T) {
	j := &Job{}
	j.recover.Prepare(make([]int, 4), 1, 2)
	j.recover.Take(1)
	j.recover.Take(1)
	for _, rank := range []int{5, 4, 2} {
		j.failedToo(&ctl.Exited{Rank: rank, Code: 3}, "exited with status 3", &failure.Cause{})
	}
	want := []string{"then: rank 1-2 exited with status 3"}
	if got := j.later.Lines(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for rank, want := range map[int]int{0: 0, 1: 5, 4: 5, 5: 5, 2: 2} {
		if got := j.recover.Current(rank); got != want {
			t.Errorf("rank %d is now %d, want %d", rank, got, want)
		}
	}
}

// A rank that has called Abort exits by that. If a signal ends it instead, that is another failure.
func TestTheExitOfARankThatHasAbortedIsNotReported(t *testing.T) {
	j := &Job{}
	first := &failure.Cause{Abort: true, Rank: 1}
	for rank, signal := range []int{0, 0, 0, 11} {
		j.failedToo(&ctl.Exited{Rank: rank, Code: 3, Signal: signal}, "has ended", &failure.Cause{})
	}
	if got, want := j.later.Lines(first), []string{"then: rank 0,2-3 has ended"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	first.Rank = 3
	if got, want := j.later.Lines(first), []string{"then: rank 0-3 has ended"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatAProgramLacksIsReported(t *testing.T) {
	for _, says := range []string{"/usr/bin/python3: No module named gompi_torch\n",
		"ModuleNotFoundError: No module named 'gompi_torch'\n"} {
		t.Run(says, inBubble(func(t *testing.T) {
			k := newTestJob(t, &cmdline.Spec{KillDelay: time.Minute}, obedient(func(l *fakeAgent, rank int) {
				if rank == 1 {
					l.exits(ctl.Exited{Code: 1, Tail: []byte(says)})
				}
			}))
			k.wants(1, "gompirun: rank 1 on b exited with status 1 (pid 101)", "  | "+says[:len(says)-1],
				"gompirun: this Python has no gompi_torch: pip install gompi-*.whl, which make wheel puts into dist; see docs/pytorch.md")
		}))
	}
}
