package call

import (
	"gompi/internal/calls"
	"gompi/internal/mem"
)

// The model states what each collective does as MPI does, element by element, and shares
// nothing with the table of traits.

// A move says that an element of one rank's buffer has a part in an element of another's.
type move struct {
	src, from int // rank, and the element of its send (bcast: of its recv)
	dst, to   int // rank, and the element of its recv
}

// A sample is one collective on some ranks, with the arguments of each.
type sample struct {
	kind  calls.Kind
	p     int
	root  int
	calls []*Call // by rank
	moves []move
}

const perBlock = 3 // elements of blocks that are equal

// kinds are what users call.
var kinds = []calls.Kind{
	calls.Barrier, calls.Bcast, calls.Reduce, calls.Allreduce, calls.ReduceScatter, calls.ReduceScatterBlock,
	calls.Allgather, calls.Allgatherv,
	calls.Gather, calls.Gatherv, calls.Scatter, calls.Scatterv, calls.Alltoall, calls.Alltoallv, calls.Scan,
	calls.Exscan,
}

// samples calls f with every collective on a few ranks with every root.
func samples(f func(s *sample)) {
	for _, k := range kinds {
		for _, p := range []int{1, 2, 3, 5} {
			for root := range p {
				if s := newSample(k, p, root); root == 0 || k.Rooted() {
					f(s)
				}
			}
		}
	}
}

// uneven returns how many elements go from one rank to another where blocks differ.
func uneven(from, to int) int { return (from+2*to)%4 + 1 }

// scattered returns displacements of blocks, the last rank's first, with a gap before each.
func scattered(counts []int) (displs []int, n int) {
	displs = make([]int, len(counts))
	for r := len(counts) - 1; r >= 0; r-- {
		displs[r] = n + 1
		n += 1 + counts[r]
	}
	return displs, n
}

// list returns f of all ranks.
func list(p int, f func(r int) int) []int {
	l := make([]int, p)
	for r := range l {
		l[r] = f(r)
	}
	return l
}

func vec(n int) mem.Buffer { return mem.Of(make([]int32, n)) }

var sum = Op{Kind: mem.Sum}

func newSample(k calls.Kind, p, root int) *sample {
	s := &sample{kind: k, p: p, root: root}
	counts := list(p, func(r int) int { return uneven(r, r) })
	displs, n := scattered(counts)
	all := 0
	for _, c := range counts {
		all += c
	}
	const b = perBlock
	for r := range p {
		c := new(Call)
		switch k {
		case calls.Barrier:
			c.Barrier()
		case calls.Bcast:
			c.Bcast(root, vec(b))
		case calls.Reduce:
			c.Reduce(root, vec(b), vec(b), sum)
		case calls.Allreduce:
			c.Allreduce(vec(b), vec(b), sum)
		case calls.ReduceScatter:
			c.ReduceScatter(vec(all), vec(counts[r]), counts, sum)
		case calls.ReduceScatterBlock:
			c.ReduceScatterBlock(vec(p*b), vec(b), sum)
		case calls.Allgather:
			c.Allgather(vec(b), vec(p*b))
		case calls.Allgatherv:
			c.Allgatherv(vec(counts[r]), vec(n), counts, displs)
		case calls.Gather:
			c.Gather(root, vec(b), vec(p*b))
		case calls.Gatherv:
			c.Gatherv(root, vec(counts[r]), vec(n), counts, displs)
		case calls.Scatter:
			c.Scatter(root, vec(p*b), vec(b))
		case calls.Scatterv:
			c.Scatterv(root, vec(n), vec(counts[r]), counts, displs)
		case calls.Alltoall:
			c.Alltoall(vec(p*b), vec(p*b))
		case calls.Alltoallv:
			out, in := list(p, func(to int) int { return uneven(r, to) }),
				list(p, func(from int) int { return uneven(from, r) })
			outAt, outLen := scattered(out)
			inAt, inLen := scattered(in)
			c.Alltoallv(vec(outLen), out, outAt, vec(inLen), in, inAt)
		case calls.Scan:
			c.Scan(vec(b), vec(b), sum)
		case calls.Exscan:
			c.Exscan(vec(b), vec(b), sum)
		}
		s.calls = append(s.calls, c)
	}
	for src := range p {
		for dst := range p {
			s.addMoves(src, dst, counts, displs)
		}
	}
	return s
}

// addMoves adds what moves from one rank to another.
func (s *sample) addMoves(src, dst int, counts, displs []int) {
	add := func(n, from, to int) {
		for i := range n {
			s.moves = append(s.moves, move{src, from + i, dst, to + i})
		}
	}
	const b = perBlock
	switch s.kind {
	case calls.Bcast:
		if src == s.root && dst != s.root {
			add(b, 0, 0)
		}
	case calls.Reduce:
		if dst == s.root {
			add(b, 0, 0)
		}
	case calls.Allreduce:
		add(b, 0, 0)
	case calls.Scan:
		if src <= dst {
			add(b, 0, 0)
		}
	case calls.Exscan:
		if src < dst {
			add(b, 0, 0)
		}
	case calls.ReduceScatter:
		at := 0
		for _, c := range counts[:dst] {
			at += c
		}
		add(counts[dst], at, 0)
	case calls.ReduceScatterBlock:
		add(b, dst*b, 0)
	case calls.Allgather:
		add(b, 0, src*b)
	case calls.Allgatherv:
		add(counts[src], 0, displs[src])
	case calls.Gather:
		if dst == s.root {
			add(b, 0, src*b)
		}
	case calls.Gatherv:
		if dst == s.root {
			add(counts[src], 0, displs[src])
		}
	case calls.Scatter:
		if src == s.root {
			add(b, dst*b, 0)
		}
	case calls.Scatterv:
		if src == s.root {
			add(counts[dst], displs[dst], 0)
		}
	case calls.Alltoall:
		add(b, dst*b, src*b)
	case calls.Alltoallv:
		out, _ := scattered(list(s.p, func(to int) int { return uneven(src, to) }))
		in, _ := scattered(list(s.p, func(from int) int { return uneven(from, dst) }))
		add(uneven(src, dst), out[dst], in[src])
	}
}

// sent returns which elements a rank sends to another, or to any if that is -1.
func (s *sample) sent(rank, to int) map[int]bool {
	set := map[int]bool{}
	for _, m := range s.moves {
		if m.src == rank && (to < 0 || m.dst == to) {
			set[m.from] = true
		}
	}
	return set
}

// received returns which elements a rank receives from another, or from any if that is -1.
func (s *sample) received(rank, from int) map[int]bool {
	set := map[int]bool{}
	for _, m := range s.moves {
		if m.dst == rank && (from < 0 || m.src == from) {
			set[m.to] = true
		}
	}
	return set
}
