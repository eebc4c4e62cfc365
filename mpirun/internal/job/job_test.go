package job

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gompi/hostfile"
	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/output"
)

// inBubble has a part of a test run with a clock of its own, as other tests here do: it
// takes no time to wait.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func TestRanksStartMeetAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{Programs: []cmdline.Program{{Argv: []string{"prog", "x"}, NP: 2,
			Env: []string{"A=1"}}}}, obedient(well))
		k.wants(0)
		for i, l := range k.links[0] {
			launch := got[*ctl.Launch](l)[0]
			if launch.Size != 2 || launch.Node != i || launch.Ranks[0].Rank != i || !launch.Remote ||
				launch.MasterPort != 7 ||
				!reflect.DeepEqual(got[*ctl.Layout](l)[0].Hosts, []string{"a", "b"}) ||
				!reflect.DeepEqual(launch.Programs, []ctl.Program{{Argv: []string{"prog", "x"},
					Env: []string{"A=1"}}}) {
				t.Errorf("host %d is told %+v", i, launch)
			}
			cards := passed[*wire.Cards](l)[0].Data
			if want := [][]byte{[]byte("card 0"), []byte("card 1")}; !reflect.DeepEqual(cards, want) {
				t.Errorf("host %d gets %q, want %q", i, cards, want)
			}
		}
	})
}

// A host that needs long is named; when one has failed the others get some time.
func TestHostsThatDoNotStartAreReportedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{Reach: cmdline.Reach{StartTimeout: 10 * time.Second}},
			func(l *fakeAgent, m ctl.Message) {
				if m == nil && l.name == "a" {
					l.send(&ctl.Hello{Version: "0.0.1\x1b"})
				}
			})
		k.wants(StatusFailed,
			"gompirun: 1 of 2 agents are up, waiting for b",
			`gompirun: a: its gompirun is version "0.0.1\x1b", want `+ctl.Version+" as here",
			"gompirun: b: the agent has not said hello after 10s")
	})
}

