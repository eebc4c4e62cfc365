package core_test

import (
	"fmt"
	"math"
	"slices"

	"gompi/comm"
)

// A question is a collective call, the same on all ranks.
type question struct {
	kind    string
	ranks   int
	n       int // elements: of the vector, or about as many per block
	root    int
	op      comm.Op
	inPlace bool
	gaps    bool // v forms: blocks apart from each other, in reverse order
}

func (q question) String() string {
	s := fmt.Sprintf("%s, np=%d, n=%d, root %d", q.kind, q.ranks, q.n, q.root)
	if q.op != 0 {
		s += ", " + q.op.String()
	}
	if q.inPlace {
		s += ", in place"
	}
	if q.gaps {
		s += ", gaps"
	}
	return s
}

// An answer is what one rank passes to the call, and what must be in its memory
// afterwards.
type answer[T comm.Scalar] struct {
	args[T]
	before, after [2][]T // contents of send and recv
	fences        [2]fence[T]
	scratch       bool // send may hold anything afterwards
}

// A fence is memory with a margin that must not change.
type fence[T comm.Scalar] struct {
	all    []T
	margin []T
}

const margin = 3

// fenced returns n elements inside a fence.
func fenced[T comm.Scalar](e elements[T], n int) ([]T, fence[T]) {
	all := e.vector(77, n+2*margin)
	f := fence[T]{all: all, margin: slices.Concat(all[:margin], all[margin+n:])}
	return all[margin : margin+n : margin+n], f
}

func (f fence[T]) check() error {
	if f.all == nil {
		return nil
	}
	n := len(f.all) - margin
	return equal("margin", slices.Concat(f.all[:margin], f.all[n:]), f.margin)
}

// count is the length of the block that belongs to i in a v form: uneven, with
// empty ones.
func (q question) count(i int) int { return [...]int{q.n, 0, q.n/2 + 1, 1}[i%4] }

// layout returns the counts given by f and their displacements, nil if they are
// packed, and the elements that they span. Displacements of empty blocks mean nothing.
func (q question) layout(f func(i int) int) (counts, displs []int, n int) {
	counts = make([]int, q.ranks)
	for i := range counts {
		counts[i] = f(i)
	}
	if !q.gaps {
		return counts, nil, sumOf(counts)
	}
	displs = make([]int, q.ranks)
	n = 2
	for i := q.ranks - 1; i >= 0; i-- {
		if displs[i] = n; counts[i] == 0 {
			displs[i] = [...]int{-1, math.MaxInt, n, 1 << 20}[i%4]
		}
		n += counts[i] + 1 + i%2
	}
	return counts, displs, n
}

func sumOf(v []int) (n int) {
	for _, k := range v {
		n += k
	}
	return n
}

// start returns where block i begins.
func start(counts, displs []int, i int) int {
	switch {
	case displs == nil:
		return sumOf(counts[:i])
	case counts[i] == 0:
		return 0
	}
	return displs[i]
}

// ask returns the answer for rank me.
func ask[T comm.Scalar](q question, e elements[T], me int) *answer[T] {
	a := &answer[T]{args: args[T]{root: q.root, op: q.op}}
	switch q.kind {
	case "barrier":
	case "bcast":
		a.expect(e, nil, e.vector(q.root, q.n))
		if me == q.root {
			a.before[1] = a.after[1]
		}
	case "reduce", "allreduce", "scan", "exscan":
		a.reduction(q, e, me)
	case "reducescatter", "reducescatterblock":
		a.reduceScatter(q, e, me)
	case "allgather", "allgatherv", "gather", "gatherv":
		a.gather(q, e, me)
	case "scatter", "scatterv":
		a.scatter(q, e, me)
	case "alltoall", "alltoallv":
		a.exchange(q, e, me)
	default:
		panic("no oracle for " + q.kind)
	}
	return a
}

// expect notes what is in send before, and in recv after the call; recv is
// something else before. Both are nil where they mean nothing.
func (a *answer[T]) expect(e elements[T], send, recv []T) {
	if send != nil {
		a.send, a.fences[0] = fenced(e, len(send))
		a.before[0], a.after[0] = send, send
	}
	if recv != nil {
		a.recv, a.fences[1] = fenced(e, len(recv))
		a.before[1], a.after[1] = e.vector(88, len(recv)), recv
	}
}

// share makes the call one in place: the short vector, of which is 0 for send
// and 1 for recv, becomes the part of the other that begins at the given index.
func (a *answer[T]) share(short, at int) {
	long := 1 - short
	vectors := [2]*[]T{&a.send, &a.recv}
	n := len(*vectors[short])
	*vectors[short] = (*vectors[long])[at : at+n]
	if short == 0 {
		a.before[1] = slices.Clone(a.before[1])
		copy(a.before[1][at:], a.before[0])
	} else {
		a.after[0] = slices.Clone(a.after[0])
		copy(a.after[0][at:], a.after[1])
	}
	a.fences[short] = fence[T]{}
	a.before[short], a.after[short] = nil, nil
}

