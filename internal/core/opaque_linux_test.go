package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// Elements of mem.Opaque, which functions of packages inside combine, in all reductions.

var (
	// The last sizes are longer than the chunks that go through shared memory.
	opaqueSizes = []int{1, 6, 12, 16, 20, 24, 96, 97, 1000, 9000, 70_000, 600_000}
	opaqueKinds = []calls.Kind{calls.Reduce, calls.Allreduce, calls.ReduceScatter, calls.ReduceScatterBlock, calls.Scan,
		calls.Exscan}
)

// opaqueCounts are numbers of elements of a size: the last goes in many chunks.
func opaqueCounts(size int) []int {
	switch {
	case size > 100_000:
		return []int{1}
	case size > 20_000:
		return []int{0, 1, 9}
	}
	return []int{0, 1, 7, 60_000/size + 3}
}

// opaqueByte is byte k of element i of a rank.
func opaqueByte(rank, i, k int) byte { return byte(rank*83 + i*29 + k*7 + 1) }

// combineOpaque combines bytes of elements: acc = acc op in. What it does depends on where in the
// element the byte is, so that elements that were cut elsewhere give another result. It is
// associative, and does not commute: a byte is an affine function modulo 16, or the left or the
// right one is taken.
func combineOpaque(acc, in []byte, size int) {
	for ; len(acc) > 0; acc, in = acc[size:], in[size:] {
		for k := 0; k < size; k += 3 {
			f, g := acc[k], in[k]
			a, b, c, d := f>>4, f&15, g>>4, g&15
			acc[k] = a*c<<4 | (a*d+b)&15
		}
		for k := 1; k < size; k += 3 {
			acc[k] = in[k]
		}
	}
}

// opaqueOp returns the operator, which checks what it gets.
func opaqueOp(size int, wrong *error) call.Op {
	return call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) {
		for _, b := range []mem.Buffer{acc, in} {
			switch {
			case b.Type() != mem.Opaque || b.ElemSize() != size || b.Len() != acc.Len() || b.Len() == 0:
				*wrong = fmt.Errorf("the function gets %d and %d elements of %d bytes, want %d bytes", acc.Len(),
					in.Len(), b.ElemSize(), size)
			case size%16 == 0 && b.Addr()%16 != 0:
				*wrong = fmt.Errorf("elements of %d bytes at %#x: want 16 bytes aligned", size, b.Addr())
			}
		}
		combineOpaque(acc.HostSlice(), in.HostSlice(), size)
	}}
}

// opaqueVector returns what n elements of ranks first to last combine to, of each from element from
// on.
func opaqueVector(first, last, from, n, size int) []byte {
	v := make([]byte, n*size)
	all := opaqueElements(first, last)
	for i := range n {
		one := all[(from+i)%opaqueRows*opaquePeriod:][:opaquePeriod]
		for rest := v[i*size:][:size]; len(rest) > 0; {
			rest = rest[copy(rest, one):]
		}
	}
	return v
}

// After so many elements and bytes all begin anew: opaqueByte by its overflow, combineOpaque by
// thirds.
const opaqueRows, opaquePeriod = 256, 3 * 256

var (
	opaqueLock  sync.Mutex
	opaqueKnown = map[[2]int][]byte{}
)

// opaqueElements are what the first elements of ranks first to last combine to, up to where all
// begins anew.
func opaqueElements(first, last int) []byte {
	opaqueLock.Lock()
	defer opaqueLock.Unlock()
	key := [2]int{first, last}
	if v, known := opaqueKnown[key]; known {
		return v
	}
	v, in := make([]byte, opaqueRows*opaquePeriod), make([]byte, opaqueRows*opaquePeriod)
	for r := first; r <= last; r++ {
		for at := range in {
			in[at] = opaqueByte(r, at/opaquePeriod, at%opaquePeriod)
		}
		if r == first {
			copy(v, in)
		} else {
			combineOpaque(v, in, opaquePeriod)
		}
	}
	opaqueKnown[key] = v
	return v
}

// aligned16 returns n bytes, which are aligned for any type if that is what the size allows, and
// else are not.
func aligned16(n, size int) []byte {
	b := make([]byte, n+32)
	off := int(-uintptr(unsafe.Pointer(&b[0])) % 16)
	if size%2 == 1 {
		off++
	}
	return b[off : off+n : off+n]
}