func TestARankThatFailsEndsTheJob(t *testing.T) {
	for _, tt := range []struct {
		name   string
		exit   ctl.Exited
		status int
		lines  []string
		frames string
	}{
		{"with a status", ctl.Exited{Code: 7, Tail: []byte("no disk\n")}, 7,
			[]string{"gompirun: rank 1 on b exited with status 7 (pid 101)", "  | no disk"}, ""},
		{"with a record", ctl.Exited{Code: 1, Recorded: "ValueError: x"}, 1,
			[]string{"gompirun: rank 1 on b exited with status 1 (pid 101): ValueError: x"}, ""},
		{"by a signal", ctl.Exited{Signal: 11}, 139,
			[]string{"gompirun: rank 1 on b was killed by signal 11 (SIGSEGV) (pid 101)",
				"gompirun: to see where it is then: gompirun ... gdb -batch -ex run -ex bt --args prog"}, ""},
		{"with a core", ctl.Exited{Signal: 11, Core: true, CoreFile: "/tmp/core 101"}, 139,
			[]string{"gompirun: rank 1 on b was killed by signal 11 (SIGSEGV), core dumped (pid 101)",
				"gompirun: where it was: gdb -batch -ex bt prog '/tmp/core 101'"}, ""},
		{"with a core that is taken", ctl.Exited{Signal: 6, Core: true, CoreFile: "|systemd-coredump"}, 134,
			[]string{"gompirun: rank 1 on b was killed by signal 6 (SIGABRT), core dumped (pid 101)",
				"gompirun: where it was: coredumpctl gdb 101"}, ""},
		{"in known frames", ctl.Exited{Signal: 11}, 139,
			[]string{"gompirun: rank 1 on b was killed by signal 11 (SIGSEGV) (pid 101)",
				"gompirun: it crashed in", "  | f() at a/x.c:3", "  | main() at a/x.c:9"},
			"f() at a/x.c:3\nmain() at a/x.c:9"},
		{"in known frames, with a core", ctl.Exited{Signal: 11, Core: true, CoreFile: "/tmp/core"}, 139,
			[]string{"gompirun: rank 1 on b was killed by signal 11 (SIGSEGV), core dumped (pid 101)",
				"gompirun: it crashed in", "  | f()", "gompirun: where it was: gdb -batch -ex bt prog /tmp/core"}, "f()"},
		{"in known frames, under a shell", ctl.Exited{Code: 139}, 139,
			[]string{"gompirun: rank 1 on b exited with status 139 (pid 101)", "gompirun: it crashed in", "  | f()"}, "f()"},
		{"without a goodbye", ctl.Exited{Joined: true}, 1,
			[]string{"gompirun: rank 1 on b ended with status 0 without closing its communicators (pid 101)"}, ""},
		{"after an error", ctl.Exited{Joined: true, MPI: true, Recorded: "MPI_ERR_OTHER: x"}, 1,
			[]string{"gompirun: rank 1 on b ended with status 0 although MPI_Finalize had failed (pid 101): MPI_ERR_OTHER: x"}, ""},
		{"as another MPI's", ctl.Exited{Joined: true, MPI: true}, 1,
			[]string{"gompirun: rank 1 on b ended with status 0 without calling MPI_Finalize (pid 101)"}, ""},
	} {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			k := newTestJob(t, &cmdline.Spec{KillDelay: time.Minute}, obedient(func(l *fakeAgent, rank int) {
				if rank == 1 {
					l.crashes(tt.exit, tt.frames)
				}
			}))
			k.wants(tt.status, tt.lines...)
			a := k.links[0][0]
			if died := passed[*wire.Died](a); len(died) == 0 || died[0].Rank != 1 {
				t.Errorf("rank 0 hears of %d deaths, want rank 1's first", len(died))
			}
			if order := got[*ctl.Terminate](a); len(order) != 1 || order[0].Delay != time.Minute {
				t.Errorf("a is ordered %v, want an end within a minute", order)
			}
		}))
	}
}

// The death of a rank that others missed is the cause of their failures, although it becomes known
// later, if nothing of their failures was known on its host; and so is the loss of its agent, if
// that never tells of it.
func TestTheDeathOfARankThatOthersMissedIsTheCause(t *testing.T) {
	for _, tt := range []struct {
		missed, unaware, lost bool
		status                int
		lines                 []string
	}{
		{true, true, false, 137, []string{"gompirun: rank 1 on b was killed by signal 9 (SIGKILL) (pid 101)",
			"gompirun: then: rank 0 exited with status 1"}},
		{true, false, false, 1, []string{"gompirun: rank 0 on a exited with status 1 (pid 100)"}},
		{false, true, false, 1, []string{"gompirun: rank 0 on a exited with status 1 (pid 100)"}},
		{true, true, true, 125, []string{"gompirun: the agent on b exited with status 0 (pid 1), and rank 1 with it",
			"gompirun: then: rank 0 exited with status 1"}},
		{false, true, true, 1, []string{"gompirun: rank 0 on a exited with status 1 (pid 100)",
			"gompirun: then: the agent on b exited with status 0 (pid 1), and rank 1 with it"}},
	} {
		t.Run(fmt.Sprintf("missed %v, unaware %v, agent lost %v", tt.missed, tt.unaware, tt.lost),
			inBubble(func(t *testing.T) {
				script := obedient(func(l *fakeAgent, rank int) {
					if rank == 0 && tt.missed {
						l.send(fromRank(0, &wire.Inquire{Rank: 1}))
					}
					if rank == 0 {
						l.exits(ctl.Exited{Code: 1})
					}
				})
				k := newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
					if _, ok := m.(*ctl.Terminate); ok && l.name == "b" {
						if tt.lost {
							l.Close()
							return
						}
						l.exits(ctl.Exited{Signal: 9, Unaware: tt.unaware})
					}
					script(l, m)
				})
				k.wants(tt.status, tt.lines...)
			}))
	}
}

func TestARankThatLeavesWithoutInitIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{}, obedient(func(l *fakeAgent, rank int) { l.exits(ctl.Exited{}) }))
		k.wants(0)
		if absent := got[*ctl.Absent](k.links[0][0]); len(absent) == 0 || absent[0].Rank > 1 {
			t.Errorf("a hears of %v, want who is absent", absent)
		}
	})
}

// Hosts that inquire are told that a rank has left, whether it has or will; others are not.
func TestAnInquiryIsAnsweredThatARankHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *testJob
		script := obedient(func(l *fakeAgent, rank int) {
			if l.number == 0 {
				l.send(fromRank(0, &wire.Inquire{Rank: 1}))
				return
			}
			l.send(fromRank(1, &wire.Leave{})) // its process continues
		})
		k = newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
			if script(l, m); l.number == 1 {
				return
			}
			switch m.(type) {
			case *ctl.ToRanks:
				if left := passed[*wire.Left](l); len(left) == 1 {
					l.send(fromRank(0, &wire.Inquire{Rank: 1})) // it has left by now
					return
				} else if len(left) == 2 {
					k.links[0][1].exits(ctl.Exited{Joined: true, Closed: true})
				}
				l.exits(ctl.Exited{Joined: true, Closed: true})
			}
		})
		k.wants(0)
		if left := passed[*wire.Left](k.links[0][0]); len(left) != 2 || left[0].Rank != 1 || left[1].Rank != 1 {
			t.Errorf("a hears of %v, want twice that rank 1 has left", left)
		}
		if left := passed[*wire.Left](k.links[0][1]); len(left) > 0 {
			t.Errorf("b hears of %v, and did not inquire", left)
		}
	})
}

func TestAnAgentThatIsLostEndsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{}, obedient(func(l *fakeAgent, rank int) {
			if rank == 1 {
				l.Close()
			}
		}))
		k.wants(StatusFailed, "gompirun: the agent on b exited with status 0 (pid 1), and rank 1 with it")
		if k.swept != 2 {
			t.Errorf("swept %d times, want 2: at once, and when the agents have ended", k.swept)
		}
	})
}

// A survey does not wait for an agent that is lost meanwhile.
func TestAnAgentThatIsLostIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *testJob
		script := obedient(func(l *fakeAgent, rank int) {
			if rank == 0 {
				k.signals <- syscall.SIGQUIT
			}
		})
		k = newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
			if _, ok := m.(*ctl.Ask); ok && l.name == "b" {
				l.Close()
			} else if ok {
				l.send(&ctl.Doing{Ranks: []ctl.RankDoing{{Rank: 0, Text: "computes"}}})
			}
			script(l, m)
		})
		k.wants(StatusFailed, "gompirun: a: rank 0 computes",
			"gompirun: the agent on b exited with status 0 (pid 1), and rank 1 with it")
	})
}

func TestASilentAgentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{Heartbeat: time.Second},
			obedient(func(l *fakeAgent, rank int) { l.silent = rank == 1 }))
		begun := time.Now()
		k.wants(StatusFailed, "gompirun: b: nothing heard for 1s; after 3s the job ends",
			"gompirun: b: nothing heard for 2s; after 3s the job ends",
			"gompirun: b: nothing heard for 3s: the host or the agent on it is frozen, or the network is cut; rank 1 lost with it")
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}

