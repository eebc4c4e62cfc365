package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	contest.Flags
	peers     []contest.Competitor
	torchruns []contest.Torchrun
	torchNP   []int
	restart   int // ranks of the jobs that are restarted, 0 for none
	set       *cli.Set
}

const usage = `usage: gompi-launchbench [flags]

Measures jobs whose ranks start, meet and end, under gompirun and its peers in
turn: from start to finish, until a rank's first line, inside init, and until all
ranks run again after one was killed or stopped. Prints times, ratios (that of the
fastest peer, divided by gompirun's) and the peak memory of a rank. With -hostfile
it measures on other hosts, which have the same files, beside logging in to all of
them at the same time: no launcher can be faster.

`

func torchrunNames() []string {
	var names []string
	for _, t := range contest.Torchruns() {
		names = append(names, t.Name)
	}
	return names
}

// parse reads the command line. The config has its set also after an error.
func parse(args []string) (config, error) {
	cfg := config{set: cli.New("gompi-launchbench")}
	var peers, torchNP string
	s := cfg.set
	everybody := append([]string{"openmpi", "openmpi-ob1", "mpich", "srun"}, torchrunNames()...)
	s.StringVar(&peers, "peers", strings.Join(everybody, ","), "whom to compare with")
	cfg.Declare(s, "1,4,16,64", 30*time.Second, "job may take")
	s.StringVar(&torchNP, "torch-np", "1,2,4", "numbers of ranks of PyTorch scripts, which take 230 MB each; 0 for none")
	s.IntVar(&cfg.restart, "restart", 2, "ranks of the jobs that are restarted; 0 for none")
	s.StringVar(&cfg.CSV, "csv", "", "file for the figures of every job")
	rest, err := s.Parse(args)
	if err != nil {
		return cfg, err
	}
	if len(rest) > 0 {
		return cfg, fmt.Errorf("argument %q: want flags only", rest[0])
	}
	if cfg.restart < 0 || cfg.restart == 1 {
		return cfg, fmt.Errorf("-restart %d: want 2 ranks or more, or 0", cfg.restart)
	}
	if torchNP != "0" {
		cfg.torchNP, err = contest.Numbers("-torch-np", torchNP)
	}
	return cfg, errors.Join(err, cfg.Read(), cfg.choose(strings.Split(peers, ",")))
}

// choose finds the peers with the given names.
func (cfg *config) choose(names []string) error {
	found, others, err := contest.Find(names, torchrunNames()...)
	cfg.peers = found
	for _, name := range others {
		cfg.torchruns = append(cfg.torchruns, contest.Torchruns()[slices.Index(torchrunNames(), name)])
	}
	return err
}
