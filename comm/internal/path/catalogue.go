package path

import "gompi/comm/internal/call"

// A Method is an algorithm over messages, as one collective has it. Package coll has its code.
type Method struct {
	Algorithm Algorithm
	Doc       string // what it does, when it is good
	// Ordered says that operands are combined in the order of coll/order.go. Then the algorithm
	// serves functions and deterministic mode.
	Ordered    bool
	PowerOfTwo bool // works for a power of two ranks only
}

// A collective is one that has a choice of algorithms over messages.
type collective struct {
	kind    call.Kind
	methods []Method
	rules   []rule
}

// A rule says which algorithm to take for which calls. The thresholds of the built-in rules come
// from the simulated machines of coll/sim_test.go, hosts with one rank each ("network") and with
// eight ("cluster"), on which a test keeps every choice within a third of the best. Those for
// ranks that outnumber the processors of one host, where messages serve only by GOMPI_TRANSPORT=tcp
// and among goroutines, come from measurements of both on two processors.
type rule struct {
	from, to       int64 // bytes, as gompi-bench has them; to is exclusive, 0 for no limit
	ranks          int   // at least
	oversubscribed bool  // only where some host has more ranks than processors
	local          bool  // only on one host
	remote         bool  // only if there are several hosts
	spread         bool  // only if there are, and more ranks than hosts
	pow2           bool  // only for a power of two ranks
	alg            Algorithm
}