// Of two silent hosts of which one is reached through the other, that one is given up, although of
// the one behind it less was heard at last.
func TestASilentRelayIsGivenUpBeforeWhoIsBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{Heartbeat: time.Second}, obedient(func(l *fakeAgent, rank int) {
			if l.silent = true; rank == 0 {
				time.AfterFunc(700*time.Millisecond, func() { l.update(func() { l.pinged = true }) })
			}
		}))
		k.agent.Relays = []int{0}
		k.wants(StatusFailed, "gompirun: b: nothing heard for 1s; after 3s the job ends",
			"gompirun: a: nothing heard for 1s; after 3s the job ends",
			"gompirun: a: nothing heard for 2s; after 3s the job ends",
			"gompirun: a: nothing heard for 3s: the host or the agent on it is frozen, or the network is cut; 2 ranks from 0 to 1 lost with it: through it were reached b")
	})
}

func TestAFailedJobIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{Restart: cmdline.Restart{Max: 2}}, obedient(func(l *fakeAgent, rank int) {
			switch {
			case l.run == 2:
				well(l, rank)
			case rank == 0:
				l.exits(ctl.Exited{Code: 9})
			}
		}))
		k.wants(0, "gompirun: restart 1 of 2: rank 0 on a exited with status 9 (pid 100)",
			"gompirun: restart 2 of 2: rank 0 on a exited with status 9 (pid 100)")
		ids := map[string]bool{}
		for run, links := range k.links {
			launch := got[*ctl.Launch](links[0])[0]
			ids[launch.JobID] = true
			if want := fmt.Sprintf("GOMPI_RESTARTS=%d", run); !slices.Contains(launch.Env, want) {
				t.Errorf("run %d has no %s: %q", run, want, launch.Env)
			}
		}
		if len(ids) != 3 {
			t.Errorf("runs of jobs %v, want 3, each a job of its own", ids)
		}
	})
}

// An order to end that comes while a failed job would be started again ends it.
func TestAnOrderComesBeforeARestart(t *testing.T) {
	fails := func(l *fakeAgent, rank int) {
		if rank == 0 {
			l.exits(ctl.Exited{Code: 9, Tail: bytes.Repeat([]byte("x"), 1<<18)})
		}
	}
	once := func(k *testJob, status int) {
		if got, last := k.job.Run(); got != status || !strings.Contains(last, "interrupted") || len(k.links) != 1 {
			k.Errorf("status %d, want %d, after %d runs, want 1: %.100q", got, status, len(k.links), last)
		}
	}
	t.Run("while its other ranks end", inBubble(func(t *testing.T) {
		var k *testJob
		script := obedient(fails)
		k = newTestJob(t, &cmdline.Spec{Restart: cmdline.Restart{Max: 2}}, func(l *fakeAgent, m ctl.Message) {
			if _, ok := m.(*ctl.Terminate); ok && !l.ended {
				k.signals <- syscall.SIGINT
			}
			script(l, m)
		})
		once(k, 130)
	}))
	t.Run("while the restart is reported", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		k := newTestJob(t, &cmdline.Spec{Restart: cmdline.Restart{Max: 2}}, obedient(fails))
		k.job.system.Stderr, k.signals = w, make(chan os.Signal)
		k.job.out = output.New(k.job.system.Stdout, w)
		go func() { // the report is longer than a pipe holds: the signal is taken while it is written
			line, _ := bufio.NewReader(r).ReadString(':')
			if line == "gompirun:" {
				k.signals <- syscall.SIGINT
			}
			io.Copy(io.Discard, r)
		}()
		once(k, 130)
	})
}

func TestAJobContinuesWithoutTheHostThatIsLost(t *testing.T) {
	for minNP, want := range map[int]int{1: 0, 2: StatusFailed} {
		t.Run(fmt.Sprint(minNP), inBubble(func(t *testing.T) {
			k := newTestJob(t, &cmdline.Spec{Restart: cmdline.Restart{MinNP: minNP}},
				obedient(func(l *fakeAgent, rank int) {
					switch {
					case l.run == 1:
						well(l, rank)
					case l.name == "a":
						l.Close()
					}
				}))
			lost := "the agent on a exited with status 0 (pid 1), and rank 0 with it"
			if want != 0 {
				k.wants(want, "gompirun: "+lost+"; ranks left: 1, and -min-np is 2")
				return
			}
			k.wants(0, "gompirun: continuing without a: "+lost)
			if launch := got[*ctl.Launch](k.links[1][0])[0]; launch.Size != 1 ||
				got[*ctl.Layout](k.links[1][0])[0].Hosts[0] != "b" {
				t.Errorf("the second run is %+v, want one rank on b", launch)
			}
		}))
	}
}

