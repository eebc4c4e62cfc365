// Package plan maps ranks to hosts: hosts, programs and a policy go in, placements come out. It
// is pure: no input or output, no clock, no randomness, so that the same command line always
// gives the same map.
//
// Ranks are numbered program after program. By slot, a program fills the slots of each host
// before the next one; by node, it deals its ranks out one by one. By core, memory domain or
// package it fills hosts, too, and deals out the ranks of a host over its parts of that kind.
// Beyond the slots, ranks go to the lowest load per slot, and the Plan has a note of that.
package plan

import (
	"errors"
	"fmt"

	"gompi/hostfile"
	"gompi/internal/seg"
)

// MaxRanks bounds the ranks of a job, so that a typing error does not take all memory.
const MaxRanks = 1 << 20

// A Host is the statements of the list of hosts about a host, and the findings of its agent.
type Host struct {
	Name     string
	Slots    int    // 0: the number of its cores within its quota, but at least one
	MaxSlots int    // the most ranks it may take; 0: no limit
	Via      string // way to its agent, for Display

	// Cores holds, for each core that ranks may use, its hardware threads by the operating system's
	// numbers. Empty means unknown: then ranks there are not bound.
	Cores [][]int

	// Numa, L3 and Packages hold the hardware threads of each memory domain, level 3 cache and
	// processor package, usable by ranks or not. Empty means a single one.
	Numa     [][]int
	L3       [][]int
	Packages [][]int

	// Quota is the processors' worth of time for all ranks together, rounded up, however many cores
	// they may use; 0: no limit.
	Quota int

	GPUs []GPU // GPUs for ranks, in the order of assignment
}

// A Program is one of the programs that share the world.
type Program struct {
	Name  string           // for people
	NP    int              // ranks; 0: the number of its slots
	Hosts []hostfile.Share // its part of the hosts; empty: all
}

// A Policy is the rules for placing and binding. The zero Policy is the default.
type Policy struct {
	Order           Order
	PerNode         int  // the most ranks of a program on a host; 0: as slots allow
	Wrap            bool // once every host has PerNode ranks, go round again
	PerDomain       int  // consecutive ranks for each domain of Order; 0: round-robin
	Span            bool // equal numbers of ranks for all domains of Order, whatever the hosts' slots
	NoOversubscribe bool
	Oversubscribe   bool // the user allows more ranks than processors: no warning
	RankBy          RankBy
	BindTo          BindTo
	PE              int       // cores of each rank, hardware threads with HWThreads; 0: by BindTo
	HWThreads       bool      // count hardware threads as cores
	GPUs            int       // for each rank alone, or 1 for a share of one; 0: ranks see all
	CPUList         string    // usable CPUs of each host, in ParseCPUs' form; "": all
	Spares          int       // places on each host for replacements of dead ranks
	Rankfile        *Rankfile // the place of each rank, instead of all other rules; nil: none
}

// A Placement is the place of a rank.
type Placement struct {
	Rank      int
	Node      int   // position of its host in Plan.Hosts
	LocalRank int   // among the ranks of its host
	Prog      int   // position of its program in Plan.Programs
	CPUs      []int // hardware threads of its binding, ascending; nil: not bound
	GPUs      []int // indices of its GPUs in its host's GPUs; nil for none
}

// A Plan is a complete map of a job.
type Plan struct {
	Hosts    []Host    // as given to Map, Slots never 0
	Programs []Program // as given to Map, NP never 0
	Policy   Policy
	Ranks    []Placement // by rank
	Local    [][]int     // ranks on each host, by local rank; empty for a host without ranks

	// Notes are lines for the user about results that may not be intended, at most one on each
	// subject: more ranks than slots, unknown cores, several ranks bound to one core, ranks far from
	// their GPUs or sharing a GPU for a single process, idle hosts.
	Notes []string
}

// Map places the ranks of all programs. It fails if they do not fit the policy and the hosts'
// MaxSlots; the error names a fitting choice.
func Map(hosts []Host, programs []Program, policy Policy) (*Plan, error) {
	hosts, err := within(hosts, policy.CPUList)
	if err != nil {
		return nil, err
	}
	m, err := place(hosts, programs, policy)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Hosts:    m.hosts,
		Programs: m.programs,
		Policy:   policy,
		Ranks:    m.ranks,
		Local:    make([][]int, len(hosts)),
	}
	for i := range p.Ranks {
		r := &p.Ranks[i]
		r.LocalRank = len(p.Local[r.Node])
		p.Local[r.Node] = append(p.Local[r.Node], r.Rank)
	}
	if err := p.enoughPlaces(); err != nil {
		return nil, err
	}
	if err := p.enoughGPUs(); err != nil {
		return nil, err
	}
	for node := range p.Hosts {
		p.giveGPUs(node)
		if err := p.bind(node); err != nil {
			return nil, err
		}
	}
	for _, s := range []string{m.oversubscribed(), p.unbound(), p.doubled(), p.far(), p.exclusive(), m.idle()} {
		if s != "" {
			p.Notes = append(p.Notes, s)
		}
	}
	return p, nil
}

// enoughPlaces returns an error for a host with more ranks than its segment has places for,
// besides spare places.
func (p *Plan) enoughPlaces() error {
	places, with := seg.MaxRanks-p.Policy.Spares, ""
	if p.Policy.Spares > 0 {
		with = fmt.Sprintf(" with -spares %d", p.Policy.Spares)
	}
	for node, ranks := range p.Local {
		if len(ranks) > places {
			return fmt.Errorf("%d ranks on %s: want %d or less on a host%s", len(ranks), p.Hosts[node].Name,
				places, with)
		}
	}
	return nil
}

// check rejects arguments that Map cannot work with.
func check(hosts []Host, programs []Program, policy Policy) error {
	if len(hosts) == 0 || len(programs) == 0 {
		return errors.New("nothing to place: want a host and a program")
	}
	if policy.PerNode < 0 || policy.PerNode > MaxRanks {
		return fmt.Errorf("%d ranks per node: want 1 to %d", policy.PerNode, MaxRanks)
	}
	if policy.PE > 0 && policy.BindTo != BindAuto && policy.BindTo != BindNone && policy.BindTo != BindCore &&
		policy.BindTo != BindHWThread {
		return fmt.Errorf("-map-by :PE=%d and -bind-to %s: want one of them", policy.PE, policy.BindTo)
	}
	for _, h := range hosts {
		if h.Slots < 0 || h.Slots > hostfile.MaxSlots || h.MaxSlots < 0 {
			return fmt.Errorf("%s: %d slots, at most %d: want 1 to %d", h.Name, h.Slots, h.MaxSlots, hostfile.MaxSlots)
		}
	}
	for i, prog := range programs {
		if prog.NP < 0 || prog.NP > MaxRanks {
			return fmt.Errorf("%s-np %d: want 1 to %d", programPrefix(programs, i), prog.NP, MaxRanks)
		}
		for _, s := range prog.Hosts {
			if s.Host < 0 || s.Host >= len(hosts) {
				return fmt.Errorf("%shost %d of %d", programPrefix(programs, i), s.Host, len(hosts))
			}
		}
	}
	return nil
}

// programPrefix names a program in an error if there are several.
func programPrefix(programs []Program, i int) string {
	if len(programs) == 1 {
		return ""
	}
	return fmt.Sprintf("program %d (%s): ", i+1, programs[i].Name)
}
