package plan

import (
	"fmt"
	"slices"

	"gompi/hostfile"
)

// Restrict returns the hosts for which keep is true, and the programs with their parts of these
// hosts. keep is called for each host in turn.
func Restrict(hosts []hostfile.Host, programs []Program, keep func(host int) bool) ([]hostfile.Host, []Program, error) {
	var kept []hostfile.Host
	at := map[int]int{}
	for i, h := range hosts {
		if keep(i) {
			at[i] = len(kept)
			kept = append(kept, h)
		}
	}
	programs = slices.Clone(programs)
	for i := range programs {
		p := &programs[i]
		var shares []hostfile.Share
		for _, s := range p.Hosts {
			if host, ok := at[s.Host]; ok {
				s.Host = host
				shares = append(shares, s)
			}
		}
		if len(shares) == 0 && len(p.Hosts) > 0 {
			return nil, nil, fmt.Errorf("no host is left for %q", p.Name)
		}
		p.Hosts = shares
	}
	return kept, programs, nil
}