// catalogue lists all algorithms over messages and the rules that choose among them. The last
// rule that fits a call decides. The first algorithm of each collective works in every case.
var catalogue = [...]collective{
	{
		kind: call.Barrier,
		methods: []Method{
			{Algorithm: Dissemination, Doc: "everyone signals 1, 2, 4... ranks ahead: fewest rounds"},
			{Algorithm: Tree, Doc: "gathered up and released down a binomial tree: fewest messages"},
		},
		rules: []rule{
			{alg: Dissemination},
			{oversubscribed: true, local: true, ranks: 5, alg: Tree},
		},
	},
	{
		kind: call.Bcast,
		methods: []Method{
			{Algorithm: Binomial, Doc: "down a binomial tree: fewest rounds"},
			{Algorithm: ScatterAllgather, Doc: "scatter, then allgather: every link carries the vector twice at most"},
			{Algorithm: Chain, Doc: "chunk by chunk along a chain: every rank sends the vector once"},
		},
		rules: []rule{
			{alg: Binomial},
			{ranks: 5, from: 64 << 10, alg: ScatterAllgather},
			{ranks: 3, from: 1 << 20, to: 4 << 20, alg: ScatterAllgather},
			{ranks: 3, from: 4 << 20, alg: Chain},
			{ranks: 24, from: 4 << 20, alg: ScatterAllgather},
			{ranks: 24, from: 32 << 20, alg: Chain},
			{spread: true, alg: Binomial},
			{spread: true, ranks: 64, from: 64 << 10, to: 256 << 10, alg: ScatterAllgather},
			{spread: true, from: 1 << 20, alg: Chain},
			{oversubscribed: true, local: true, to: 4 << 20, alg: Binomial},
		},
	},
	{
		kind: call.Reduce,
		methods: []Method{
			{Algorithm: Binomial, Doc: "up a binomial tree: fewest rounds and messages", Ordered: true},
			{Algorithm: Halving, Doc: "reduce-scatter by halving, then gather: the work is divided", Ordered: true},
			{Algorithm: Chain, Doc: "chunk by chunk along a chain: every rank sends the vector once"},
		},
		rules: []rule{
			{alg: Binomial},
			{ranks: 3, from: 64 << 10, alg: Halving},
			{ranks: 3, from: 4 << 20, alg: Chain},
			{ranks: 24, from: 4 << 20, alg: Halving},
			{ranks: 24, from: 32 << 20, alg: Chain},
			{spread: true, from: 64 << 10, alg: Halving},
			{oversubscribed: true, local: true, ranks: 3, to: 4 << 20, alg: Binomial},
		},
	},
	{
		kind: call.Allreduce,
		methods: []Method{
			{Algorithm: RecursiveDoubling, Doc: "recursive doubling: fewest rounds", Ordered: true},
			{Algorithm: Direct, Doc: "everyone sends to everyone and combines all: one step", Ordered: true},
			{Algorithm: Tree, Doc: "reduce, then bcast, by binomial trees: fewest messages", Ordered: true},
			{Algorithm: Halving, Doc: "reduce-scatter by halving, allgather by doubling: fewest bytes", Ordered: true},
			{Algorithm: Circulant, Doc: "reduce-scatter and allgather by the circulant pattern: fewest bytes for any number of ranks"},
			{Algorithm: Ring, Doc: "reduce-scatter and allgather around a ring: fewest bytes between hosts"},
		},
		rules: []rule{
			{alg: RecursiveDoubling},
			{from: 2 << 20, alg: Halving}, // two ranks over TCP: 1 MiB 186 and 212 us, 4 MiB 1.5 and 1.2 ms
			{ranks: 3, from: 32 << 10, alg: Halving},
			{ranks: 3, from: 256 << 10, alg: Ring},
			{ranks: 4, from: 256 << 10, alg: Circulant},
			{ranks: 4, from: 32 << 10, pow2: true, alg: Halving},
			{ranks: 3, to: 32 << 10, alg: Direct},
			{ranks: 16, to: 32 << 10, alg: RecursiveDoubling},
			{spread: true, to: 32 << 10, alg: RecursiveDoubling},
			{spread: true, from: 32 << 10, alg: Halving},
			{spread: true, ranks: 24, from: 16 << 10, alg: Halving},
			{oversubscribed: true, local: true, ranks: 3, to: 512 << 10, alg: Tree},
		},
	},
	{
		kind: call.ReduceScatter,
		methods: []Method{
			{Algorithm: Tree, Doc: "reduce to rank 0, then scatter, by binomial trees: fewest messages", Ordered: true},
			{Algorithm: Cubes, Doc: "by halving in rank order, then every block to its owner", Ordered: true},
			{Algorithm: Halving, Doc: "by halving: fewest rounds and bytes", PowerOfTwo: true},
			{Algorithm: Circulant, Doc: "by the circulant pattern: fewest rounds and bytes for any number of ranks"},
			{Algorithm: Ring, Doc: "around a ring: fewest bytes between hosts, little scratch"},
		},
		rules: []rule{
			{alg: Cubes},
			{alg: Circulant},
			{pow2: true, alg: Halving},
			{spread: true, from: 1 << 10, alg: Cubes},
			{oversubscribed: true, local: true, ranks: 5, to: 8 << 10, alg: Tree},
			{oversubscribed: true, local: true, ranks: 3, from: 512 << 10, alg: Ring},
			{oversubscribed: true, local: true, ranks: 12, from: 512 << 10, alg: Circulant},
		},
	},
	{
		kind: call.Allgather,
		methods: []Method{
			{Algorithm: Circulant, Doc: "by the circulant pattern: fewest rounds for any number of ranks"},
			{Algorithm: Direct, Doc: "everyone sends to everyone: one step"},
			{Algorithm: Tree, Doc: "gather, then bcast, by binomial trees: fewest messages"},
			{Algorithm: Ring, Doc: "around a ring: fewest bytes between hosts"},
		},
		rules: []rule{
			{alg: Circulant},
			{ranks: 3, to: 256 << 10, alg: Direct},
			{ranks: 24, to: 256 << 10, alg: Circulant},
			{spread: true, to: 8 << 10, alg: Circulant},
			{spread: true, from: 8 << 10, alg: Ring},
			{oversubscribed: true, local: true, ranks: 3, alg: Direct},
			{oversubscribed: true, local: true, ranks: 5, to: 256 << 10, alg: Tree},
		},
	},
	{
		kind: call.Gather,
		methods: []Method{
			{Algorithm: Binomial, Doc: "up a binomial tree: fewest rounds"},
			{Algorithm: Linear, Doc: "from each rank to root: fewest bytes"},
		},
		rules: []rule{
			{alg: Linear},
			{ranks: 24, to: 4 << 10, alg: Binomial},
		},
	},
	{
		kind: call.Scatter,
		methods: []Method{
			{Algorithm: Binomial, Doc: "down a binomial tree: fewest rounds"},
			{Algorithm: Linear, Doc: "from root to each rank: fewest bytes"},
		},
		rules: []rule{
			{alg: Linear},
			{ranks: 24, to: 4 << 10, alg: Binomial},
		},
	},
	{
		kind: call.Alltoall,
		methods: []Method{
			{Algorithm: Pairwise, Doc: "every block straight to its rank: fewest bytes"},
			{Algorithm: Bruck, Doc: "blocks travel together through other ranks: fewest rounds"},
		},
		rules: []rule{
			{alg: Pairwise},
			{ranks: 24, to: 2 << 10, alg: Bruck},
			{spread: true, alg: Pairwise},
			{spread: true, to: 1 << 10, alg: Bruck},
			{oversubscribed: true, local: true, ranks: 8, to: 1 << 10, alg: Bruck},
		},
	},
	{
		kind: call.Scan,
		methods: []Method{
			{Algorithm: RecursiveDoubling, Doc: "recursive doubling: fewest rounds", Ordered: true},
			{Algorithm: Chain, Doc: "chunk by chunk along a chain: fewest messages, every rank sends the vector once"},
		},
		rules: []rule{
			{alg: RecursiveDoubling},
			{ranks: 3, from: 512 << 10, alg: Chain},
			{spread: true, from: 128 << 10, alg: Chain},
			{oversubscribed: true, local: true, ranks: 4, from: 64 << 10, alg: Chain},
		},
	},
}

// position returns where the rules of a collective stand, -1 if it has none. Collectives with
// blocks of different lengths go by the rules of those with equal ones.
func position(k call.Kind) int {
	k = k.TunedAs()
	for i := range catalogue {
		if catalogue[i].kind == k {
			return i
		}
	}
	return -1
}

// Methods returns the algorithms over messages that a collective has.
func Methods(k call.Kind) []Method {
	if i := position(k); i >= 0 {
		return catalogue[i].methods
	}
	return nil
}

// serves reports whether the method serves calls on so many ranks, ordered ones if ordered.
func (m *Method) serves(ranks int, ordered bool) bool {
	return (m.Ordered || !ordered) && (!m.PowerOfTwo || ranks&(ranks-1) == 0)
}
