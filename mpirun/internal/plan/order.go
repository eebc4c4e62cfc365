package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/internal/cli"
)

// An Order is the order in which ranks take slots.
type Order uint8

// The orders. All but ByNode fill a host before the next one; ByL3, ByNuma and ByPackage deal its
// ranks out over parts of it.
const (
	BySlot Order = iota
	ByNode       // deal ranks out over the hosts one by one
	ByCore       // a core for each rank
	ByL3
	ByNuma
	ByPackage
	ByHWThread // a hardware thread for each rank
)

var orderNames = []string{"slot", "node", "core", "l3cache", "numa", "package", "hwthread"}

// String returns the order as -map-by spells it.
func (o Order) String() string { return orderNames[o] }

// parseOrder reads the first word of -map-by. Users of other launchers write socket, too.
func parseOrder(word string) (Order, bool) {
	if word == "socket" {
		word = "package"
	}
	i := slices.Index(orderNames, word)
	return Order(max(i, 0)), i >= 0
}

const wantMapBy = "want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like"

// SetMapBy applies the value of -map-by: an order, or ppr:N:node, l3cache, numa or package; after
// it, or alone, mpirun's :PE=N, :SPAN, :OVERSUBSCRIBE and :NOOVERSUBSCRIBE. Capitals do not
// matter. An N that contradicts p.PerNode is an error, so set the value of -N first. p is
// unchanged after an error.
func (p *Policy) SetMapBy(s string) error {
	fields := strings.Split(strings.ToLower(s), ":")
	next := *p
	rest, err := next.setOrder(fields)
	if err == nil {
		err = next.modify(rest)
	}
	if err != nil {
		return fmt.Errorf("-map-by %q%w", s, err)
	}
	*p = next
	return nil
}

// setOrder applies the first fields and returns the others. Its errors continue after the value.
func (p *Policy) setOrder(fields []string) ([]string, error) {
	if order, ok := parseOrder(fields[0]); ok {
		p.Order, p.HWThreads = order, p.HWThreads || order == ByHWThread
		return fields[1:], nil
	}
	switch {
	case fields[0] == "" && len(fields) > 1:
		return fields[1:], nil
	case strings.HasPrefix(fields[0], peList):
		return p.setPEList(fields)
	case fields[0] == "ppr" && len(fields) > 2:
		return fields[3:], p.setPPR(fields[1], fields[2])
	}
	return nil, errors.New(smallCache(fields[0]) + ": " + wantMapBy)
}

// smallCache explains why caches of other levels are no parts of a host here.
func smallCache(word string) string {
	if strings.HasSuffix(word, "cache") {
		return ": of caches gompirun knows l3cache alone"
	}
	return ""
}