// The time limit is for all runs together.
func TestTheTimeLimitEndsTheJob(t *testing.T) {
	for restarts := range 2 {
		t.Run(fmt.Sprint(restarts), inBubble(func(t *testing.T) {
			k := newTestJob(t, &cmdline.Spec{Timeout: time.Minute, Restart: cmdline.Restart{Max: restarts}},
				obedient(func(l *fakeAgent, rank int) {
					if l.run < restarts && rank == 0 {
						time.Sleep(40 * time.Second)
						l.exits(ctl.Exited{Code: 3})
					}
				}))
			begun := time.Now()
			var says []string
			if restarts > 0 {
				says = append(says, "gompirun: restart 1 of 1: rank 0 on a exited with status 3")
			}
			k.wants(StatusTimeout, append(says, "gompirun: time limit of 1m0s reached")...)
			if took := time.Since(begun); took < time.Minute || took > 61*time.Second {
				t.Errorf("ended after %v, want a minute", took)
			}
		}))
	}
}

// At the time limit all ranks are asked for their stacks, and waited for, if the user wants
// stacks.
func TestStacksComeBeforeTheTimeLimitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := obedient(func(*fakeAgent, int) {})
		k := newTestJob(t, &cmdline.Spec{Timeout: time.Minute, Stall: cmdline.Stall{Stacks: true}},
			func(l *fakeAgent, m ctl.Message) {
				if ask, ok := m.(*ctl.Ask); ok && len(ask.Stacks) > 0 {
					l.send(&ctl.Stacks{Rank: l.rank(), Text: "main.main()\n"})
				} else if ok {
					l.send(&ctl.Doing{Ranks: []ctl.RankDoing{{Rank: l.rank(), Text: "computes"}}})
				}
				script(l, m)
			})
		// The agents answer at the same time.
		k.job.Hosts = []hostfile.Host{{Name: "a", Slots: 2}}
		k.job.Programs[0].NP = 1
		begun := time.Now()
		k.wants(StatusTimeout, "gompirun: a: rank 0 computes", "gompirun: a: rank 0 stands in", "  | main.main()",
			"gompirun: time limit of 1m0s reached")
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("ended after %v, want no wait after the last answer", took)
		}
	})
}

// Ranks that wait are told of, with the stack of the one that is missing.
func TestRanksThatWaitAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := obedient(func(l *fakeAgent, rank int) {
			if rank == 0 {
				l.send(&ctl.Stalled{On: true, Since: time.Minute})
			}
		})
		k := newTestJob(t, &cmdline.Spec{Stall: cmdline.Stall{Warning: time.Minute, Stacks: true}},
			func(l *fakeAgent, m ctl.Message) {
				ask, ok := m.(*ctl.Ask)
				switch {
				case ok && len(ask.Stacks) == 0 && l.name == "a":
					l.send(&ctl.Doing{Ranks: []ctl.RankDoing{{Rank: 0, Text: "is in barrier() number 1",
						Since: time.Minute, In: ctl.Mark{Seq: 1}, Marks: []ctl.Mark{{Seq: 1}}}}})
				case ok && len(ask.Stacks) == 0:
					l.send(&ctl.Doing{Ranks: []ctl.RankDoing{{Rank: 1, Text: "is in no call"}}})
				case ok && l.name == "b":
					l.send(&ctl.Stacks{Rank: ask.Stacks[0], Text: "main.main()\n"})
					well(l, 1)
				case ok:
					l.send(&ctl.Stalled{Since: 2 * time.Minute})
					well(l, 0)
				}
				script(l, m)
			})
		got, _ := k.job.Run()
		data, _ := os.ReadFile(k.output)
		for _, want := range []string{
			"gompirun: barrier() number 1: arrived: rank 0; missing: rank 1\ngompirun: a: rank 0 is in barrier() number 1 for 1m0s\ngompirun: b: rank 1 is in no call\n",
			"gompirun: b: rank 1 stands in\n  | main.main()\n",
			"gompirun: the ranks continue, after having waited for about 2m0s\n",
		} {
			if got != 0 || !strings.Contains(string(data), want) {
				t.Errorf("status %d, %q; want %q", got, data, want)
			}
		}
	})
}

