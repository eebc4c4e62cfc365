package job

import (
	"reflect"
	"testing"

	"gompi/mpirun/internal/ctl"
)

func TestWhatFailedAlikeIsToldInOneLine(t *testing.T) {
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
	fail(1, 0, 11, "was killed by signal 11 (SIGSEGV)")
	j.later.agents = []*cause{{text: "the agent on b exited"}}
	want := []string{
		"then: rank 0,2-3 exited with status 1",
		"then: rank 1 was killed by signal 11 (SIGSEGV)",
		"then: the agent on b exited",
	}
	if got := j.later.then(j.end.cause); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