// setPPR applies ppr:N:WHAT.
func (p *Policy) setPPR(number, what string) error {
	order, ok := parseOrder(what)
	if !ok || order == BySlot || order == ByCore || order == ByHWThread {
		return errors.New(smallCache(what) + ": " + wantMapBy)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > MaxRanks {
		return fmt.Errorf(": %q ranks per %s: want a number from 1 to %d", number, order, MaxRanks)
	}
	if order != ByNode {
		p.Order, p.PerDomain = order, n
		return nil
	}
	if p.PerNode != 0 && p.PerNode != n {
		return fmt.Errorf(" and -N %d: want one of them, or the same number in both", p.PerNode)
	}
	p.Order, p.PerNode = BySlot, n
	return nil
}

// peList is the prefix of a CPU list in Open MPI's -map-by.
const peList = "pe-list="

// setPEList applies pe-list=0,2-3. With :ordered after it each rank has one of the CPUs, in
// numerical order.
func (p *Policy) setPEList(fields []string) ([]string, error) {
	list := strings.TrimPrefix(fields[0], peList)
	if p.CPUList != "" && p.CPUList != list {
		return nil, fmt.Errorf(" and -cpu-list %s: want one of them", p.CPUList)
	}
	if _, err := ParseCPUs(list); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	p.CPUList = list
	rest := slices.DeleteFunc(slices.Clone(fields[1:]), func(s string) bool { return s == "ordered" })
	if len(rest) < len(fields)-1 {
		p.Order = ByCore
	}
	return rest, nil
}

// modify applies the modifiers after the order. Open MPI separates modifiers by commas, too.
func (p *Policy) modify(modifiers []string) error {
	if len(modifiers) == 0 {
		return nil
	}
	for m := range strings.SplitSeq(strings.Join(modifiers, ","), ",") {
		number, isPE := strings.CutPrefix(m, "pe=")
		switch {
		case isPE:
			n, err := strconv.Atoi(number)
			if err := cli.TooLarge(number, MaxRanks); err != nil {
				return fmt.Errorf(": PE=%s: %w", number, err)
			}
			if err != nil || n < 1 {
				return fmt.Errorf(": PE=%s: want a number of cores, 1 or more", number)
			}
			p.PE = n
		case m == "hwtcpus":
			p.HWThreads = true
		case m == "corecpus":
			p.HWThreads = false
		case m == "inherit", m == "noinherit": // about spawned ranks, which gompi lacks
		case m == "span":
			p.Span = true
		case m == "oversubscribe":
			p.NoOversubscribe, p.Oversubscribe = false, true
		case m == "nooversubscribe":
			p.NoOversubscribe, p.Oversubscribe = true, false
		default:
			return fmt.Errorf(": %q: want PE=N, span, oversubscribe, nooversubscribe, hwtcpus or corecpus after the colon", m)
		}
	}
	return nil
}

// spans reports whether -map-by's SPAN has an effect: the same number of ranks for domains of all
// hosts. Dealing over hosts, and a number for each domain, imply that; slots and cores are taken
// in order.
func (p *Policy) spans() bool {
	return p.Span && p.PerDomain == 0 && (p.Order == ByL3 || p.Order == ByNuma || p.Order == ByPackage)
}

// inBlocks reports whether ranks of a domain are neighbors.
func (p *Policy) inBlocks() bool { return p.RankBy == RankByFill || p.RankBy == RankAuto && p.spans() }

// A RankBy is the way to number the ranks of a program after their placement.
type RankBy uint8

// The ways to number ranks.
const (
	RankAuto   RankBy = iota // as they were placed
	RankBySlot               // one host's ranks in a row
	RankByNode               // one of each host in turn
	RankByFill               // one host's ranks in a row, and there one domain's
)

var rankByNames = []string{"auto", "slot", "node", "fill"}

// String returns the way as -rank-by spells it.
func (r RankBy) String() string { return rankByNames[r] }

// ParseRankBy reads the value of -rank-by: slot, node or fill, in any capitals. mpirun's core and
// hwthread are fill, its span is node.
func ParseRankBy(s string) (RankBy, error) {
	word := strings.ToLower(s)
	switch word {
	case "core", "hwthread":
		word = "fill"
	case "span":
		word = "node"
	}
	if i := slices.Index(rankByNames, word); i > 0 {
		return RankBy(i), nil
	}
	return 0, fmt.Errorf("-rank-by %q: want slot, node or fill", s)
}

// number returns the hosts of ranks in r's order.
func (r RankBy) number(order []int) []int {
	if r == RankAuto {
		return order
	}
	order = slices.Sorted(slices.Values(order))
	if r != RankByNode {
		return order
	}
	// Rank k of its host comes in turn k.
	turn := make([]int, len(order))
	for i := 1; i < len(order); i++ {
		if order[i] == order[i-1] {
			turn[i] = turn[i-1] + 1
		}
	}
	at := make([]int, len(order))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return turn[a] - turn[b] })
	out := make([]int, len(order))
	for i, from := range at {
		out[i] = order[from]
	}
	return out
}
