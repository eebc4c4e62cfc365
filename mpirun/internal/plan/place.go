package plan

import (
	"container/heap"
	"fmt"
	"math"
	"slices"

	"gompi/hostfile"
)

// A mapper places one program after another, and remembers the taken slots.
type mapper struct {
	hosts    []Host
	programs []Program
	policy   Policy
	ranks    []Placement
	load     []int  // ranks on each host so far
	allowed  []bool // some program may use the host
	next     int    // start of the next program, by node or in rounds
	given    int    // ranks that host next already has in the current round
}

// A candidate is a host from the view of a program.
type candidate struct {
	host  int
	free  int // free slots
	room  int // ranks before other hosts have to take more than theirs
	most  int // most ranks; free <= room <= most
	count int // ranks given to it
}

const noLimit = math.MaxInt

// place assigns every rank to a host, without binding.
func place(hosts []Host, programs []Program, policy Policy) (*mapper, error) {
	if err := check(hosts, programs, policy); err != nil {
		return nil, err
	}
	m := &mapper{
		hosts:    slices.Clone(hosts),
		programs: slices.Clone(programs),
		policy:   policy,
		load:     make([]int, len(hosts)),
		allowed:  make([]bool, len(hosts)),
	}
	for i := range m.hosts {
		h := &m.hosts[i]
		if h.Slots == 0 {
			h.Slots = policy.slots(h)
			if h.MaxSlots > 0 {
				h.Slots = min(h.Slots, h.MaxSlots)
			}
		}
	}
	if policy.Rankfile != nil {
		return m, m.byRankfile()
	}
	for i := range m.programs {
		if err := m.program(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// slots returns the number of ranks with cores of their own on a host, or with GPUs, if ranks get
// GPUs.
func (p *Policy) slots(h *Host) int {
	if p.GPUs > 0 && len(h.GPUs) > 0 {
		return max(1, len(h.GPUs)/p.GPUs)
	}
	n := len(h.Cores)
	if p.HWThreads {
		n = len(allThreads(h.Cores))
	}
	if h.Quota > 0 {
		n = min(n, h.Quota)
	}
	return max(1, n/max(1, p.PE))
}

// perHost returns the most ranks of a program that the policy puts on a host; 0: as slots allow.
func (p *Policy) perHost(h *Host) int {
	if p.PerDomain == 0 {
		return p.PerNode
	}
	n := p.PerDomain * len(domains(h, p.Order))
	if p.PerNode > 0 {
		n = min(n, p.PerNode)
	}
	return n
}

// program places the ranks of a program.
func (m *mapper) program(prog int) error {
	cands := m.candidates(prog)
	np, err := m.size(prog, cands)
	if err != nil {
		return err
	}
	m.programs[prog].NP = np
	var order []int
	switch {
	case m.policy.Order == ByNode:
		order = m.deal(cands, np)
	case m.policy.Wrap && m.policy.PerNode > 0:
		order = m.rounds(cands, np)
	case m.policy.spans():
		order = m.span(cands, np)
	default:
		order = m.fill(cands, np)
	}
	order = m.policy.RankBy.number(order)
	for _, host := range order {
		m.ranks = append(m.ranks, Placement{Rank: len(m.ranks), Node: host, Prog: prog})
		m.load[host]++
	}
	return nil
}

// candidates returns the hosts that a program may use, with their capacities.
func (m *mapper) candidates(prog int) []candidate {
	share := make([]int, len(m.hosts)) // slots of each host; 0: none
	for _, s := range m.programs[prog].Hosts {
		slots := m.hosts[s.Host].Slots
		if s.Slots > 0 {
			slots = min(slots, s.Slots)
		}
		share[s.Host] = slots
	}
	if len(m.programs[prog].Hosts) == 0 {
		for i, h := range m.hosts {
			share[i] = h.Slots
		}
	}
	var cands []candidate
	for i, slots := range share {
		if slots == 0 {
			continue
		}
		m.allowed[i] = true
		c := candidate{host: i, most: noLimit}
		if m.hosts[i].MaxSlots > 0 {
			c.most = max(0, m.hosts[i].MaxSlots-m.load[i])
		}
		per := m.policy.perHost(&m.hosts[i])
		if per > 0 && !m.policy.Wrap {
			c.most = min(c.most, per)
		}
		c.free = min(c.most, slots, max(0, m.hosts[i].Slots-m.load[i]))
		c.room = c.free
		if per > 0 && !m.policy.NoOversubscribe {
			c.room = min(c.most, per) // an explicit number of ranks for each host overrides its slots
		}
		cands = append(cands, c)
	}
	return cands
}

// size returns the program's number of ranks, or why it is impossible.
func (m *mapper) size(prog int, cands []candidate) (int, error) {
	free, room, most := 0, 0, 0
	for _, c := range cands {
		free += c.free
		room += c.room
		most = addLimited(most, c.most)
	}
	np, prefix := m.programs[prog].NP, programPrefix(m.programs, prog)
	if np == 0 {
		if np = room; np == 0 {
			return 0, fmt.Errorf("%sno slot is left for it (%s): want -np to say how many ranks share one", prefix,
				m.slotList(cands))
		}
		if np > MaxRanks-len(m.ranks) {
			return 0, fmt.Errorf("%s%d slots: want -np, %d or less", prefix, np, MaxRanks-len(m.ranks))
		}
	}
	switch {
	case np > most:
		return 0, fmt.Errorf("%s-np %d: %s: want %smore hosts", prefix, np, m.limitText(cands), orLess(most))
	case np > free && m.policy.NoOversubscribe:
		return 0, fmt.Errorf("%s%s, and slots for %d (%s): want %smore slots, or no -nooversubscribe",
			prefix, count(np, "rank"), free, m.slotList(cands), orLess(free))
	case np > MaxRanks-len(m.ranks):
		return 0, fmt.Errorf("%s-np %d: want %d ranks or less in all", prefix, np, MaxRanks)
	}
	return np, nil
}

// orLess is advice to ask for n ranks, unless n is 0.
func orLess(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("-np %d or less, ", n)
}

// addLimited adds two counts either of which may be noLimit.
func addLimited(a, b int) int {
	if a > noLimit-b {
		return noLimit
	}
	return a + b
}

// rounds gives PerNode ranks to each candidate in turn, again and again, within its limit. The
// next program continues where this one stops, as under hydra.
func (m *mapper) rounds(cands []candidate, np int) []int {
	cands = m.fromNext(cands)
	if cands[0].host != m.next {
		m.given = 0
	}
	order := make([]int, 0, np)
	for i := 0; len(order) < np; i = (i + 1) % len(cands) {
		c := &cands[i]
		n := min(m.policy.PerNode-m.given, c.most-c.count, np-len(order))
		order = append(order, slices.Repeat([]int{c.host}, n)...)
		c.count += n
		m.next, m.given = c.host, m.given+n
		if len(order) < np || m.given == m.policy.PerNode {
			m.next, m.given = c.host+1, 0
		}
	}
	return order
}

// fromNext returns the candidates in the order of their turns, beginning where the previous
// program stopped.
func (m *mapper) fromNext(cands []candidate) []candidate {
	first, _ := slices.BinarySearchFunc(cands, m.next, func(c candidate, next int) int { return c.host - next })
	return slices.Concat(cands[first:], cands[:first])
}

// fill gives each candidate in turn as many ranks as it has room for, and the rest to the
// candidates with the lowest load. The ranks of a host are neighbours.
func (m *mapper) fill(cands []candidate, np int) []int {
	left := np
	for i := range cands {
		cands[i].count = min(left, cands[i].room)
		left -= cands[i].count
	}
	if left > 0 {
		m.spread(cands, left)
	}
	return neighbors(cands, np)
}

// span gives the domains of all candidates the same number of ranks, the first ones one more. The
// ranks of a host are neighbours.
func (m *mapper) span(cands []candidate, np int) []int {
	all := 0
	for _, c := range cands {
		all += len(domains(&m.hosts[c.host], m.policy.Order))
	}
	each, more := np/all, np%all
	left := np
	for i := range cands {
		c := &cands[i]
		own, limit := len(domains(&m.hosts[c.host], m.policy.Order)), c.most
		if m.policy.NoOversubscribe {
			limit = c.free
		}
		c.count = min(each*own+min(more, own), limit)
		more -= min(more, own)
		left -= c.count
	}
	for i := range cands { // if some have reached their limit
		c := &cands[i]
		n := min(left, max(0, c.room-c.count))
		c.count += n
		left -= n
	}
	if left > 0 {
		m.spread(cands, left)
	}
	return neighbors(cands, np)
}

// neighbors returns the hosts of ranks, in a row for each host.
func neighbors(cands []candidate, np int) []int {
	order := make([]int, 0, np)
	for _, c := range cands {
		order = append(order, slices.Repeat([]int{c.host}, c.count)...)
	}
	return order
}

// spread adds n ranks beyond the slots, each to the host with the lowest load.
func (m *mapper) spread(cands []candidate, n int) {
	q := &loadQueue{m: m}
	for i := range cands {
		if cands[i].count < cands[i].most {
			q.cands = append(q.cands, &cands[i])
		}
	}
	heap.Init(q)
	for range n { // size guarantees that q is not empty before
		c := q.cands[0]
		if c.count++; c.count == c.most {
			heap.Pop(q)
		} else {
			heap.Fix(q, 0)
		}
	}
}

// deal gives the candidates one rank each, again and again, skipping full ones; when all slots
// are taken it ignores slots. The next program continues where this one stops.
func (m *mapper) deal(cands []candidate, np int) []int {
	cands = m.fromNext(cands)
	order := make([]int, 0, np)
	order = dealUpTo(order, cands, np, func(c *candidate) int { return c.room })
	order = dealUpTo(order, cands, np, func(c *candidate) int { return c.most })
	m.next = order[np-1] + 1
	return order
}

// dealUpTo deals until np ranks are dealt or every candidate has reached its limit.
func dealUpTo(order []int, cands []candidate, np int, limit func(*candidate) int) []int {
	active := make([]*candidate, 0, len(cands))
	for i := range cands {
		active = append(active, &cands[i])
	}
	for len(order) < np && len(active) > 0 {
		active = slices.DeleteFunc(active, func(c *candidate) bool { return c.count >= limit(c) })
		for _, c := range active {
			if len(order) == np {
				break
			}
			c.count++
			order = append(order, c.host)
		}
	}
	return order
}

// A loadQueue is a heap of candidates. The first is the candidate whose host would have the
// fewest ranks per slot after another rank; among equals, the first in order.
type loadQueue struct {
	m     *mapper
	cands []*candidate
}

func (q *loadQueue) Len() int      { return len(q.cands) }
func (q *loadQueue) Swap(i, j int) { q.cands[i], q.cands[j] = q.cands[j], q.cands[i] }
func (q *loadQueue) Push(x any)    { q.cands = append(q.cands, x.(*candidate)) }

func (q *loadQueue) Less(i, j int) bool {
	a, b := q.cands[i], q.cands[j]
	x := (q.m.load[a.host] + a.count + 1) * q.m.hosts[b.host].Slots
	y := (q.m.load[b.host] + b.count + 1) * q.m.hosts[a.host].Slots
	if x != y {
		return x < y
	}
	return a.host < b.host
}

func (q *loadQueue) Pop() any {
	c := q.cands[len(q.cands)-1]
	q.cands = q.cands[:len(q.cands)-1]
	return c
}

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
