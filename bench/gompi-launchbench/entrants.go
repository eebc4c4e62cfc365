package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// enter returns the groups, and which entrants are missing and why. dir is for files.
func (cfg config) enter(ctx context.Context, shop *contest.Workshop) (groups []group, absent []string, err error) {
	hosts, err := cfg.reach(ctx, shop)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	peers, absent := shop.EnterAll(ctx, cfg.peers, "mpihello")
	ours := contest.Gompi(cfg.gompirun, self).WithArgs(hello.AsRank)
	greeters := group{name: "hello", nps: cfg.nps, figures: helloFigures, entrants: []entrant{{
		name: "gompi", job: on(hosts, ours),
		restart: func(np int, marker string) contest.Job {
			return contest.Job{ours.WithArgs(hello.AsRank, marker).WithFlags("-max-restarts", "1").Command(np, runtime.NumCPU())}
		},
	}}}
	for _, p := range peers {
		greeters.entrants = append(greeters.entrants, entrant{name: p.Name, version: p.Version, job: on(hosts, p)})
	}
	if hosts != nil {
		greeters.entrants = append(greeters.entrants, entrant{name: floor, job: func(int) contest.Job { return hosts.Logins() }})
	}
	groups = []group{greeters}
	if len(cfg.torchNP) > 0 && len(cfg.torchruns) > 0 {
		torch, err := shop.Torch(ctx)
		if err != nil {
			return groups, append(absent, fmt.Sprintf("torchrun: %v", err)), nil
		}
		groups = append(groups, cfg.torchGroup(torch, hosts))
	}
	return groups, absent, nil
}

// reach prepares the hosts of -hostfile, if there is one.
func (cfg config) reach(ctx context.Context, shop *contest.Workshop) (*contest.Hosts, error) {
	if len(cfg.hosts) == 0 {
		return nil, nil
	}
	return shop.NewHosts(ctx, cfg.hosts, cfg.rsh, append(append([]int(nil), cfg.nps...), cfg.torchNP...))
}

// on returns how e runs on hosts, or here.
func on(hosts *contest.Hosts, e contest.Entrant) func(np int) contest.Job {
	return func(np int) contest.Job {
		if hosts != nil {
			return contest.Job{e.Over(hosts, np)}
		}
		return contest.Job{e.Command(np, runtime.NumCPU())}
	}
}

// torchGroup returns those that run the PyTorch script.
func (cfg config) torchGroup(torch *contest.Torch, hosts *contest.Hosts) group {
	g := group{name: "PyTorch script", nps: cfg.torchNP, figures: torchFigures, entrants: []entrant{{
		name: "gompirun", job: on(hosts, torch.Gompi(cfg.gompirun, hosts)),
		restart: func(np int, marker string) contest.Job {
			return contest.Job{torch.Gompi(cfg.gompirun, nil, marker).WithFlags("-max-restarts", "1").Command(np, runtime.NumCPU())}
		},
	}}}
	for _, way := range cfg.torchruns {
		g.entrants = append(g.entrants, entrant{
			name: way.Name, version: torch.Version,
			job: func(np int) contest.Job { return torch.Run(way, hosts, np, nil) },
			restart: func(np int, marker string) contest.Job {
				return torch.Run(way, nil, np, []string{"--max_restarts", strconv.Itoa(1)}, marker)
			},
		})
	}
	return g
}

// floor is the name of logging in to all hosts.
const floor = "logins"

// markerIn returns a file that no job has been told of yet.
func markerIn(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("again.%d", n)) }
