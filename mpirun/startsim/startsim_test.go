package startsim

import (
	"math"
	"testing"
)

func run(t *testing.T, s *Site, j Job) Result {
	t.Helper()
	r, err := s.Run(j)
	if err != nil {
		t.Fatalf("%+v: %v", j, err)
	}
	if !(0 < r.Agents && r.Agents < r.Met && r.Met < r.Ready && r.Ready <= r.Used && r.Used < r.Ended) {
		t.Errorf("%+v: times are not in order: %+v", j, r)
	}
	return r
}

// Where only processors cost something, a start takes what its longest chain of processes does.
func TestAStartTakesWhatItsProcessesTake(t *testing.T) {
	free := Site{Costs: Costs{Launcher: 1, Fork: 2, Client: 8, Server: 16, Agent: 100, Spawn: 1000, Process: 1e4, Card: 1e5, Close: 1e6}}
	for _, tt := range []struct {
		job                        Job
		agents, met, ready, logins float64
	}{
		// gompirun forks twice, one after the other; of the second host it hears last.
		{Job{Ranks: 4, PerHost: 2}, 1 + 2*2 + 8 + 16 + 100, 2*1000 + 1e4, 4e5, 2},
		// The third host is started from the second: two logins in a row, a relay and an agent.
		{Job{Ranks: 3, PerHost: 1, Fanout: 1}, 1 + 3*(2+8+16+100) + 2*(2+100), 1000 + 1e4, 3e5, 1},
		{Job{Ranks: 3}, 1 + 2 + 100, 3*1000 + 1e4, 3e5, 0},
	} {
		r := run(t, &free, tt.job)
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-6*want {
				t.Errorf("%+v: %s %v, want %v", tt.job, what, got, want)
			}
		}
		near("agents run after", r.Agents, tt.agents)
		near("ranks have met after", r.Met, tt.agents+tt.met)
		near("they are ready after", r.Ready, tt.agents+tt.met+tt.ready)
		near("all has ended after", r.Ended, tt.agents+tt.met+tt.ready+1e6)
		near("logins", float64(r.Logins), tt.logins)
	}
}

// Costs were found with up to 256 ranks; starts of more are foretold by them. Measured on an AMD
// EPYC (family 25, model 17), two virtual processors: docs/scale.md.
func TestStartsOnOneMachineTakeWhatIsMeasured(t *testing.T) {
	for ranks, measured := range map[int]float64{16: 0.050, 64: 0.137, 128: 0.315, 256: 0.458, 512: 1.02, 1024: 3.14, 2048: 11.2} {
		if r := run(t, &One, Job{Ranks: ranks}); math.Abs(r.Ended/measured-1) > 0.15 {
			t.Errorf("%d ranks: %.3f s, measured %.3f", ranks, r.Ended, measured)
		}
	}
}

// A tree takes less of gompirun's host than a star, and of many hosts less time.
func TestATreeCostsLessThanAStar(t *testing.T) {
	for _, ranks := range []int{1000, 4000} {
		star, tree := run(t, &Cluster, Job{Ranks: ranks, PerHost: 8}), run(t, &Cluster, Job{Ranks: ranks, PerHost: 8, Fanout: 64})
		if star.Depth != 1 || tree.Depth != 2 || star.Logins != ranks/8 || tree.Logins >= 64 {
			t.Errorf("%d ranks: a star of depth %d with %d logins, a tree of %d with %d", ranks, star.Depth, star.Logins, tree.Depth, tree.Logins)
		}
		if tree.Used >= star.Used || tree.Launcher >= star.Launcher/2 || tree.Sent >= star.Sent/2 || tree.Needs.Launcher >= star.Needs.Launcher {
			t.Errorf("%d ranks: a tree %+v, a star %+v", ranks, tree, star)
		}
	}
}

// What does not fit is refused.
func TestAJobThatIsNoneIsRefused(t *testing.T) {
	for _, j := range []Job{{}, {Ranks: -1}, {Ranks: 2, PerHost: -1}, {Ranks: 2, PerHost: 1, Fanout: -1}} {
		if r, err := One.Run(j); err == nil {
			t.Errorf("%+v: %+v, want an error", j, r)
		}
	}
}
