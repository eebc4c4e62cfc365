package sim

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/coll"
	"gompi/internal/core/hier"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// A Call is one collective in which all ranks take part.
type Call struct {
	Op        string // allreduce, bcast, ...: see Ops
	Algorithm string // one of Algorithms; "" for gompi's choice
	Ranks     int
	Bytes     int // of the vector, or of one rank's block, as gompi-bench has them
	Root      int
	Tuning    string // rules and thresholds, as GOMPI_TUNE has them, by which gompi chooses
}

// kinds are the collectives that can be simulated: each has blocks of one length. Of several kinds
// with the same rules only the first is here.
var kinds = func() (all []calls.Kind) {
	for _, k := range calls.Exchanges {
		same := func(other calls.Kind) bool { return other.TunedAs() == k.TunedAs() }
		if !k.Counted() && !k.LocalCounts() && !slices.ContainsFunc(all, same) {
			all = append(all, k)
		}
	}
	return all
}()

// Ops returns the names of the collectives that can be simulated.
func Ops() (names []string) {
	for _, k := range kinds {
		names = append(names, k.TunedAs().String())
	}
	return names
}

// Algorithms returns the names of a collective's algorithms over messages, the default first.
func Algorithms(op string) (names []string, err error) {
	k, err := kindOf(op)
	for _, m := range path.Methods(k) {
		names = append(names, m.Algorithm.String())
	}
	return names, err
}

// Algorithms returns the names of all algorithms for a call: over messages and, where several ranks
// share a host and there are several hosts, the hierarchical ones.
func (m *Machine) Algorithms(c Call) ([]string, error) {
	k, err := c.kind()
	if err != nil {
		return nil, err
	}
	names, _ := Algorithms(c.Op)
	for _, p := range m.hierarchical(k, c) {
		names = append(names, nameOf(p))
	}
	return names, nil
}

// nameOf returns the name of a path.
func nameOf(p *path.Path) string {
	if p.Hosts != path.None {
		return p.Algorithm.String() + "-" + p.Hosts.String()
	}
	return p.Algorithm.String()
}

func kindOf(op string) (calls.Kind, error) {
	for i, name := range Ops() {
		if name == op {
			return kinds[i], nil
		}
	}
	return 0, fmt.Errorf("collective %q: want one of %s", op, strings.Join(Ops(), ", "))
}

// Choice returns the algorithm that gompi chooses for a call on hosts like m's: a hierarchical one
// if m has any, else one over messages.
func (m *Machine) Choice(c Call) (string, error) {
	k, err := c.kind()
	if err != nil {
		return "", err
	}
	return nameOf(m.choose(k, c)), nil
}

// kind returns the collective of c, or an error if c cannot be simulated.
func (c *Call) kind() (calls.Kind, error) {
	if err := new(path.Rules).Tune(c.Tuning); err != nil {
		return 0, fmt.Errorf("tuning: %w", err)
	}
	return kindOf(c.Op)
}

// rules returns the rules that choose the algorithm of a call.
func (m *Machine) rules(c Call) *path.Rules {
	r := &path.Rules{Hosts: m.hosts(c.Ranks), Oversubscribed: m.Processors > 0 && m.Processors < m.perHost()}
	_ = r.Tune(c.Tuning) // kind has reported an error
	return r
}

func (m *Machine) hosts(ranks int) int { return (ranks + m.perHost() - 1) / m.perHost() }

// pick returns gompi's choice among the algorithms over messages.
func (m *Machine) pick(k calls.Kind, c Call) path.Algorithm {
	return m.rules(c).Pick(k, c.Ranks, int64(c.Bytes), false)
}

// choose returns the path of gompi's choice.
func (m *Machine) choose(k calls.Kind, c Call) *path.Path {
	if m.isHierarchical(c) {
		return m.selector(c).For(c.fingerprint(k))
	}
	return &path.Path{Algorithm: m.pick(k, c)}
}

// isHierarchical reports whether several ranks share the memory of a host, and there are several
// hosts.
func (m *Machine) isHierarchical(c Call) bool {
	return m.perHost() > 1 && m.perHost() <= path.MaxShared && m.hosts(c.Ranks) > 1
}

func (m *Machine) selector(c Call) *path.Selector {
	top := path.Topology{Ranks: c.Ranks, Hier: true, Even: c.Ranks%m.perHost() == 0, Packed: true}
	return path.New(top, m.rules(c))
}

// fingerprint returns the fields of a call by which a Selector chooses.
func (c Call) fingerprint(k calls.Kind) *call.Call {
	o := &call.Call{Fingerprint: call.Fingerprint{Kind: k, Type: mem.U8, Count: int64(c.Bytes)}}
	if k == calls.Alltoall {
		o.Count *= int64(c.Ranks)
	}
	return o
}

