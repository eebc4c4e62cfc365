package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	gompirun     string // path
	peers        []contest.Competitor
	torchruns    []contest.Torchrun
	nps, torchNP []int
	rounds       int
	restart      int // ranks of the jobs that are restarted, 0 for none
	limit        time.Duration
	hosts, rsh   []string
	csv, html    string // files
	set          *cli.Set
}

const usage = `usage: gompi-launchbench [flags]

Measures jobs whose ranks start, meet and end, under gompirun and its peers in
turn: from start to finish, until a rank's first line, inside init, and until all
ranks run again after one was killed or stopped. Prints times, ratios (that of the
fastest peer, divided by gompirun's) and the peak memory of a rank. With -hostfile
it measures on other hosts, which have the same files, beside logging in to all of
them at the same time: no launcher can be faster.

`

// defaultPeers is everybody.
func defaultPeers() string {
	names := []string{"openmpi", "openmpi-ob1", "mpich", "srun"}
	for _, t := range contest.Torchruns() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ",")
}

// parse reads the command line. The config has its set also after an error.
func parse(args []string) (config, error) {
	cfg := config{set: cli.New("gompi-launchbench")}
	rounds, limit := cli.Count(5), cli.Duration(30*time.Second)
	var peers, nps, torchNP, file, rsh string
	s := cfg.set
	s.StringVar(&peers, "peers", defaultPeers(), "whom to compare with")
	s.StringVar(&nps, "np", "1,4,16,64", "numbers of ranks")
	s.StringVar(&torchNP, "torch-np", "1,2,4", "numbers of ranks of PyTorch scripts, which take 230 MB each; 0 for none")
	s.IntVar(&cfg.restart, "restart", 2, "ranks of the jobs that are restarted; 0 for none")
	s.Var(&rounds, "rounds", "how often everything is measured")
	s.Var(&limit, "limit", "how long one job may take")
	s.StringVar(&file, "hostfile", "", "other hosts to run on; ranks are dealt out evenly")
	s.StringVar(&rsh, "rsh", "ssh", "the command that logs in to them")
	s.StringVar(&cfg.gompirun, "gompirun", contest.Beside("gompirun"), "the launcher")
	s.StringVar(&cfg.csv, "csv", "", "file for the figures of every job")
	s.StringVar(&cfg.html, "html", "", "page with plots to add the medians to; made if there is none")
	rest, err := s.Parse(args)
	if err != nil {
		return cfg, err
	}
	if len(rest) > 0 {
		return cfg, fmt.Errorf("argument %q: want flags only", rest[0])
	}
	cfg.rounds, cfg.limit, cfg.rsh = int(rounds), time.Duration(limit), strings.Fields(rsh)
	if len(cfg.rsh) == 0 {
		return cfg, fmt.Errorf("-rsh %q: want a command", rsh)
	}
	if cfg.restart < 0 || cfg.restart == 1 {
		return cfg, fmt.Errorf("-restart %d: want 2 ranks or more, or 0", cfg.restart)
	}
	if cfg.nps, err = contest.Numbers("-np", nps); err != nil {
		return cfg, err
	}
	if torchNP != "0" {
		if cfg.torchNP, err = contest.Numbers("-torch-np", torchNP); err != nil {
			return cfg, err
		}
	}
	if file != "" {
		if cfg.hosts, err = contest.HostNames(file); err != nil {
			return cfg, err
		}
	}
	return cfg, cfg.choose(strings.Split(peers, ","))
}

// choose finds the peers with the given names.
func (cfg *config) choose(names []string) error {
	all := contest.Torchruns()
	var others []string
	for _, name := range names {
		i := slices.IndexFunc(all, func(t contest.Torchrun) bool { return t.Name == name })
		if i < 0 {
			others = append(others, name)
			continue
		}
		cfg.torchruns = append(cfg.torchruns, all[i])
	}
	var err error
	if len(others) > 0 {
		cfg.peers, err = contest.Find(others)
	}
	return err
}
