package coll

import (
	"fmt"
	"slices"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// A trial is one algorithm on one number of ranks, as one rank sees it. Its
// methods run one call and say what is wrong with the result.
type trial struct {
	*rank
	alg path.Algorithm
}

// tryAll runs body on every rank, for every algorithm of k, every number of
// ranks up to 17, and with sends that wait for their receives and ones that
// don't.
func tryAll(t *testing.T, k calls.Kind, body func(tr trial, m path.Method, o *oracle) error) {
	t.Helper()
	most := 17
	if testing.Short() {
		most = 6
	}
	for _, m := range path.Methods(k) {
		t.Run(m.Algorithm.String(), func(t *testing.T) {
			for p := 1; p <= most; p++ {
				o := newOracle(p)
				for _, rendezvous := range []bool{true, false} {
					if !rendezvous && p > 8 {
						continue // sends that don't wait forgive more
					}
					w := newWorld(p, rendezvous)
					w.run(t, func(r *rank) error {
						err := body(trial{r, m.Algorithm}, m, o)
						if err != nil {
							err = fmt.Errorf("%d ranks, rendezvous %v: %w", p, rendezvous, err)
						}
						return err
					})
					if t.Failed() {
						return
					}
				}
			}
		})
	}
}

// lengths are those of vectors that are divided among p ranks. The long one is
// for every third kind of element only.
func lengths(p, i int) []int {
	l := []int{0, 1, p - 1, p, p + 1}
	if i%3 == 0 {
		l = append(l, 1000)
	}
	slices.Sort(l)
	return slices.Compact(l)
}

// sumsFor returns what to reduce with a.
func sumsFor(m path.Method) []sum {
	if m.Ordered {
		return slices.Concat(exactSums, orderedSums)
	}
	return exactSums
}

// reduction runs a reducing call on n elements that leaves outLen elements in
// recv, which is send's elements from offset on if inPlace, and compares.
func (tr trial) reduction(a *answers, outLen, offset int, inPlace bool, want mem.Buffer,
	call func(send, recv mem.Buffer) error) error {
	mine := a.in[tr.me]
	send, intact := fenced(mine.Type(), mine.Len())
	copy(send.HostSlice(), mine.HostSlice())
	recv, unhurt := send, intact
	if inPlace {
		recv = send.Slice(offset, offset+outLen)
	} else {
		recv, unhurt = fenced(mine.Type(), outLen)
	}
	if err := call(send, recv); err != nil {
		return fmt.Errorf("%s, %d elements: %w", a.name, mine.Len(), err)
	}
	if d := differ(recv, want); d != "" {
		return fmt.Errorf("%s, %d elements, in place %v: %s", a.name, mine.Len(), inPlace, d)
	}
	if d := differ(send, mine); !inPlace && d != "" {
		return fmt.Errorf("%s, %d elements: send was changed: %s", a.name, mine.Len(), d)
	}
	if !intact() || !unhurt() {
		return fmt.Errorf("%s, %d elements, in place %v: wrote outside of a buffer", a.name, mine.Len(), inPlace)
	}
	return nil
}

var inPlaceOrNot = []bool{false, true}

func TestAllreduceAgreesWithReference(t *testing.T) {
	tryAll(t, calls.Allreduce, func(tr trial, alg path.Method, o *oracle) error {
		for i, s := range sumsFor(alg) {
			for _, n := range lengths(o.ranks, i) {
				a := o.ask(s, n)
				for _, ip := range inPlaceOrNot {
					if err := tr.reduction(a, n, 0, ip, a.total, func(send, recv mem.Buffer) error {
						return Allreduce(tr, tr.alg, send, recv, s.op)
					}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

func TestReduceAgreesWithReference(t *testing.T) {
	tryAll(t, calls.Reduce, func(tr trial, alg path.Method, o *oracle) error {
		for i, s := range sumsFor(alg) {
			for root := range o.ranks {
				if i%4 != 0 && root != o.ranks/2 {
					continue
				}
				for _, n := range lengths(o.ranks, i) {
					if err := tr.reduce(o.ask(s, n), root, n); err != nil {
						return fmt.Errorf("root %d: %w", root, err)
					}
				}
			}
		}
		return nil
	})
}

func (tr trial) reduce(a *answers, root, n int) error {
	if tr.me != root {
		// recv is not looked at elsewhere: there is none, and send stays.
		return tr.reduction(a, 0, 0, false, mem.Buffer{}, func(send, _ mem.Buffer) error {
			return Reduce(tr, tr.alg, root, send, mem.Buffer{}, a.op)
		})
	}
	return tr.reduction(a, n, 0, n%2 == 1, a.total, func(send, recv mem.Buffer) error {
		return Reduce(tr, tr.alg, root, send, recv, a.op)
	})
}

func TestScanAgreesWithReference(t *testing.T) {
	tryAll(t, calls.Scan, func(tr trial, alg path.Method, o *oracle) error {
		for i, s := range sumsFor(alg) {
			for _, n := range lengths(o.ranks, i) {
				a := o.ask(s, n)
				for _, ip := range inPlaceOrNot {
					err := tr.reduction(a, n, 0, ip, a.upto[tr.me], func(send, recv mem.Buffer) error {
						return Scan(tr, tr.alg, send, recv, s.op)
					})
					if err == nil {
						err = tr.exscan(a, n, ip)
					}
					if err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

func (tr trial) exscan(a *answers, n int, inPlace bool) error {
	if tr.me > 0 {
		return tr.reduction(a, n, 0, inPlace, a.upto[tr.me-1], func(send, recv mem.Buffer) error {
			return Exscan(tr, tr.alg, send, recv, a.op)
		})
	}
	untouched := clone(a.in[0]) // what recv holds before, and after
	return tr.reduction(a, n, 0, inPlace, untouched, func(send, recv mem.Buffer) error {
		if err := move(recv, untouched); err != nil {
			return err
		}
		return Exscan(tr, tr.alg, send, recv, a.op)
	})
}

// unevenCounts divides n elements so that neighbours differ and some have none.
func unevenCounts(n, p int) []int {
	counts := make([]int, p)
	for i := range n {
		counts[i*i%p]++
	}
	return counts
}

func TestReduceScatterAgreesWithReference(t *testing.T) {
	tryAll(t, calls.ReduceScatter, func(tr trial, alg path.Method, o *oracle) error {
		p := o.ranks
		for i, s := range sumsFor(alg) {
			for _, n := range lengths(p, i) {
				a, counts := o.ask(s, n), unevenCounts(n, p)
				lo, hi := packed(tr, counts).bounds(tr.me)
				call := func(send, recv mem.Buffer) error {
					return ReduceScatter(tr, tr.alg, send, recv, counts, s.op)
				}
				for _, offset := range []int{-1, lo, 0} {
					err := tr.reduction(a, hi-lo, offset, offset >= 0, a.total.Slice(lo, hi), call)
					if err != nil {
						return fmt.Errorf("counts %v, at %d: %w", counts, offset, err)
					}
				}
			}
			for _, n := range []int{0, 1, 3, 64} {
				a, lo := o.ask(s, n*p), n*tr.me
				for _, offset := range []int{-1, lo, 0} {
					err := tr.reduction(a, n, offset, offset >= 0, a.total.Slice(lo, lo+n),
						func(send, recv mem.Buffer) error {
							return ReduceScatterBlock(tr, tr.alg, send, recv, s.op)
						})
					if err != nil {
						return fmt.Errorf("blocks of %d, at %d: %w", n, offset, err)
					}
				}
			}
		}
		return nil
	})
}

func TestResultsAreTheSameBitsOnAllRanks(t *testing.T) {
	rough := orderedSums[0]
	tryAll(t, calls.Allreduce, func(tr trial, _ path.Method, o *oracle) error {
		for _, n := range lengths(o.ranks, 0) {
			a := o.ask(rough, n)
			recv := alloc(rough.typ, n)
			if err := Allreduce(tr, tr.alg, a.in[tr.me], recv, rough.op); err != nil {
				return err
			}
			for i, x := range mem.Slice[float32](recv) {
				if want := mem.Slice[float32](a.total)[i]; x < want*0.9999 || x > want*1.0001 {
					return fmt.Errorf("element %d of %d is %v, want about %v", i, n, x, want)
				}
			}
			// Only rank 0's bits can be compared with: by sending them.
			first := clone(recv)
			if err := bcastTree(tr, 0, first); err != nil {
				return err
			}
			if d := differ(recv, first); d != "" {
				return fmt.Errorf("not as on rank 0: %s", d)
			}
		}
		return nil
	})
}