// The first signal ends the job in good order, the second kills it, the third even the
// agents.
func TestSignalsEndTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *testJob
		script := obedient(func(l *fakeAgent, rank int) {
			if rank == 0 {
				k.signals <- syscall.SIGUSR1
			}
		})
		k = newTestJob(t, &cmdline.Spec{KillDelay: time.Hour}, func(l *fakeAgent, m ctl.Message) {
			l.silent = true // its ranks do not end
			script(l, m)
			if s, ok := m.(*ctl.Signal); ok && l.name == "a" && s.Number == int(syscall.SIGUSR1) {
				k.signals <- syscall.SIGINT
			}
			if order, ok := m.(*ctl.Terminate); ok && l.name == "a" {
				if len(got[*ctl.Terminate](l)) == 2 && order.Delay != 0 {
					t.Errorf("the second order is %+v, want one without delay", order)
				}
				k.signals <- syscall.SIGTERM // timeout's signal to its process group
				time.Sleep(echoTime)         // of the bubble's clock
				k.signals <- syscall.SIGTERM
			}
		})
		k.wants(130, "gompirun: interrupted: ending the job; once more kills it", "gompirun: interrupted",
			"gompirun: then: the agent on ", "gompirun: then: the agent on ")
	})
}

// Ranks get no more input than they read.
func TestInputGoesToTheRankThatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunks := make(chan Input)
		k := newTestJob(t, &cmdline.Spec{}, nil)
		k.job.spec.Stdin.Rank = 1
		k.job.system.Stdin = func() <-chan Input { return chunks }
		held := 0
		k.script = obedient(func(l *fakeAgent, rank int) {
			if rank == 0 {
				well(l, rank)
				return
			}
			go func() { // offers input until it is taken no more
				defer close(chunks)
				for {
					select {
					case chunks <- Input{Data: make([]byte, inputAhead/4)}:
						held++
					case <-time.After(time.Minute):
						l.send(&ctl.Consumed{Bytes: held * inputAhead / 4})
						return
					}
				}
			}()
		})
		obey := k.script
		k.script = func(l *fakeAgent, m ctl.Message) {
			if in, ok := m.(*ctl.Input); ok && len(in.Data) == 0 {
				well(l, 1)
			}
			obey(l, m)
		}
		k.wants(0)
		if held != 4 {
			t.Errorf("%d quarters of what may be ahead were taken, want 4", held)
		}
		if to := len(got[*ctl.Input](k.links[0][0])); to != 0 {
			t.Errorf("rank 0 gets %d pieces of input", to)
		}
	})
}

// A host whose ranks have ended does not hold up the input of the others.
func TestInputContinuesWhenAHostsRanksHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 12 // each a quarter of inputAhead
		chunks := make(chan Input, pieces)
		for range pieces {
			chunks <- Input{Data: make([]byte, inputAhead/4)}
		}
		close(chunks)
		script := obedient(func(l *fakeAgent, rank int) {
			if rank == 0 {
				well(l, rank)
			}
		})
		k := newTestJob(t, &cmdline.Spec{Timeout: time.Minute}, func(l *fakeAgent, m ctl.Message) {
			if in, ok := m.(*ctl.Input); ok && l.name == "b" {
				l.send(&ctl.Consumed{Bytes: len(in.Data)})
				if len(in.Data) == 0 {
					well(l, 1)
				}
			}
			script(l, m)
		})
		k.job.spec.Stdin = cmdline.Stdin{All: true}
		k.job.system.Stdin = func() <-chan Input { return chunks }
		k.wants(0)
	})
}

