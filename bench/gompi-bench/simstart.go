package main

import (
	"fmt"
	"io"

	"gompi/comm/sim"
	"gompi/internal/cli"
	"gompi/mpirun/startsim"
)

const startUsage = `usage: gompi-bench sim start [flags]

Simulates the start of jobs of as many ranks and hosts as one likes, with a star of agents and with
a tree: when gompirun has heard of all agents, has all ranks' cards (met), when all ranks have made
a barrier and an allreduce of 8 bytes (used), and when all has ended; what of a processor gompirun's
host takes, what it sends, and what is needed: memory, and open files of gompirun, an agent and a
rank. A machine is as of gompi-bench sim; if one host of it has room for all ranks (oversubscribed),
they start there, by no login. What processes cost is as measured on one AMD EPYC, with OpenSSH.

`

// A startConfig is the command line of sim start.
type startConfig struct {
	site   startsim.Site
	nps    []int
	fanout int
	set    *cli.Set
}

// parseStart parses the command line. After an error, too, the config has its FlagSet.
func parseStart(args []string) (startConfig, error) {
	c := startConfig{set: cli.New("gompi-bench sim start"), site: startsim.Site{Costs: startsim.Measured}}
	var machine, np string
	c.set.StringVar(&machine, "machine", "cluster,processors=16", "the network and its hosts: a name, and parameters")
	c.set.StringVar(&np, "np", "1000,10000", "numbers of ranks")
	c.set.IntVar(&c.fanout, "fanout", 64, "of the tree, as gompirun's")
	rest, err := c.set.ParseAll(args)
	if err != nil {
		return c, err
	}
	if len(rest) > 0 {
		return c, fmt.Errorf("%q: want flags alone", rest[0])
	}
	if c.fanout < 1 {
		return c, fmt.Errorf("-fanout %d: want 1 or more; the star is simulated in any case", c.fanout)
	}
	if c.site.Machine, err = sim.Parse(machine); err == nil {
		c.nps, err = numbers("-np", np)
	}
	for _, n := range c.nps {
		if n > mostSimulated {
			err = fmt.Errorf("-np %d: want at most %d", n, mostSimulated)
		}
	}
	return c, err
}

func startMain(args []string, stdout, stderr io.Writer) int {
	c, wrong := parseStart(args)
	if c.set.Answer(wrong, startUsage+c.set.FlagUsages(), stdout) {
		return 0
	}
	if wrong != nil {
		return fail(stderr, "sim start", 2, wrong)
	}
	if err := c.run(stdout); err != nil {
		return fail(stderr, "sim start", 1, err)
	}
	return 0
}

func (c *startConfig) run(out io.Writer) error {
	fmt.Fprintf(out, "# machine %s\n\n# start of jobs, simulated: seconds; of gompirun's host, of one rank, of a host with its ranks\n"+
		"%8s %-5s %6s %8s %8s %8s %8s %9s %9s %9s %15s %8s %8s\n", &c.site.Machine, "ranks", "by", "logins", "agents",
		"met", "used", "ended",
		"cpu (s)", "sent (MB)", "mem. (MB)", "files", "a rank", "a host")
	for _, np := range c.nps {
		for _, fanout := range []int{0, c.fanout} {
			r, err := c.site.Run(np, fanout)
			if err != nil {
				return err
			}
			by, n := "tree", r.Needs
			switch {
			case r.Logins == 0:
				by = "agent"
			case r.Depth == 1:
				by = "star"
			}
			files := fmt.Sprintf("%d/%d/%d", n.LauncherFiles, n.AgentFiles, n.RankFiles)
			fmt.Fprintf(out, "%8d %-5s %6d %8.3f %8.3f %8.3f %8.3f %9.2f %9.2f %9.0f %15s %8.1f %8.0f\n",
				np, by, r.Logins, r.Agents, r.Met, r.Used, r.Ended, r.Launcher, mb(r.Sent), mb(n.Launcher), files,
				mb(n.Rank), mb(n.Host))
			if fanout == 0 && r.Logins <= c.fanout {
				break // there is no tree
			}
		}
	}
	return nil
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }
