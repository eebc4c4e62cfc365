package startsim

import (
	"fmt"
	"math"
	"testing"

	"gompi/comm/sim"
)

// site returns a machine with measured costs.
func site(t *testing.T, machine string) *Site {
	t.Helper()
	m, err := sim.Parse(machine)
	if err != nil {
		t.Fatal(err)
	}
	return &Site{m, Measured}
}

func run(t *testing.T, s *Site, ranks, fanout int) Result {
	t.Helper()
	r, err := s.Run(ranks, fanout)
	if err != nil {
		t.Fatal(err)
	}
	if !(0 < r.Agents && r.Agents < r.Met && r.Met < r.Ready && r.Ready <= r.Used && r.Used < r.Ended) {
		t.Errorf("%d ranks: times are not in order: %+v", ranks, r)
	}
	return r
}

// If only processors have a cost, a start takes the time of its longest chain of processes.
func TestAStartTakesWhatItsProcessesTake(t *testing.T) {
	costs := Costs{Launcher: 1, Fork: 2, Client: 8, Server: 16, Agent: 100, Spawn: 1000, Process: 1e4,
		Card: 1e5, Close: 1e6}
	for _, tt := range []struct {
		ranks, perHost, fanout int
		agents, met            float64
		logins                 int
	}{
		// gompirun forks twice, one after the other; of the second host it hears last.
		{4, 2, 0, 1 + 2*2 + 8 + 16 + 100, 2*1000 + 1e4, 2},
		// Each host is started from the one before: three logins in a row, two relays.
		{3, 1, 1, 1 + 3*(2+8+16+100) + 2*(2+100), 1000 + 1e4, 1},
		{3, 3, 0, 1 + 2 + 100, 3*1000 + 1e4, 0},
	} {
		free := Site{sim.Machine{RanksPerHost: tt.perHost}, costs}
		r, ready := run(t, &free, tt.ranks, tt.fanout), tt.agents+tt.met+1e5*float64(tt.ranks)
		for _, x := range []struct {
			what      string
			got, want float64
		}{{"agents", r.Agents, tt.agents}, {"met", r.Met, tt.agents + tt.met}, {"ready", r.Ready, ready},
			{"ended", r.Ended, ready + 1e6}} {
			if math.Abs(x.got-x.want) > 1e-6*x.want {
				t.Errorf("%+v: %s after %v, want %v", tt, x.what, x.got, x.want)
			}
		}
		if r.Logins != tt.logins {
			t.Errorf("%+v: %d logins", tt, r.Logins)
		}
	}
}

// Costs were found with up to 1,024 ranks; starts of more are foretold by them. Measured on an AMD
// EPYC (family 25, model 17), two virtual processors: docs/scale.md.
func TestStartsOnOneMachineTakeWhatIsMeasured(t *testing.T) {
	for ranks, measured := range map[int]float64{16: 0.05, 64: 0.16, 128: 0.35, 256: 0.56, 512: 1.22, 1024: 2.82,
		2048: 8.25, 3000: 18.2} {
		if r := run(t, site(t, "oversubscribed"), ranks, 0); math.Abs(r.Ended/measured-1) > 0.15 {
			t.Errorf("%d ranks: %.3f s, measured %.3f", ranks, r.Ended, measured)
		}
	}
}

// So do starts on hosts that are one machine: by a script without logins, with costs found on up
// to 128 hosts, and by ssh.
func TestManyAgentsOnOneMachineTakeWhatIsMeasured(t *testing.T) {
	s := site(t, "network,processors=2,together=100000,switch=12us")
	near := func(what string, got, measured float64) {
		if math.Abs(got/measured-1) > 0.15 {
			t.Errorf("%s: %.3f s, measured %.3f", what, got, measured)
		}
	}
	for _, fanout := range []int{0, 64} {
		r := run(t, s, 128, fanout)
		near("last of 128 agents by ssh", r.Agents, 8.2)
		if want := map[int]float64{0: 11.2, 64: 1.25}[fanout]; math.Abs(r.Launcher/want-1) > 0.2 {
			t.Errorf("-fanout %d: %.2f s of a processor where gompirun runs, measured %.2f", fanout, r.Launcher, want)
		}
	}
	s.Costs.Client, s.Costs.Server = 5.3*ms, 0
	for hosts, measured := range map[int]float64{2: 0.037, 16: 0.182, 64: 1.0, 128: 2.55, 256: 6.95, 512: 23.8} {
		near(fmt.Sprintf("%d hosts by a script", hosts), run(t, s, hosts, 0).Ended, measured)
	}
}

// A tree takes less of gompirun's host than a star, and of many hosts less time.
func TestATreeCostsLessThanAStar(t *testing.T) {
	for _, ranks := range []int{1000, 4000} {
		cluster := site(t, "cluster,processors=16")
		star, tree := run(t, cluster, ranks, 0), run(t, cluster, ranks, 64)
		if star.Depth != 1 || tree.Depth != 2 || star.Logins != ranks/8 || tree.Logins >= 64 {
			t.Errorf("%d ranks: a star of depth %d with %d logins, a tree of %d with %d", ranks, star.Depth,
				star.Logins, tree.Depth, tree.Logins)
		}
		if tree.Used >= star.Used || tree.Launcher >= star.Launcher/2 || tree.Sent >= star.Sent/2 ||
			tree.Needs.Launcher >= star.Needs.Launcher {
			t.Errorf("%d ranks: a tree %+v, a star %+v", ranks, tree, star)
		}
	}
}

// An impossible job is refused.
func TestAJobThatIsNoneIsRefused(t *testing.T) {
	for _, j := range [][2]int{{0, 0}, {-1, 0}, {2, -1}} {
		if r, err := new(Site).Run(j[0], j[1]); err == nil {
			t.Errorf("%v: %+v, want an error", j, r)
		}
	}
}
