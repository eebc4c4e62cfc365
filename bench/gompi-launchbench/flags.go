package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	gompirun, hello string // paths
	peers           []contest.Competitor
	nps             []int
	rounds          int
	limit           time.Duration
	csv             string
	set             *cli.Set
}

const usage = `usage: gompi-launchbench [flags]

Measures from start to finish a job whose ranks start, meet and end, under
gompirun and its peers in turn, and prints times, ratios (that of the fastest
peer, divided by gompirun's) and the peak memory of a rank.

`

// parse reads the command line. The config has its set also after an error.
func parse(args []string) (config, error) {
	cfg := config{set: cli.New("gompi-launchbench")}
	rounds, limit := cli.Count(5), cli.Duration(30*time.Second)
	var peers, nps string
	s := cfg.set
	s.StringVar(&peers, "peers", "openmpi,openmpi-ob1,mpich", "whom to compare with")
	s.StringVar(&nps, "np", "1,4,16,64", "numbers of ranks")
	s.Var(&rounds, "rounds", "how often everything is measured")
	s.Var(&limit, "limit", "how long one job may take")
	s.StringVar(&cfg.gompirun, "gompirun", contest.Beside("gompirun"), "the launcher")
	s.StringVar(&cfg.hello, "hello", contest.Beside("hello"), "the program to start")
	s.StringVar(&cfg.csv, "csv", "", "file for the time of every job")
	rest, err := s.Parse(args)
	if err != nil {
		return cfg, err
	}
	if len(rest) > 0 {
		return cfg, fmt.Errorf("argument %q: want flags only", rest[0])
	}
	cfg.rounds, cfg.limit = int(rounds), time.Duration(limit)
	if cfg.nps, err = numbers(nps); err != nil {
		return cfg, err
	}
	cfg.peers, err = contest.Find(strings.Split(peers, ","))
	return cfg, err
}

// numbers reads the value of -np.
func numbers(list string) ([]int, error) {
	var ns []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-np %q: %q: want numbers of ranks, 1 or more, separated by commas", list, s)
		}
		ns = append(ns, n)
	}
	return ns, nil
}
