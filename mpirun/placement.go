package mpirun

import (
	"errors"
	"fmt"

	"gompi/internal/cli"
	"gompi/mpirun/internal/plan"
)

// placementFlags declares the flags that say which ranks run where and what
// they are bound to. The function it returns applies their values.
func (o *options) placementFlags(set *cli.Set) func() error {
	var mapBy, rankBy, bindTo string
	var noOver, over bool
	p := &o.policy
	set.VarP((*cli.Count)(&p.PerNode), "npernode", "N", "")
	set.Alias("npernode", "ppn")
	set.StringVar(&mapBy, "map-by", "", "")
	set.StringVar(&rankBy, "rank-by", "", "")
	set.StringVar(&bindTo, "bind-to", "", "")
	set.Var((*cli.Count)(&p.GPUs), "gpus-per-rank", "")
	set.Alias("gpus-per-rank", "gpus-per-proc")
	set.StringVar(&p.CPUList, "cpu-list", "", "")
	set.Alias("cpu-list", "cpu-set")
	set.BoolVar(&p.HWThreads, "use-hwthread-cpus", false, "")
	set.BoolVar(&over, "oversubscribe", false, "")
	set.BoolVar(&noOver, "nooversubscribe", false, "")
	set.Alias("nooversubscribe", "no-oversubscribe")
	return func() error {
		if over && noOver {
			return errors.New("-oversubscribe and -nooversubscribe: want one of them")
		}
		p.NoOversubscribe = noOver
		var err error
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
		if bindTo != "" {
			p.BindTo, err = plan.ParseBindTo(bindTo)
		}
		return err
	}
}
