package randprog

import (
	"fmt"
	"strings"

	"gompi/internal/mem"
)

// A collective is one collective call, or a persistent one that is started some times.
type collective struct {
	header
	kind    string
	typ     mem.Type
	op      mem.Op
	n       int // elements: of the vector, or about as many per block
	root    int
	inPlace bool
	gaps    bool // v forms and alltoallw: blocks apart from each other, in reverse order
	alloc   bool // buffers lie in memory from Alloc, on most ranks
	how     form
	times   int // a persistent one is started, if it is waited for at once
	until   int // the unit before which it is waited for, if it is not blocking
}

// A form is how a collective is called.
type form int

const (
	blocking form = iota
	nonblocking
	persistent
)

func (f form) String() string { return [...]string{"", ", nonblocking", ", persistent"}[f] }

func (c *collective) String() string {
	s := fmt.Sprintf("%s of %d %v", c.kind, c.n, c.typ)
	if c.op != mem.NoOp {
		s += fmt.Sprintf(", %v", c.op)
	}
	if hasRoot(c.kind) {
		s += fmt.Sprintf(", root %d", c.root)
	}
	for _, is := range []struct {
		so   bool
		word string
	}{{c.inPlace, ", in place"}, {c.gaps, ", gaps"}, {c.alloc, ", Alloc"},
		{c.times > 1, fmt.Sprintf(", %d times", c.times)}} {
		if is.so {
			s += is.word
		}
	}
	s += c.how.String()
	if c.until > c.id {
		s += fmt.Sprintf(", until unit %d", c.until)
	}
	return s
}

// A call is one rank's arguments of a collective.
type call struct {
	send, recv int // elements
	// In place, send begins at this element of recv, or recv at this one of send.
	sendAt, recvAt         int
	sendCounts, sendDispls []int
	counts, displs         []int
	// scratch: send may hold anything afterwards.
	scratch bool
}

const apart = -1 // send and recv are two buffers

// count is the length of block i of a v form: uneven, with empty ones.
func (c *collective) count(i int) int {
	switch h := mix(c.seed + uint64(i)); h % 4 {
	case 0:
		return 0
	case 1:
		return c.n
	default:
		return int(h >> 8 % uint64(c.n+2))
	}
}

// layout returns the counts given by f, their displacements, nil if they are packed,
// and the elements that they span. Displacements of empty blocks mean nothing.
func (c *collective) layout(size int, f func(i int) int) (counts, displs []int, n int) {
	counts = make([]int, size)
	for i := range counts {
		counts[i] = f(i)
	}
	if !c.gaps || !strings.HasSuffix(c.kind, "v") && c.kind != "alltoallw" {
		return counts, nil, total(counts)
	}
	displs, n = make([]int, size), 2
	for i := size - 1; i >= 0; i-- {
		if displs[i] = n; counts[i] == 0 {
			displs[i] = int(mix(c.seed + uint64(i)))
		}
		n += counts[i] + 1 + i%2
	}
	return counts, displs, n
}

func total(counts []int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// start returns where block i begins.
func start(counts, displs []int, i int) int {
	switch {
	case displs == nil:
		return total(counts[:i])
	case counts[i] == 0:
		return 0
	}
	return displs[i]
}

// between is the length of one rank's message to another in alltoallv and alltoallw. In place, it
// is the length of the other's message.
func (c *collective) between(from, to, size int) int {
	if c.inPlace {
		from, to = min(from, to), max(from, to)
	}
	return c.count(from*size + to)
}

// blocks is the length of rank i's block in a gather or scatter.
func (c *collective) blocks(i int) int {
	if c.kind == "gatherv" || c.kind == "scatterv" || c.kind == "allgatherv" || c.kind == "reducescatter" {
		return c.count(i)
	}
	return c.n
}

// call returns the arguments of rank me of size.
func (c *collective) call(me, size int) (k call) {
	k.sendAt, k.recvAt = apart, apart
	counts, displs, all := c.layout(size, c.blocks)
	mine, at := counts[me], start(counts, displs, me)
	if strings.HasPrefix(c.kind, "reduce") && !strings.HasPrefix(c.kind, "reducescatter") {
		at = 0 // there are no blocks
	}
	switch c.kind {
	case "barrier":
	case "bcast":
		k.recv = c.n
	case "reduce", "reducefunc":
		if k.send = c.n; me == c.root {
			k.recv = c.n
		}
	case "allreduce", "allreducefunc", "scan", "exscan":
		k.send, k.recv = c.n, c.n
	case "reducescatter", "reducescatterblock":
		k.send, k.recv, k.counts = all, mine, counts
	case "gather", "gatherv":
		if k.send = mine; me == c.root {
			k.recv, k.counts, k.displs = all, counts, displs
		}
	case "allgather", "allgatherv":
		k.send, k.recv, k.counts, k.displs = mine, all, counts, displs
	case "scatter", "scatterv":
		if k.recv = mine; me == c.root {
			k.send, k.counts, k.displs = all, counts, displs
		}
	case "alltoall":
		k.send, k.recv = c.n*size, c.n*size
	case "alltoallv", "alltoallw":
		k.sendCounts, k.sendDispls, k.send = c.layout(size, func(i int) int { return c.between(me, i, size) })
		k.counts, k.displs, k.recv = c.layout(size, func(i int) int { return c.between(i, me, size) })
	}
	if c.inPlace {
		c.share(&k, me, at)
	}
	return k
}

// each returns the blocks of a vector of rank me, in an alltoallw. Between some ranks they are
// bytes.
func (c *collective) each(b mem.Buffer, counts, displs []int, me int) []mem.Buffer {
	all := make([]mem.Buffer, len(counts))
	for i := range all {
		at := start(counts, displs, i)
		all[i] = b.Slice(at, at+counts[i])
		if mix(c.seed+uint64(min(i, me)*len(counts)+max(i, me)))%3 == 0 {
			all[i] = mem.HostBytes(mem.U8, all[i].Size(), all[i].HostSlice())
		}
	}
	return all
}

// share makes k a call in place, where the kind has one; at is where me's block begins.
func (c *collective) share(k *call, me, at int) {
	switch c.kind {
	case "reduce", "reducefunc", "gather", "gatherv":
		if me == c.root {
			k.sendAt = at
		}
	case "allreduce", "allreducefunc", "scan", "exscan", "alltoall", "alltoallv", "alltoallw":
		k.sendAt = 0
	case "allgather", "allgatherv":
		k.sendAt = at
	case "scatter", "scatterv":
		if me == c.root {
			k.recvAt = at
		}
	case "reducescatter", "reducescatterblock":
		if k.recvAt = at; c.gaps { // the other form of in place
			k.recvAt = 0
		}
		k.scratch = true
	}
}