// Ranks that meet over PMI-1 and ranks of gompi would wait for each other for ever.
func TestBarriersOfPMIAndMixtures(t *testing.T) {
	for mixed, want := range map[bool]int{false: 0, true: StatusFailed} {
		t.Run(fmt.Sprint(mixed), inBubble(func(t *testing.T) {
			script := obedient(well)
			k := newTestJob(t, &cmdline.Spec{}, func(l *fakeAgent, m ctl.Message) {
				switch m := m.(type) {
				case *ctl.Launch:
					if !mixed || l.name == "b" {
						l.send(&ctl.Started{PIDs: []int{1}}, &ctl.Fence{Puts: []string{l.name, "1"}})
						return
					}
				case *ctl.Fenced:
					if len(m.Puts) != 4 {
						t.Errorf("all have put %q, want what each has", m.Puts)
					}
					well(l, 0)
				}
				script(l, m)
			})
			var says []string
			if mixed {
				says = []string{"gompirun: some ranks are of gompi and some of another MPI library: they wait for each other in vain"}
			}
			k.wants(want, says...)
		}))
	}
}

// With -no-kill-children a host whose ranks have ended learns the end of the job before it lets
// go of their leftovers.
func TestHostsThatKeepChildrenHearHowTheJobEnds(t *testing.T) {
	for status, says := range map[int][]string{0: nil, 4: {"gompirun: rank 1 on b exited with status 4"}} {
		synctest.Test(t, func(t *testing.T) {
			obeys := obedient(func(l *fakeAgent, rank int) {
				l.ended = true
				l.send(&ctl.Exited{Rank: rank, PID: 100 + l.number, Time: int64(1 + rank), Joined: rank*status == 0,
					Closed: rank*status == 0, Code: rank * status})
			})
			k := newTestJob(t, &cmdline.Spec{KeepChildren: true}, func(l *fakeAgent, m ctl.Message) {
				obeys(l, m)
				switch m.(type) {
				case *ctl.NoMore, *ctl.Terminate:
					l.send(&ctl.Drained{})
				}
			})
			k.wants(status, says...)
			for _, l := range k.links[0] {
				if n := len(got[*ctl.Terminate](l)); n > 0 != (status != 0) {
					t.Errorf("status %d: %s has been ordered %d times to end", status, l.name, n)
				}
			}
		})
	}
}

// While a file system does not answer, a signal ends the job all the same.
func TestASignalEndsAJobThatWaitsForFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestJob(t, &cmdline.Spec{}, nil)
		k.job.signals = k.signals
		k.signals <- syscall.SIGTERM
		answers := make(chan bool)
		defer close(answers)
		_, err := during(k.job, "waiting", func() (bool, error) { return <-answers, nil })
		if err == nil || k.job.end.cause == nil || k.job.end.cause.Status != 143 {
			t.Errorf("%v, and the job ends by %+v; want status 143", err, k.job.end.cause)
		}
		k.job.out.Close()
	})
}

// A job that preloads nothing does not say that its time was up in reading it.
func TestNothingToPreloadIsNotWaitedFor(t *testing.T) {
	over := make(chan time.Time, 1)
	over <- time.Time{}
	j := &Job{spec: &cmdline.Spec{}, timer: over, done: make(chan struct{})}
	defer close(j.done)
	if err := j.awaitOffer(); err != nil || j.end.cause != nil || len(over) != 1 {
		t.Errorf("got %v, %+v: want an offer at once", err, j.end.cause)
	}
}