func (a *answer[T]) reduction(q question, e elements[T], me int) {
	send := e.vector(me, q.n)
	switch {
	case q.kind == "scan":
		a.expect(e, send, e.folded(q.op, me+1, q.n))
	case q.kind == "exscan" && me == 0:
		a.expect(e, send, send)
		a.after[1] = a.before[1]
	case q.kind == "exscan":
		a.expect(e, send, e.folded(q.op, me, q.n))
	case q.kind == "reduce" && me != q.root:
		a.expect(e, send, nil)
		return
	default:
		a.expect(e, send, e.folded(q.op, q.ranks, q.n))
	}
	if q.inPlace {
		if q.kind == "exscan" && me == 0 {
			a.after[1] = send
		}
		a.share(0, 0)
	}
}

func (a *answer[T]) reduceScatter(q question, e elements[T], me int) {
	counts := make([]int, q.ranks)
	for i := range counts {
		counts[i] = q.n
		if q.kind == "reducescatter" {
			counts[i] = q.count(i)
			a.counts = counts
		}
	}
	n, at := sumOf(counts), sumOf(counts[:me])
	all := e.folded(q.op, q.ranks, n)
	a.expect(e, e.vector(me, n), all[at:at+counts[me]])
	if q.inPlace {
		if q.gaps { // the other form of in place
			at = 0
		}
		a.share(1, at)
		a.recv, a.after[1] = a.send[at:at+counts[me]], all[sumOf(counts[:me]):][:counts[me]]
		a.after[0], a.scratch = nil, true
	}
}

func (a *answer[T]) gather(q question, e elements[T], me int) {
	count := func(int) int { return q.n }
	if q.kind == "gatherv" || q.kind == "allgatherv" {
		count = q.count
	} else {
		q.gaps = false
	}
	send := e.vector(me, count(me))
	if (q.kind == "gather" || q.kind == "gatherv") && me != q.root {
		a.expect(e, send, nil)
		return
	}
	counts, displs, n := q.layout(count)
	a.expect(e, send, make([]T, n))
	a.after[1] = slices.Clone(a.before[1])
	for r := range q.ranks {
		copy(a.after[1][start(counts, displs, r):], e.vector(r, counts[r]))
	}
	if q.kind == "gatherv" || q.kind == "allgatherv" {
		a.counts, a.displs = counts, displs
	}
	if q.inPlace {
		a.share(0, start(counts, displs, me))
	}
}

func (a *answer[T]) scatter(q question, e elements[T], me int) {
	count := func(int) int { return q.n }
	if q.kind == "scatterv" {
		count = q.count
	} else {
		q.gaps = false
	}
	counts, displs, n := q.layout(count)
	all := e.vector(q.root, n)
	at := start(counts, displs, me)
	mine := all[at : at+counts[me]]
	if me != q.root {
		a.expect(e, nil, mine)
		return
	}
	a.expect(e, all, mine)
	if q.kind == "scatterv" {
		a.counts, a.displs = counts, displs
	}
	if q.inPlace {
		a.share(1, at)
	}
}

// exchange answers alltoall and alltoallv. In place, what i sends to j is as
// long as what j sends to i.
func (a *answer[T]) exchange(q question, e elements[T], me int) {
	between := func(from, to int) int { return q.n }
	if q.kind == "alltoallv" {
		between = func(from, to int) int { return q.count(from + 2*to) }
		if q.inPlace {
			between = func(from, to int) int { return q.count(from + to) }
		}
	} else {
		q.gaps = false
	}
	sendsOf := func(r int) (counts, displs []int, n int) {
		return q.layout(func(i int) int { return between(r, i) })
	}
	sendCounts, sendDispls, sn := sendsOf(me)
	counts, displs, rn := q.layout(func(i int) int { return between(i, me) })
	a.expect(e, e.vector(me, sn), make([]T, rn))
	a.after[1] = slices.Clone(a.before[1])
	if q.inPlace {
		a.after[1] = e.vector(me, sn)
	}
	for r := range q.ranks {
		c, d, n := sendsOf(r)
		from := start(c, d, me)
		copy(a.after[1][start(counts, displs, r):], e.vector(r, n)[from:from+c[me]])
	}
	if q.kind == "alltoallv" {
		a.sendCounts, a.sendDispls, a.counts, a.displs = sendCounts, sendDispls, counts, displs
	}
	if q.inPlace {
		a.share(0, 0)
	}
}

// fill puts into the memory what is there before a call.
func (a *answer[T]) fill() {
	copy(a.send, a.before[0])
	copy(a.recv, a.before[1])
}

// check compares the memory with what must be there after a call.
func (a *answer[T]) check() error {
	for i, v := range [2][]T{a.send, a.recv} {
		if a.after[i] != nil {
			if err := equal([2]string{"send", "recv"}[i], v, a.after[i]); err != nil {
				return err
			}
		}
		if err := a.fences[i].check(); err != nil {
			return err
		}
	}
	return nil
}
