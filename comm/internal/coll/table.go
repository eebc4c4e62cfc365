package coll

import (
	"slices"

	"gompi/internal/mem"
)

// A method describes one way of doing a collective.
type method struct {
	name string
	doc  string // what it does, when it is good
	// ordered says that operands are combined as order.go says, so that the
	// method serves functions of the user's and deterministic mode.
	ordered bool
	pow2    bool // works for a power of two ranks only
	cost    func(load) cost
}

// An algorithm is a method with its code; F is one function type per
// collective.
type algorithm[F any] struct {
	method
	run F
}

// A load is the size of one call. elems is the whole vector for Bcast, Reduce,
// Allreduce and Scan, and one rank's block for the others: what gompi-bench
// calls bytes.
type load struct{ ranks, root, elems, size int }

func (l load) bytes() int64 { return int64(l.elems) * int64(l.size) }

// A cost is what an algorithm spends on a call. Tests hold algorithms to it.
type cost struct {
	rounds   int   // steps one after the other; what is started together counts once
	messages int   // sent by all ranks
	bytes    int64 // sent by all ranks
}

func (c cost) plus(d cost) cost {
	return cost{c.rounds + d.rounds, c.messages + d.messages, c.bytes + d.bytes}
}

// A kind is a collective that has a choice of algorithms of its own.
type kind uint8

const (
	kBarrier kind = iota
	kBcast
	kReduce
	kAllreduce
	kReduceScatter
	kAllgather
	kGather
	kScatter
	kAlltoall
	kScan
	numKinds
)

// reduces reports whether k combines operands.
func (k kind) reduces() bool {
	return k == kReduce || k == kAllreduce || k == kReduceScatter || k == kScan
}

// A collective is what the catalogue says of one.
type collective struct {
	name  string
	algs  []method
	rules []rule
}

// catalogue lists all algorithms and the rules that choose among them. The
// first algorithm of each works in every case.
var catalogue = [numKinds]collective{
	kBarrier:       {"barrier", about(barriers), barrierRules},
	kBcast:         {"bcast", about(bcasts), bcastRules},
	kReduce:        {"reduce", about(reduces), reduceRules},
	kAllreduce:     {"allreduce", about(allreduces), allreduceRules},
	kReduceScatter: {"reducescatter", about(reduceScatters), reduceScatterRules},
	kAllgather:     {"allgather", about(allgathers), allgatherRules},
	kGather:        {"gather", about(gathers), gatherRules},
	kScatter:       {"scatter", about(scatters), scatterRules},
	kAlltoall:      {"alltoall", about(alltoalls), alltoallRules},
	kScan:          {"scan", about(scans), scanRules},
}

func about[F any](algs []algorithm[F]) []method {
	var list []method
	for _, a := range algs {
		list = append(list, a.method)
	}
	return list
}

// A rule says which algorithm to take for which calls. The thresholds of the
// built-in rules come from the simulated machines of sim_test.go, on which a
// test keeps every choice within a third of the best. There "loopback" stands
// for processes of one host that talk over TCP, "crowded" for more of them than
// processors, "network" for hosts with one rank each, "cluster" with eight.
type rule struct {
	from, to int64 // bytes, see load; to is exclusive, 0 for no limit
	ranks    int   // at least
	crowded  bool  // only in a Crowded table
	remote   bool  // only if there are several hosts
	spread   bool  // only if there are, and more ranks than hosts
	pow2     bool  // only for a power of two ranks
	alg      string
}

// A Table says which algorithm serves which call. Of the rules for a collective
// that fit a call, the last one whose algorithm can do it decides; those of Tune come
// before the built-in ones. All ranks of
// a communicator must use equal tables: one rank makes it, the others Decode
// it. A Table is not changed after that and may be shared; a copy may be given
// other conditions, those of a communicator on fewer hosts.
type Table struct {
	// Deterministic keeps to ordered algorithms, so that results do not depend
	// on the choice.
	Deterministic bool
	// Crowded says that on some host more ranks than processors run, so that
	// the number of messages counts and not the number of rounds.
	Crowded bool
	// Hosts is the number of hosts that the ranks run on, 0 for one. Ranks of a
	// host are taken to be neighbours.
	Hosts int

	rules [numKinds][]rule
	tuned [numKinds][]rule // those of Tune
	tunes bool             // there are such
}

// NewTable returns the built-in table.
func NewTable() *Table {
	t := new(Table)
	for k := range t.rules {
		t.rules[k] = catalogue[k].rules
	}
	return t
}

// choose returns the algorithm for a call of k on that many ranks and bytes.
func choose[F any](t *Table, k kind, algs []algorithm[F], ranks int, bytes int64, op Op) *algorithm[F] {
	return &algs[t.pick(k, ranks, bytes, t.keepsOrder(op))]
}

// Tunes reports whether Tune has added rules to t.
func (t *Table) Tunes() bool { return t.tunes }

// Tuned reports whether a rule of Tune's decides for a call of a collective, by its name
// in the grammar of Tune: messages are to serve it also where there is something faster.
// bytes are as in rules. It is false for a name that has no rules.
func (t *Table) Tuned(name string, ranks int, bytes int64, op Op) bool {
	if !t.tunes {
		return false
	}
	k := slices.IndexFunc(catalogue[:], func(c collective) bool { return c.name == name })
	return k >= 0 && t.find(t.tuned[k], kind(k), ranks, bytes, t.keepsOrder(op)) >= 0
}

// keepsOrder reports whether a call with op wants an ordered method.
func (t *Table) keepsOrder(op Op) bool {
	return op.Kind == mem.Custom || op.Kind != mem.NoOp && t.Deterministic
}

// pick returns the index of the algorithm in the catalogue.
func (t *Table) pick(k kind, ranks int, bytes int64, ordered bool) int {
	i := t.find(t.tuned[k], k, ranks, bytes, ordered)
	if i < 0 {
		i = t.find(t.rules[k], k, ranks, bytes, ordered)
	}
	return max(i, 0)
}

// find returns the index of the algorithm that some rules for k take, -1 if none decides.
func (t *Table) find(rules []rule, k kind, ranks int, bytes int64, ordered bool) int {
	pow2, remote := ranks&(ranks-1) == 0, t.Hosts > 1
	spread := remote && ranks > t.Hosts
	algs := catalogue[k].algs
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		if bytes < r.from || r.to > 0 && bytes >= r.to || ranks < r.ranks ||
			r.pow2 && !pow2 || r.crowded && !t.Crowded || r.remote && !remote || r.spread && !spread {
			continue
		}
		for j := range algs {
			if a := &algs[j]; a.name == r.alg && (a.ordered || !ordered) && (pow2 || !a.pow2) {
				return j
			}
		}
	}
	return -1
}
