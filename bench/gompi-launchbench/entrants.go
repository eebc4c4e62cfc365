package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/hello"
)

// A group is those that run the same program, gompirun first.
type group struct {
	name     string
	nps      []int
	entrants []entrant
	figures  []figure
}

// An entrant is a launcher with a program.
type entrant struct {
	name, version string
	job           func(np int) contest.Job
	restart       func(np int, marker string) contest.Job // nil if it cannot
}

// enter returns the groups, and which entrants are missing and why.
func (cfg config) enter(ctx context.Context, shop *contest.Workshop) (groups []group, absent []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	peers, absent := shop.EnterAll(ctx, cfg.peers, "mpihello")
	ours := contest.Gompi(cfg.Gompirun, self).WithArgs(hello.AsRank)
	greeters := group{name: "hello", nps: cfg.NPs, figures: helloFigures, entrants: []entrant{{
		name: "gompi", job: cfg.job(ours),
		restart: func(np int, marker string) contest.Job {
			return cfg.job(ours.WithArgs(marker).WithFlags("-max-restarts", "1"))(np)
		},
	}}}
	for _, p := range peers {
		greeters.entrants = append(greeters.entrants, entrant{name: p.Name, version: p.Version, job: cfg.job(p)})
	}
	if cfg.Hosts != nil {
		greeters.entrants = append(greeters.entrants, entrant{name: floor, job: func(int) contest.Job { return cfg.Hosts.Logins() }})
	}
	groups = []group{greeters}
	if len(cfg.torchNP) > 0 && len(cfg.torchruns) > 0 {
		torch, err := shop.Torch(ctx)
		if err != nil {
			return groups, append(absent, fmt.Sprintf("torchrun: %v", err)), nil
		}
		groups = append(groups, cfg.torchGroup(torch))
	}
	return groups, absent, nil
}

// job returns how e runs.
func (cfg config) job(e contest.Entrant) func(np int) contest.Job {
	return func(np int) contest.Job { return contest.Job{cfg.Command(e, np)} }
}

// torchGroup returns those that run the PyTorch script.
func (cfg config) torchGroup(torch *contest.Torch) group {
	g := group{name: "PyTorch script", nps: cfg.torchNP, figures: torchFigures, entrants: []entrant{{
		name: "gompirun", job: cfg.job(torch.Gompi(cfg.Gompirun, cfg.Hosts)),
		restart: func(np int, marker string) contest.Job {
			return cfg.job(torch.Gompi(cfg.Gompirun, cfg.Hosts, marker).WithFlags("-max-restarts", "1"))(np)
		},
	}}}
	for _, way := range cfg.torchruns {
		g.entrants = append(g.entrants, entrant{
			name: way.Name, version: torch.Version,
			job: func(np int) contest.Job { return torch.Run(way, cfg.Hosts, np, nil) },
			restart: func(np int, marker string) contest.Job {
				return torch.Run(way, cfg.Hosts, np, []string{"--max_restarts", strconv.Itoa(1)}, marker)
			},
		})
	}
	return g
}

// floor is the name of logging in to all hosts.
const floor = "logins"

// markerIn returns a file that no job has been told of yet.
func markerIn(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("again.%d", n)) }
