package path

import "gompi/internal/calls"

// A Method is an algorithm over messages, as a collective has it. Package coll has its code.
type Method struct {
	Algorithm Algorithm
	Doc       string // how the algorithm works, and when it is good
	// Ordered means that operands are combined in the order of coll/order.go. Then the algorithm
	// serves functions and deterministic mode.
	Ordered bool
}

// A collective is a collective with a choice of algorithms over messages.
type collective struct {
	kind    calls.Kind
	methods []Method
	rules   []rule
}

// A rule specifies which algorithm to take for which calls. The built-in rules come from the
// simulated machines of comm/sim, hosts with one rank each ("network") and with eight ("cluster"),
// on which a test keeps every choice within a third of the best. Each comment names a cell: the
// microseconds of the rule's algorithm, and of the choice without the rule. Where ranks share
// processors ("oversubscribed") the fewest messages are best: each wakes a rank.
type rule struct {
	from, to       int64 // bytes, as gompi-bench has them; to is exclusive, 0 for no limit
	ranks          int   // at least
	spread         bool  // only if there are several hosts, and more ranks than hosts
	oversubscribed bool  // only if several ranks have to share a processor
	alg            Algorithm
}

// catalogue lists all algorithms over messages and the rules that choose among them. The last rule
// that fits a call decides; where none fits, the first algorithm, which works in every case.
var catalogue = [...]collective{
	{
		kind: calls.Barrier,
		methods: []Method{
			{Algorithm: Dissemination, Doc: "every rank signals those 1, 2, 4... ahead: fewest rounds"},
			{Algorithm: Binomial, Doc: "up and down a binomial tree: fewest messages"},
		},
		rules: []rule{
			// oversubscribed, 256 ranks: 4.1 ms, 16.4; measured, on two processors: 11 ms, 31
			{oversubscribed: true, ranks: 64, alg: Binomial},
		},
	},
	{
		kind: calls.Bcast,
		methods: []Method{
			{Algorithm: Binomial, Doc: "down a binomial tree: fewest rounds"},
			{Algorithm: ScatterAllgather, Doc: "scatter, then allgather: every link carries the vector twice at most"},
			{Algorithm: Chain, Doc: "chunk by chunk along a chain: every rank sends the vector once"},
		},
		rules: []rule{
			{ranks: 3, from: 128 << 10, alg: ScatterAllgather}, // network, 8 ranks, 128 KiB: 198 us, 266
			// measured, 8 hosts of 100 Mbit/s, 256 KiB: 49 ms, 79
			{ranks: 3, from: 256 << 10, alg: Chain},
			{ranks: 12, from: 128 << 10, alg: ScatterAllgather},  // network, 16 ranks, 256 KiB: 416 us, 555
			{ranks: 12, from: 1 << 20, alg: Chain},               // network, 16 ranks, 4 MiB: 2479 us, 3712
			{ranks: 24, from: 128 << 10, alg: ScatterAllgather},  // network, 64 ranks, 1 MiB: 1430 us, 2487
			{ranks: 24, from: 4 << 20, alg: Chain},               // network, 33 ranks, 4 MiB: 3231 us, 4185
			{ranks: 100, from: 128 << 10, alg: ScatterAllgather}, // network, 1000 ranks, 16 MiB: 15.3 ms, 36.8
			{ranks: 100, from: 64 << 20, alg: Chain},             // network, 256 ranks, 64 MiB: 40.8 ms, 59.6
		},
	},
	{
		kind: calls.Reduce,
		methods: []Method{
			{Algorithm: Binomial, Doc: "up a binomial tree: fewest rounds and messages", Ordered: true},
			{Algorithm: Halving, Doc: "reduce-scatter by halving, then gather: the work is divided", Ordered: true},
			{Algorithm: Chain, Doc: "chunk by chunk along a chain: every rank sends the vector once"},
		},
		rules: []rule{
			{ranks: 3, from: 64 << 10, alg: Halving},   // network, 8 ranks, 512 KiB: 465 us, 650
			{ranks: 3, from: 1 << 20, alg: Chain},      // network, 7 ranks, 4 MiB: 1973 us, 3880
			{ranks: 12, from: 64 << 10, alg: Halving},  // network, 16 ranks, 1 MiB: 895 us, 1148
			{ranks: 12, from: 2 << 20, alg: Chain},     // network, 16 ranks, 4 MiB: 2538 us, 2861
			{ranks: 24, from: 64 << 10, alg: Halving},  // network, 64 ranks, 4 MiB: 3096 us, 4742
			{ranks: 24, from: 16 << 20, alg: Chain},    // network, 64 ranks, 64 MiB: 40.7 ms, 42.8
			{ranks: 100, from: 64 << 10, alg: Halving}, // network, 1000 ranks, 16 MiB: 12.2 ms, 38.5
		},
	},
	{
		kind: calls.Allreduce,
		methods: []Method{
			{Algorithm: RecursiveDoubling, Doc: "recursive doubling: fewest rounds", Ordered: true},
			{Algorithm: Binomial, Doc: "up and down a binomial tree: fewest messages", Ordered: true},
			{Algorithm: Direct, Doc: "every rank sends to all and combines all: one step", Ordered: true},
			{Algorithm: Halving, Doc: "reduce-scatter by halving, allgather by doubling: fewest bytes", Ordered: true},
			{Algorithm: Circulant, Doc: "reduce-scatter and allgather by the circulant pattern: fewest bytes for any number of ranks"},
		},
		rules: []rule{
			// oversubscribed, 2 ranks, 4 MiB: 968 us, 998; measured over TCP: 1.2 ms, 1.5
			{from: 2 << 20, alg: Halving},
			{ranks: 3, alg: Direct},                     // network, 5 ranks, 8 B: 22.0 us, 48.0
			{ranks: 16, alg: RecursiveDoubling},         // network, 64 ranks, 8 B: 96.0 us, 252
			{ranks: 3, from: 64 << 10, alg: Halving},    // network, 8 ranks, 64 KiB: 146 us, 178
			{ranks: 16, from: 32 << 10, alg: Halving},   // network, 33 ranks, 32 KiB: 194 us, 356
			{ranks: 3, from: 256 << 10, alg: Circulant}, // network, 7 ranks, 1 MiB: 834 us, 1334
			// measured over TCP, on two processors, of 8 ranks: 61 us, 187
			{oversubscribed: true, ranks: 3, to: 32 << 10, alg: Binomial},
		},
	},
	{
		kind: calls.ReduceScatter,
		methods: []Method{
			{Algorithm: Cubes, Doc: "by halving in rank order, then every block to its owner", Ordered: true},
			{Algorithm: Circulant, Doc: "by the circulant pattern: fewest rounds and bytes for any number of ranks"},
		},
		rules: []rule{
			{alg: Circulant}, // network, 7 ranks, 16 KiB: 92.7 us, 127
			{spread: true, from: 1 << 10, alg: Cubes}, // cluster, 64 ranks, 4 KiB: 182 us, 774
		},
	},
	{
		kind: calls.Allgather,
		methods: []Method{
			{Algorithm: Circulant, Doc: "by the circulant pattern: fewest rounds for any number of ranks"},
			{Algorithm: Direct, Doc: "every rank sends to all: one step"},
			{Algorithm: Ring, Doc: "around a ring: fewest bytes between hosts"},
		},
		rules: []rule{
			{ranks: 3, to: 256 << 10, alg: Direct},   // network, 5 ranks, 4 KiB: 25.1 us, 55.7
			{ranks: 24, alg: Circulant},              // network, 64 ranks, 8 B: 106 us, 252
			{spread: true, from: 8 << 10, alg: Ring}, // cluster, 64 ranks, 256 KiB: 5315 us, 40764
		},
	},
	{
		kind: calls.Gather,
		methods: []Method{
			{Algorithm: Linear, Doc: "from each rank to root: fewest bytes"},
			{Algorithm: Binomial, Doc: "up a binomial tree: fewest rounds"},
		},
		rules: []rule{
			{ranks: 24, to: 4 << 10, alg: Binomial}, // cluster, 64 ranks, 8 B: 54.2 us, 102
		},
	},
	{
		kind: calls.Scatter,
		methods: []Method{
			{Algorithm: Linear, Doc: "from root to each rank: fewest bytes"},
			{Algorithm: Binomial, Doc: "down a binomial tree: fewest rounds"},
		},
		rules: []rule{
			{ranks: 24, to: 4 << 10, alg: Binomial}, // cluster, 64 ranks, 8 B: 54.2 us, 102
		},
	},
	{
		kind: calls.Alltoall,
		methods: []Method{
			{Algorithm: Pairwise, Doc: "every block straight to its rank: fewest bytes"},
			{Algorithm: Bruck, Doc: "blocks travel together through other ranks: fewest rounds"},
		},
		rules: []rule{
			{ranks: 24, to: 2 << 10, alg: Bruck},         // cluster, 64 ranks, 8 B: 55.2 us, 189
			{spread: true, from: 1 << 10, alg: Pairwise}, // cluster, 64 ranks, 1 KiB: 205 us, 354
		},
	},
	{
		kind: calls.Scan,
		methods: []Method{
			{Algorithm: RecursiveDoubling, Doc: "recursive doubling: fewest rounds", Ordered: true},
			{Algorithm: Chain, Doc: "chunk by chunk along a chain: fewest messages, every rank sends the vector once"},
		},
		rules: []rule{
			{ranks: 3, from: 1 << 20, alg: Chain},       // network, 7 ranks, 4 MiB: 2099 us, 4220
			{spread: true, from: 128 << 10, alg: Chain}, // cluster, 24 ranks, 256 KiB: 554 us, 1955
		},
	},
}

// position returns the index of the rules of a collective, -1 if it has none. Collectives with
// blocks of different lengths use the rules of their forms with equal blocks.
func position(k calls.Kind) int {
	k = k.TunedAs()
	for i := range catalogue {
		if catalogue[i].kind == k {
			return i
		}
	}
	return -1
}

// Methods returns the algorithms over messages that a collective has.
func Methods(k calls.Kind) []Method {
	if i := position(k); i >= 0 {
		return catalogue[i].methods
	}
	return nil
}

// serves reports whether the method serves calls; ordered means calls whose operands keep an order.
func (m *Method) serves(ordered bool) bool { return m.Ordered || !ordered }
