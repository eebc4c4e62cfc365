package cmdline

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gompi/internal/cli"
	"gompi/mpirun/internal/plan"
)

// placementFlags declares the flags about the placement and binding of ranks. The function it
// returns applies their values.
func (s *Spec) placementFlags(set *cli.Set) func() error {
	var mapBy, rankBy, bindTo string
	var rankfile string
	var over bool
	var ppn cli.Count
	p := &s.Policy
	set.Group = "ranks and hosts"
	set.Flag("N nproc-per-node", "N", &s.PerHost,
		"at most N ranks on each host|, of each program: a number, gpu, cpu, "+
			"or auto, which is gpu where there is one and else cpu")
	set.Flag("ppn", "N", &ppn, "N ranks on each host, and again N on each until all have a place")
	set.Flag("rankfile", "F", &rankfile, `where each rank runs: "rank 0=node01 slot=0-3", or slot=1:0-3 for cores `+
		"of package 1")
	set.Flag("map-by", "HOW", &mapBy, "slot (default: fill a host, then the next), node (one on each host in turn), "+
		"core, hwthread, l3cache, numa, package or ppr:N:node|, ppr:N:l3cache, ppr:N:numa, ppr:N:package; core, hwthread, "+
		"l3cache, numa and package: fill a host, its ranks dealt out over those; after it :PE=N for N cores a rank, :SPAN "+
		"for l3caches, numas or packages of all hosts that get ranks alike").
		Words = "slot node core hwthread l3cache numa package ppr:"
	set.Flag("rank-by", "HOW", &rankBy, "number the ranks of a program by slot (those of a host in a row), node (one "+
		"of each host in turn) or fill (in a row those of each l3cache, numa or package of -map-by, too)").
		Words = "slot node fill"
	set.Flag("oversubscribe", "", &over, "allow more ranks than slots without a word (default: with a line that says "+
		"so); with =false, or as -nooversubscribe: refuse")
	set.Flag("bind-to", "WHAT", &bindTo, "hwthread, core, l3cache, numa, package, gpu or none| (default: each rank has "+
		"its share of the cores, or, if they are some times as many as cores, one in turn; else none); gpu: its share of "+
		"those near its GPU").
		Words = "hwthread core l3cache numa package gpu none"
	set.Flag("gpus-per-rank", "N", (*cli.Count)(&p.GPUs), "give each rank N GPUs of its host|, and "+
		"CUDA_VISIBLE_DEVICES for them; neighbours share if N is 1 and GPUs are few (default: each sees all)")
	set.Flag("cpu-list", "L", &p.CPUList, "use these CPUs of each host alone: 0-3,8")
	set.Flag("use-hwthread-cpus", "", &p.HWThreads, "count hardware threads as cores")
	return func() error {
		p.Oversubscribe, p.NoOversubscribe = over, set.Changed("oversubscribe") && !over
		if ppn > 0 {
			p.PerNode, p.Wrap = int(ppn), true
		}
		if word, file, found := strings.Cut(mapBy, ":"); found && strings.EqualFold(word, "rankfile") {
			mapBy, rankfile = "", file[strings.Index(file, "=")+1:] // rankfile:FILE=F
		}
		var err error
		if rankfile != "" {
			if p.Rankfile, err = readRankfile(rankfile); err != nil {
				return fmt.Errorf("-rankfile: %w", err)
			}
		}
		if mapBy != "" {
			if err = p.SetMapBy(mapBy); err != nil {
				return err
			}
		}
		if rankBy != "" {
			if p.RankBy, err = plan.ParseRankBy(rankBy); err != nil {
				return err
			}
		}
		if p.CPUList != "" {
			if _, err = plan.ParseCPUs(p.CPUList); err != nil {
				return fmt.Errorf("-cpu-list %w", err)
			}
		}
		if word, reports := cutReport(bindTo); reports {
			bindTo, s.Report.Bindings = word, true
		}
		if bindTo != "" {
			p.BindTo, err = plan.ParseBindTo(bindTo)
		}
		return err
	}
}

// cutReport cuts the qualifier "report", Open MPI's form of -report-bindings, off a -bind-to.
func cutReport(bindTo string) (rest string, reports bool) {
	words := strings.Split(strings.ReplaceAll(bindTo, ",", ":"), ":")
	kept := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.EqualFold(w, "report") })
	return strings.Join(kept, ":"), len(kept) < len(words)
}

func readRankfile(name string) (*plan.Rankfile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return plan.ParseRankfile(name, text)
}