// An opaqueCall is one rank's part in a reduction.
type opaqueCall struct {
	call.Call
	recv, want []byte // with a fence behind
	wrong      error  // what the function has found
}

const opaqueFence = 16

// newOpaqueCall makes a reduction of n elements, or blocks of about n.
func newOpaqueCall(k calls.Kind, rank, ranks, n, size int, inPlace bool) *opaqueCall {
	c := new(opaqueCall)
	all, counts, start := n, []int(nil), 0
	out, last := n, ranks-1
	switch k {
	case calls.ReduceScatter:
		counts = make([]int, ranks)
		all = 0
		for r := range counts {
			counts[r] = n >> (r % 3)
			if r < rank {
				start += counts[r]
			}
			all += counts[r]
		}
		out = counts[rank]
	case calls.ReduceScatterBlock:
		all, start = n*ranks, n*rank
	case calls.Scan:
		last = rank
	case calls.Exscan:
		last = rank - 1
	}
	send := aligned16(all*size, size)
	copy(send, opaqueVector(rank, rank, 0, all, size))
	switch c.recv = aligned16(out*size+opaqueFence, size); {
	case inPlace && all == out:
		copy(c.recv, send)
		send = c.recv[:all*size]
	case inPlace: // the rest of send is scratch
		c.recv = send[:out*size]
	}
	c.want = bytes.Clone(c.recv)
	if last >= 0 && (k != calls.Reduce || rank == ranks-1) {
		copy(c.want, opaqueVector(0, last, start, out, size))
	}
	from, to, op := mem.HostElements(size, all, send), mem.HostElements(size, out, c.recv), opaqueOp(size, &c.wrong)
	switch k {
	case calls.Reduce:
		c.Reduce(ranks-1, from, to, op)
	case calls.Allreduce:
		c.Allreduce(from, to, op)
	case calls.ReduceScatter:
		c.ReduceScatter(from, to, counts, op)
	case calls.ReduceScatterBlock:
		c.ReduceScatterBlock(from, to, op)
	case calls.Scan:
		c.Scan(from, to, op)
	case calls.Exscan:
		c.Exscan(from, to, op)
	}
	return c
}

// check does c, blocking or not, and compares what is in its buffer.
func (c *opaqueCall) check(ctx context.Context, w *comm.Comm, starts bool) error {
	var err error
	if starts {
		_, err = inside(w).Start(&c.Call).Wait(ctx)
	} else {
		err = inside(w).Do(ctx, &c.Call)
	}
	if err = errors.Join(err, c.wrong); err != nil || bytes.Equal(c.recv, c.want) {
		return err
	}
	return equal("recv", c.recv, c.want)
}

// everyOpaque does all reductions of elements of all sizes.
func everyOpaque(ctx context.Context, c *comm.Comm) error {
	turn := 0
	for _, size := range opaqueSizes {
		for _, n := range opaqueCounts(size) {
			for _, k := range opaqueKinds {
				turn++
				o := newOpaqueCall(k, c.Rank(), c.Size(), n, size, turn%2 == 0)
				if err := o.check(ctx, c, turn/2%2 == 0); err != nil {
					return fmt.Errorf("%v of %d elements of %d bytes among %d ranks: %w", k, n, size, c.Size(), err)
				}
			}
		}
	}
	return nil
}

// opaqueHosts are the hosts of so many ranks.
var opaqueHosts = [][]int32{2: {0, 1}, 3: {0, 0, 1}, 4: {0, 0, 1, 1}, 5: {0, 0, 1, 1, 1}, 6: {0, 1, 0, 1, 2, 2},
	7: {0, 0, 0, 1, 1, 1, 1}}

func TestOpaqueElementsCombineInRankOrder(t *testing.T) {
	hosts := func(tuning string) func(t testing.TB, n int, fn rankFunc) []error {
		return func(t testing.TB, n int, fn rankFunc) []error {
			return overHosts(t, opaqueHosts[n], comm.Config{Tuning: tuning}, fn)
		}
	}
	ways := map[string]func(t testing.TB, n int, fn rankFunc) []error{
		"inproc": everyWay["inproc"],
		"memory": overMemory,
		"memory and messages": func(t testing.TB, n int, fn rankFunc) []error {
			return overMemoryWith(t, n, comm.Config{Tuning: "scan:rdouble;shm.chunk=2k"}, fn)
		},
		"hosts":               hosts(""),
		"hosts, short chunks": hosts("hier.chunk=256;shm.chunk=2k;hier.vector=1g"),
	}
	for way, run := range ways {
		for p := 1; p <= 7; p++ {
			switch {
			case strings.HasPrefix(way, "hosts") && p < 2:
				continue
			case testing.Short() && (p != 3 || strings.Contains(way, " ")): // each long step once
				continue
			case !stress.Asked() && way != "inproc" && (p == 4 || p == 6): // 2 is a power of two, 5 and 7 have the rest
				continue
			}
			t.Run(fmt.Sprint(way, p), func(t *testing.T) {
				err := errors.Join(run(t, p, func(ctx context.Context, c *comm.Comm) error {
					ctx, cancel := context.WithTimeout(ctx, testTimeout)
					defer cancel()
					return everyOpaque(ctx, c)
				})...)
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Where ranks are many, a block of one element for each is too long for a step.
func TestOpaqueElementsOfManyRanks(t *testing.T) {
	const p = 20
	err := errors.Join(overMemory(t, p, func(ctx context.Context, c *comm.Comm) error {
		for _, k := range opaqueKinds {
			for _, size := range []int{97, 1000} {
				o := newOpaqueCall(k, c.Rank(), p, 7, size, false)
				if err := o.check(ctx, c, false); err != nil {
					return fmt.Errorf("%v of elements of %d bytes: %w", k, size, err)
				}
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

// A Call is started again when it is complete, and other collectives may come between.
func TestOpaqueCallsAreStartedAgain(t *testing.T) {
	everyWayDo(t, 3, func(ctx context.Context, c *comm.Comm) error {
		for _, size := range []int{12, 20_000} {
			o := newOpaqueCall(calls.Allreduce, c.Rank(), c.Size(), 5, size, false)
			for range 3 {
				clear(o.recv[:5*size])
				x := []int{1}
				r := inside(c).Start(&o.Call)
				if err := comm.Allreduce(ctx, c, x, x, comm.Sum); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				if err := errors.Join(o.wrong, equal("recv", o.recv, o.want), equal("sum", x, []int{3})); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Ranks whose elements differ in size get ErrMismatch, also if the vectors are equally long.
func TestOpaqueElementsOfDifferentSizesAreAMismatch(t *testing.T) {
	for _, theirs := range []struct {
		n, size int
		text    string
	}{
		{12, 8, "allreduce(12 elements of 8 bytes, custom)"},
		{6, 12, "allreduce(6 elements of 12 bytes, custom)"},
		{1, 70_000, "allreduce(1 elements of 70000 bytes, custom)"},
	} {
		t.Run(theirs.text, func(t *testing.T) {
			everyWayDo(t, 3, func(ctx context.Context, c *comm.Comm) error {
				d, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				defer d.Close(ctx)
				n, size := 12, 6
				if c.Rank() == 1 {
					n, size = theirs.n, theirs.size
				}
				err = inside(d).Do(ctx, &newOpaqueCall(calls.Allreduce, d.Rank(), d.Size(), n, size, false).Call)
				if err == nil {
					err = d.Barrier(ctx)
				}
				if !errors.Is(err, comm.ErrMismatch) || !strings.Contains(err.Error(), theirs.text) ||
					!strings.Contains(err.Error(), "12 elements of 6 bytes") {
					return fmt.Errorf("got %v, want a mismatch with %s", err, theirs.text)
				}
				return c.Barrier(ctx)
			})
		})
	}
}

func TestOpaqueElementsThatNoFunctionCombines(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		b := mem.HostElements(6, 2, make([]byte, 12))
		other := mem.HostElements(12, 2, make([]byte, 24))
		f := call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) {}}
		for want, o := range map[string]*call.Call{
			"want uint8 where no function combines them": new(call.Call).Bcast(0, b),
			"elements of 6 bytes and recv of 12":         new(call.Call).Allreduce(b, other, f),
			"operator sum is not defined for opaque": new(call.Call).Allreduce(b, b,
				call.Op{Kind: mem.Sum}),
			"send has opaque elements and recv uint8: want one ty": new(call.Call).Scan(b,
				mem.Bytes(make([]byte, 12)), f),
		} {
			if err := inside(c).Do(ctx, o); !errors.Is(err, comm.ErrArgument) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %v, want %q", err, want)
			}
		}
		_, err := c.Alloc(ctx, mem.Opaque, 1)
		if !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("alloc: got %v", err)
		}
		return nil
	})
}
