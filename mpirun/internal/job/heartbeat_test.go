package job

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/link"
)

func TestTheFastestAnswerGivesTheClocksDifference(t *testing.T) {
	node := &host{Entry: inventory.Entry{Host: "node7", Agent: &fakeAgent{}}}
	const ahead = int64(5 * time.Second)
	for _, p := range []struct{ out, back time.Duration }{{10, 90}, {3, 1}, {50, 1}, {2, 4}} {
		out, back := int64(p.out*time.Millisecond), int64(p.back*time.Millisecond)
		node.ponged(&ctl.Pong{Sent: 1000, Now: 1000 + out + ahead}, 1000+out+back)
	}
	if got := node.pulse.clock.Ours(ahead + 77); max(got-77, 77-got) > int64(time.Millisecond) {
		t.Errorf("a time is off by %v, want at most half of the fastest answer's 4 ms less their difference",
			time.Duration(got-77))
	}
	here := &host{Entry: inventory.Entry{Started: &link.Started{Here: true}}}
	here.ponged(&ctl.Pong{Sent: 0, Now: 50}, 10)
	if here.pulse.clock.Ours(7) != 7 {
		t.Error("a host has a clock that differs from itself")
	}
}

// A process of this machine that is kept from running is as silent as another host that is lost.
// gompirun sees the difference.
func TestWhatIsKeptFromRunningHereIsNotGivenUp(t *testing.T) {
	for _, tt := range []struct {
		agent link.Started
		kept  string
		lines []string
	}{
		{link.Started{Via: "ssh", PID: 7}, "is stopped",
			[]string{"gompirun: b: nothing heard for 1s: ssh (process 7) is stopped",
				"gompirun: b: nothing heard for 2s: ssh (process 7) is stopped"}},
		{link.Started{Via: "local", PID: 7, Here: true}, "gets no processor",
			[]string{"gompirun: b: nothing heard for 1s: the agent (process 7) gets no processor",
				"gompirun: b: nothing heard for 2s: the agent (process 7) gets no processor"}},
		{link.Started{Via: "local", PID: 7, Here: true}, "",
			[]string{"gompirun: b: nothing heard for 1s", "gompirun: b: nothing heard for 2s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newTestJob(t, &cmdline.Spec{Heartbeat: time.Second}, obedient(func(l *fakeAgent, rank int) {
				l.silent = rank == 1
				time.AfterFunc(3500*time.Millisecond, func() { l.update(func() { l.pinged = true }) })
				time.AfterFunc(4500*time.Millisecond, func() { well(l, rank) })
			}))
			k.agent, k.kept = tt.agent, tt.kept
			k.wants(0, append(tt.lines, "gompirun: b: heard again after 3.")...)
		})
	}
}

// Data that came while this process did not run may be unread.
func TestABeatThatComesLateCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{Heartbeat: time.Second}, obedient(well))
		j := k.job
		defer j.out.Close()
		h := &host{Entry: inventory.Entry{Host: "a", Agent: &fakeAgent{}, Started: &link.Started{}}}
		j.hosts = []*host{h}
		defer j.startBeats()()
		for range 100 {
			time.Sleep(2 * j.heart.every)
			j.beat()
		}
		if h.pulse.missed != 0 {
			t.Errorf("late beats: silent for %d, want 0", h.pulse.missed)
		}
		time.Sleep(j.heart.every)
		if j.beat(); h.pulse.missed != 1 {
			t.Errorf("a beat in time: silent for %d, want 1", h.pulse.missed)
		}
		time.Sleep(3 * time.Second)
		j.beat()
		j.flush()
		want := "gompirun: gompirun itself did not run for 3s: it was stopped, or got no processor\n"
		if got, err := os.ReadFile(k.output); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
}

// An agent of another node's gompirun is no process here.
func TestAnAgentThatDoesNotEndIsNamed(t *testing.T) {
	for _, tt := range []struct {
		pid  int
		want string
	}{{7, "left behind (process 7)\n"}, {0, "left behind\n"}} {
		k := newTestJob(t, &cmdline.Spec{}, obedient(well))
		k.job.hosts = []*host{{Entry: inventory.Entry{Host: "a", Agent: &fakeAgent{},
			Started: &link.Started{PID: tt.pid}}}}
		k.job.leaveBehind()
		k.job.flush()
		k.job.out.Close()
		if got, err := os.ReadFile(k.output); err != nil ||
			string(got) != "gompirun: a: the agent does not end, and is "+tt.want || k.swept != 1 {
			t.Errorf("%q, %v, and swept %d times; want %q, and once", got, err, k.swept, tt.want)
		}
	}
}

// A better answer of the clock does not reorder two failures of one host.
func TestTheFirstFailureOnAHostIsTheCause(t *testing.T) {
	b := &host{Entry: inventory.Entry{Host: "b"}}
	j := newTestJob(t, &cmdline.Spec{}, nil).job
	defer j.out.Close()
	j.exited(b, &ctl.Exited{Rank: 2, Code: 7, Time: 50e6})
	b.pulse.clock.Compare(0, 30e6, 0)
	j.exited(b, &ctl.Exited{Rank: 3, Code: 8, Time: 60e6})
	if j.end.cause.Status != 7 {
		t.Errorf("the job ended with status %d, want 7, of the first on that host", j.end.cause.Status)
	}
}
