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
	set.Var(&ppn, "ppn", "")
	set.StringVar(&rankfile, "rankfile", "", "")
	set.StringVar(&mapBy, "map-by", "", "")
	set.StringVar(&rankBy, "rank-by", "", "")
	set.StringVar(&bindTo, "bind-to", "", "")
	set.Var((*cli.Count)(&p.GPUs), "gpus-per-rank", "")
	set.StringVar(&p.CPUList, "cpu-list", "", "")
	set.BoolVar(&p.HWThreads, "use-hwthread-cpus", false, "")
	set.BoolVar(&over, "oversubscribe", false, "")
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