// hierarchical returns the hierarchical paths of a call.
func (m *Machine) hierarchical(k calls.Kind, c Call) []*path.Path {
	if !m.isHierarchical(c) {
		return nil
	}
	return m.selector(c).Hierarchical(c.fingerprint(k))
}

// Time returns the seconds from the start of a call on all ranks until the last rank is done, with
// the other results of Run. Where links have a Burst, the time is of the last of many calls.
func (m *Machine) Time(c Call, faults ...Fault) (Result, error) {
	do, err := m.Do(c)
	if err != nil {
		return Result{}, err
	}
	if m.Burst > 0 {
		return m.afterMany(do, c, faults)
	}
	return Run(m, c.Ranks, do, faults...)
}

// Do returns the body of a Run on m that makes one call.
func (m *Machine) Do(c Call) (func(r *Rank) error, error) {
	k, err := c.kind()
	if err != nil {
		return nil, err
	}
	way, err := m.way(k, c)
	if err != nil {
		return nil, err
	}
	if way.Via == path.Hier {
		join := m.hierarchy(c)
		return func(r *Rank) error { return join(r).Run(way, r.call(k, c)) }, nil
	}
	return func(r *Rank) error { return coll.Run(r, way.Algorithm, r.call(k, c)) }, nil
}

// way returns the path that a call names or, if the call names none, gompi's choice.
func (m *Machine) way(k calls.Kind, c Call) (*path.Path, error) {
	if c.Algorithm == "" {
		return m.choose(k, c), nil
	}
	var names []string
	for _, x := range path.Methods(k) {
		if x.Algorithm.String() == c.Algorithm {
			return &path.Path{Algorithm: x.Algorithm}, nil
		}
		names = append(names, x.Algorithm.String())
	}
	for _, p := range m.hierarchical(k, c) {
		if nameOf(p) == c.Algorithm {
			return p, nil
		}
		names = append(names, nameOf(p))
	}
	return nil, fmt.Errorf("%s by %q: want one of %s", c.Op, c.Algorithm, strings.Join(names, ", "))
}

// hierarchy returns a function for the hierarchical collectives of a rank.
func (m *Machine) hierarchy(c Call) func(r *Rank) *hier.Collectives {
	ranks, n := make([][]int, m.hosts(c.Ranks)), m.perHost()
	for r := range c.Ranks {
		ranks[r/n] = append(ranks[r/n], r)
	}
	rules := m.rules(c)
	hosts, over := hier.NewHosts(ranks, c.Ranks), path.New(path.Topology{Ranks: len(ranks)}, rules)
	selector := func(members int) *path.Selector {
		return path.New(path.Topology{Ranks: members, Shared: members > 1, LargeBuffer: path.LargeBuffer(n)}, rules)
	}
	full, last := selector(n), selector(len(ranks[len(ranks)-1]))
	return func(r *Rank) *hier.Collectives {
		host, members, inside := r.e.host(r.me), len(ranks[r.e.host(r.me)]), full
		switch {
		case r.hier != nil:
			return r.hier
		case members < n:
			inside = last
		}
		var memory hier.Shared
		if members > 1 {
			memory = &shared{r: r, host: &r.e.hosts[host], me: int(r.me) % n, all: members}
		}
		r.hier = hier.New(hosts, r, memory, inside, over)
		return r.hier
	}
}

// afterMany times the last of several calls with a barrier before each, as gompi-bench does.
func (m *Machine) afterMany(do func(r *Rank) error, c Call, faults []Fault) (Result, error) {
	calls := 3 + min(20, 2*m.Burst/max(c.Bytes, 1))
	longest := 0.0
	res, err := Run(m, c.Ranks, func(r *Rank) error {
		for i := range calls {
			if err := coll.Barrier(r, path.Dissemination); err != nil {
				return err
			}
			start := r.Now()
			if err := do(r); err != nil {
				return err
			}
			if i == calls-1 {
				longest = max(longest, r.Now()-start)
			}
		}
		return nil
	}, faults...)
	res.Time = longest
	return res, err
}

// call returns a call in memory without content.
func (r *Rank) call(k calls.Kind, c Call) *call.Call {
	buf := func(n int) mem.Buffer {
		b, _ := r.space().Alloc(mem.U8, n)
		return b
	}
	length := func(v calls.Vector) int { // of the vector, or of a block for each rank
		if v.PerRank() {
			return c.Bytes * c.Ranks
		}
		return c.Bytes
	}
	t := &calls.Table[k]
	return new(call.Call).Fill(k, &call.Arguments{
		Send: buf(length(t.Send)), Recv: buf(length(t.Recv)), Root: c.Root,
		Op: call.Op{Kind: mem.Sum, Func: r.space().reduce},
	})
}
