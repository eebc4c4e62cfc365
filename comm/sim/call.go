package sim

import (
	"fmt"
	"strings"

	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// A Call is one collective that all ranks call.
type Call struct {
	Op        string // allreduce, bcast, ...: see Ops
	Algorithm string // as GOMPI_TUNE names it; "" is what gompi chooses among those over messages
	Ranks     int
	Bytes     int // of the vector, or of one rank's block, as gompi-bench has them
	Root      int
}

// kinds are the collectives that can be simulated.
var kinds = []call.Kind{call.Barrier, call.Bcast, call.Reduce, call.Allreduce, call.ReduceScatterBlock,
	call.Allgather, call.Gather, call.Scatter, call.Alltoall, call.Scan}

// Ops returns the names of the collectives that can be simulated.
func Ops() (names []string) {
	for _, k := range kinds {
		names = append(names, k.TunedAs().String())
	}
	return names
}

// Algorithms returns the names of those that a collective has, the default first.
func Algorithms(op string) (names []string, err error) {
	k, err := kindOf(op)
	for _, m := range path.Methods(k) {
		names = append(names, m.Algorithm.String())
	}
	return names, err
}

func kindOf(op string) (call.Kind, error) {
	for i, name := range Ops() {
		if name == op {
			return kinds[i], nil
		}
	}
	return 0, fmt.Errorf("collective %q: want one of %s", op, strings.Join(Ops(), ", "))
}

// Choice returns the algorithm that gompi chooses for a call among those over messages, on hosts
// like m's.
func (m *Machine) Choice(c Call) (string, error) {
	k, err := kindOf(c.Op)
	if err != nil {
		return "", err
	}
	return m.pick(k, c).String(), nil
}

func (m *Machine) pick(k call.Kind, c Call) path.Algorithm {
	hosts := (c.Ranks + m.perHost() - 1) / m.perHost()
	r := path.Rules{Hosts: hosts, Oversubscribed: m.Processors > 0 && m.Processors < m.perHost()}
	return r.Pick(k, c.Ranks, int64(c.Bytes), false)
}

// Time returns the seconds that a call takes from when its ranks meet until the last is done, with
// what Run says. Where links have a Burst it is that of a call after many.
func (m *Machine) Time(c Call, faults ...Fault) (Result, error) {
	k, err := kindOf(c.Op)
	if err != nil {
		return Result{}, err
	}
	alg, err := m.algorithm(k, c)
	if err != nil {
		return Result{}, err
	}
	if m.Burst > 0 {
		return m.afterMany(alg, k, c, faults)
	}
	return Run(m, c.Ranks, func(r *Rank) error { return r.perform(alg, k, c) }, faults...)
}

func (m *Machine) algorithm(k call.Kind, c Call) (path.Algorithm, error) {
	if c.Algorithm == "" {
		return m.pick(k, c), nil
	}
	var names []string
	for _, x := range path.Methods(k) {
		if x.Algorithm.String() == c.Algorithm {
			return x.Algorithm, nil
		}
		names = append(names, x.Algorithm.String())
	}
	return 0, fmt.Errorf("%s by %q: want one of %s", c.Op, c.Algorithm, strings.Join(names, ", "))
}

// afterMany times the last of several calls with a barrier before each, as gompi-bench does.
func (m *Machine) afterMany(alg path.Algorithm, k call.Kind, c Call, faults []Fault) (Result, error) {
	calls := 3 + min(20, 2*m.Burst/max(c.Bytes, 1))
	longest := 0.0
	res, err := Run(m, c.Ranks, func(r *Rank) error {
		for i := range calls {
			if err := coll.Barrier(r, path.Dissemination); err != nil {
				return err
			}
			start := r.Now()
			if err := r.perform(alg, k, c); err != nil {
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

// perform makes one call in memory without content.
func (r *Rank) perform(alg path.Algorithm, k call.Kind, c Call) error {
	buf := func(n int) mem.Buffer {
		b, _ := r.space().Alloc(mem.U8, n)
		return b
	}
	op := call.Op{Kind: mem.Sum, Func: r.space().reduce}
	n, all := c.Bytes, c.Bytes*c.Ranks
	var o call.Call
	switch k {
	case call.Barrier:
		o.Barrier()
	case call.Bcast:
		o.Bcast(c.Root, buf(n))
	case call.Reduce:
		o.Reduce(c.Root, buf(n), buf(n), op)
	case call.Allreduce:
		o.Allreduce(buf(n), buf(n), op)
	case call.ReduceScatterBlock:
		o.ReduceScatterBlock(buf(all), buf(n), op)
	case call.Allgather:
		o.Allgather(buf(n), buf(all))
	case call.Gather:
		o.Gather(c.Root, buf(n), buf(all))
	case call.Scatter:
		o.Scatter(c.Root, buf(all), buf(n))
	case call.Alltoall:
		o.Alltoall(buf(all), buf(all))
	case call.Scan:
		o.Scan(buf(n), buf(n), op)
	}
	return coll.Run(r, alg, &o)
}
