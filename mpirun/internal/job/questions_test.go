package job

import (
	"reflect"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/monitor"
)

// ask asks the job and returns its answer.
func ask[T any](k *testJob, question func(monitor.Reply[T]) monitor.Question) T {
	r := monitor.NewReply[T]()
	k.asks <- question(r)
	return <-r.Answered()
}

func (k *testJob) whereIs(rank int) monitor.Whereabouts {
	return ask(k, func(r monitor.Reply[monitor.Whereabouts]) monitor.Question {
		return monitor.WhereIs{Rank: rank, Reply: r}
	})
}

func (k *testJob) describe() monitor.Job {
	return ask(k, func(r monitor.Reply[monitor.Job]) monitor.Question { return monitor.Describe{Reply: r} })
}

func (k *testJob) order(s syscall.Signal) monitor.Order {
	return ask(k, func(r monitor.Reply[monitor.Order]) monitor.Question { return monitor.Signal{Signal: s, Reply: r} })
}

// answering is a script of agents that answer with a call of their rank.
func answering(l *fakeAgent, m ctl.Message) {
	if a, ok := m.(*ctl.Ask); ok {
		r := ctl.RankDoing{Rank: l.rank(), PID: 77, Text: "is in barrier() number 2", Since: 2 * time.Second}
		l.send(&ctl.Doing{Ranks: []ctl.RankDoing{r}, Counts: a.Counts})
	}
}

func TestQuestionsAreAnsweredByTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *testJob
		var answers []monitor.Whereabouts
		script := obedient(func(l *fakeAgent, rank int) {
			if rank != 0 {
				return
			}
			go func() {
				for _, rank := range []int{1, 5} {
					answers = append(answers, k.whereIs(rank))
				}
				k.signals <- syscall.SIGTERM
			}()
		})
		k = newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
			answering(l, m)
			script(l, m)
		})
		k.wants(143, "gompirun: ended by signal 15 (terminated)")
		want := []monitor.Whereabouts{
			{Host: "b", PID: 77, Err: "rank 1 is process 77 on b, where gompirun did not log in: run the debugger there"},
			{Err: "rank 5 does not run: the job has 2 ranks"},
		}
		if !reflect.DeepEqual(answers, want) {
			t.Errorf("%+v, want %+v", answers, want)
		}
	})
}

// A job is described from its start to its end, and the order to end it is followed.
func TestAJobDescribesItselfAndFollowsOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *testJob
		var early, ending monitor.Job
		var order monitor.Order
		asked := make(chan struct{}) // closed when all has been
		script := obedient(func(l *fakeAgent, rank int) {
			if rank != 0 {
				return
			}
			go func() {
				defer close(asked)
				j := k.describe()
				want := []string{"a, b: rank 0-1 is in barrier() number 2 for 2s"}
				if j.State != monitor.Running || j.Size != 2 || len(j.Hosts) != 2 || len(j.Ranks) != 2 ||
					j.Ranks[1].PID != 77 || !reflect.DeepEqual(j.Lines, want) || j.Since != 2 {
					t.Errorf("%+v, want a job of two ranks that runs, and %q", j, want)
				}
				order = k.order(syscall.SIGINT)
				ending = k.describe()
			}()
		})
		k = newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
			if m == nil && l.name == "a" { // it has not said hello
				early = k.describe()
			}
			if _, ok := m.(*ctl.Terminate); ok {
				time.Sleep(time.Second) // of the bubble's clock: until it has been asked
			}
			answering(l, m)
			script(l, m)
		})
		k.wants(130, "gompirun: interrupted: ending the job; once more kills it", "gompirun: interrupted")
		<-asked
		if early.State != monitor.Starting || early.Size != 0 || len(early.Programs) != 1 ||
			early.Programs[0] != "prog" {
			t.Errorf("before it runs: %+v", early)
		}
		if ending.State != monitor.Ending || ending.Why != "interrupted" {
			t.Errorf("at its end: %+v", ending)
		}
		if !order.Ends || order.Limit < 10 {
			t.Errorf("%+v, want that the job ends, in some seconds", order)
		}
	})
}

// Agents that do not answer do not keep the others' answers, nor does an end.
func TestADescriptionWaitsForNoAgentForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *testJob
		script := obedient(func(l *fakeAgent, rank int) {
			if rank != 0 {
				return
			}
			go func() {
				j := k.describe()
				want := []string{"a: rank 0 is in barrier() number 2 for 2s", "b: the agent does not answer"}
				if !reflect.DeepEqual(j.Lines, want) || len(j.Ranks) != 1 {
					t.Errorf("%+v, want %q", j, want)
				}
				go func() {
					if w := k.whereIs(1); w.Err != "rank 1 on b has ended" {
						t.Errorf("%+v of a rank that ends", w)
					}
				}()
				k.order(syscall.SIGKILL)
			}()
		})
		k = newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
			if l.name == "a" {
				answering(l, m)
			}
			script(l, m)
		})
		k.wants(137, "gompirun: killed by the user")
		if orders := got[*ctl.Terminate](k.links[0][0]); len(orders) != 1 || orders[0].Delay != 0 {
			t.Errorf("KILL orders %+v, want an end at once", orders)
		}
	})
}
