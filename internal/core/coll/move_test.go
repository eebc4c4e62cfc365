package coll

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Tests of the collectives that only move data. The element at place i of what
// rank from has for rank to is a number that says so.

func parcelFor(t mem.Type, from, to, n int) mem.Buffer {
	b := alloc(t, n)
	raw := b.HostSlice()
	for i := range raw {
		raw[i] = byte(from*31 + to*17 + i*3 + 1)
	}
	return b
}

// concat puts parcels where they belong: one after the other, or at displs.
// What lies between stays as in a fenced buffer.
func concat(t mem.Type, n int, displs []int, parts []mem.Buffer) mem.Buffer {
	all, _ := fenced(t, n)
	at := 0
	for i, b := range parts {
		if displs != nil {
			at = displs[i]
		}
		copy(all.Slice(at, at+b.Len()).HostSlice(), b.HostSlice())
		at += b.Len()
	}
	return all
}

// A transfer is one call: what a rank gives and holds before, and what it must
// hold after.
type transfer struct {
	send, recv, want mem.Buffer
	call             func(send, recv mem.Buffer) error
}

// check runs the call on fenced copies. A recv within send, or send within recv,
// stays so.
func (x transfer) check(what string, args ...any) error {
	send, sendOK := fenced(x.send.Type(), x.send.Len())
	recv, recvOK := fenced(x.recv.Type(), x.recv.Len())
	copy(send.HostSlice(), x.send.HostSlice())
	copy(recv.HostSlice(), x.recv.HostSlice())
	size := x.send.Type().Size()
	inPlace := mem.Overlap(x.send, x.recv)
	switch off := int(x.recv.Addr()) - int(x.send.Addr()); {
	case inPlace && x.recv.Len() <= x.send.Len():
		recv = send.Slice(off/size, off/size+x.recv.Len())
	case inPlace:
		send = recv.Slice(-off/size, -off/size+x.send.Len())
	}
	err := x.call(send, recv)
	d := differ(recv, x.want)
	switch {
	case err != nil:
	case d != "":
		err = fmt.Errorf("in place %v: %s", inPlace, d)
	case !inPlace && differ(send, x.send) != "":
		err = fmt.Errorf("send was changed: %s", differ(send, x.send))
	case !sendOK() || !recvOK():
		err = fmt.Errorf("in place %v: wrote outside of a buffer", inPlace)
	default:
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

var movedTypes = []mem.Type{mem.U8, mem.I32, mem.C128}

func TestBarrierHoldsEveryoneUntilAllHaveCome(t *testing.T) {
	var come atomic.Int64
	tryAll(t, calls.Barrier, func(tr trial, _ path.Method, o *oracle) error {
		if tr.me == 0 {
			come.Store(0)
		}
		if err := bcastTree(tr, 0, mem.Buffer{}); err != nil { // the counter is reset
			return err
		}
		for i := range 5 {
			come.Add(1)
			if err := Barrier(tr, path.Dissemination); err != nil {
				return err
			}
			if got, want := come.Load(), int64(o.ranks*(i+1)); got < want {
				return fmt.Errorf("left barrier %d after %d ranks came, want %d", i, got, want)
			}
		}
		return nil
	})
}

func TestBcastReachesEveryone(t *testing.T) {
	tryAll(t, calls.Bcast, func(tr trial, _ path.Method, o *oracle) error {
		for root := range o.ranks {
			for i, n := range lengths(o.ranks, root) {
				want := parcelFor(movedTypes[i%3], root, 0, n)
				buf, intact := fenced(want.Type(), n)
				if tr.me == root {
					copy(buf.HostSlice(), want.HostSlice())
				}
				if err := Bcast(tr, tr.alg, root, buf); err != nil {
					return err
				}
				if d := differ(buf, want); d != "" || !intact() {
					return fmt.Errorf("root %d, %d elements: intact %v, %s", root, n, intact(), d)
				}
			}
		}
		return nil
	})
}

// blockLengths are those of blocks of which every rank has one.
var blockLengths = []int{0, 1, 2, 65}

func TestGatherAndScatterAtEveryRoot(t *testing.T) {
	gather := func(tr trial, _ path.Method, o *oracle) error {
		for root := range o.ranks {
			for i, n := range blockLengths {
				if err := tr.gather(movedTypes[i%3], root, n, o.ranks, (root+i)%2 == 0); err != nil {
					return err
				}
			}
		}
		return nil
	}
	scatter := func(tr trial, _ path.Method, o *oracle) error {
		for root := range o.ranks {
			for i, n := range blockLengths {
				if err := tr.scatter(movedTypes[i%3], root, n, o.ranks, (root+i)%2 == 0); err != nil {
					return err
				}
			}
		}
		return nil
	}
	t.Run("gather", func(t *testing.T) { tryAll(t, calls.Gather, gather) })
	t.Run("scatter", func(t *testing.T) { tryAll(t, calls.Scatter, scatter) })
}

// everyone returns one parcel per rank, to or from root.
func everyone(t mem.Type, root, p int, n func(r int) int, toRoot bool) (parts []mem.Buffer) {
	for r := range p {
		from, to := root, r
		if toRoot {
			from, to = r, root
		}
		parts = append(parts, parcelFor(t, from, to, n(r)))
	}
	return parts
}

func (tr trial) gather(typ mem.Type, root, n, p int, inPlace bool) error {
	parts := everyone(typ, root, p, func(int) int { return n }, true)
	x := transfer{send: parts[tr.me], call: func(send, recv mem.Buffer) error {
		return Gather(tr, tr.alg, root, send, recv)
	}}
	if tr.me == root {
		x.want = concat(typ, n*p, nil, parts)
		x.recv = alloc(typ, n*p)
		if inPlace {
			x.send = x.recv.Slice(root*n, root*n+n)
			copy(x.send.HostSlice(), parts[root].HostSlice())
		}
	}
	return x.check("gather of %d at %d", n, root)
}

func (tr trial) scatter(typ mem.Type, root, n, p int, inPlace bool) error {
	parts := everyone(typ, root, p, func(int) int { return n }, false)
	x := transfer{recv: alloc(typ, n), want: parts[tr.me], call: func(send, recv mem.Buffer) error {
		return Scatter(tr, tr.alg, root, send, recv)
	}}
	if tr.me == root {
		x.send = concat(typ, n*p, nil, parts)
		if inPlace {
			x.recv = x.send.Slice(root*n, root*n+n)
		}
	}
	return x.check("scatter of %d at %d", n, root)
}

// gaps returns displacements in reverse order with room between the blocks, and
// the length of a buffer that holds them.
func gaps(counts []int) (displs []int, n int) {
	displs = make([]int, len(counts))
	for i, c := range slices.Backward(counts) {
		n += 2
		displs[i] = n
		n += c
	}
	return displs, n + 1
}

func TestVectorGatherAndScatterOfUnevenBlocks(t *testing.T) {
	for p := 1; p <= 17; p++ {
		newWorld(p, true).run(t, func(r *rank) error {
			for root := range p {
				for _, total := range []int{0, p, 100} {
					if err := gatherScatterV(r, p, root, unevenCounts(total, p)); err != nil {
						return fmt.Errorf("%d ranks: %w", p, err)
					}
				}
			}
			return nil
		})
	}
}

func gatherScatterV(r *rank, p, root int, counts []int) error {
	apart, length := gaps(counts)
	for _, displs := range [][]int{nil, apart} {
		n := length
		if displs == nil {
			n = packed(r, counts).n
		}
		of := func(r int) int { return counts[r] }
		parts := everyone(mem.I16, root, p, of, true)
		x := transfer{send: parts[r.me], call: func(send, recv mem.Buffer) error {
			if r.me == root {
				return Gatherv(r, root, send, recv, counts, displs)
			}
			return Gatherv(r, root, send, mem.Buffer{}, nil, nil)
		}}
		if r.me == root {
			x.want = concat(mem.I16, n, displs, parts)
			x.recv, _ = fenced(mem.I16, n)
		}
		if err := x.check("gatherv of %v at %d", counts, root); err != nil {
			return err
		}
		parts = everyone(mem.I16, root, p, of, false)
		x = transfer{recv: alloc(mem.I16, counts[r.me]), want: parts[r.me], call: func(send, recv mem.Buffer) error {
			if r.me == root {
				return Scatterv(r, root, send, recv, counts, displs)
			}
			return Scatterv(r, root, mem.Buffer{}, recv, nil, nil)
		}}
		if r.me == root {
			x.send = concat(mem.I16, n, displs, parts)
		}
		if err := x.check("scatterv of %v at %d", counts, root); err != nil {
			return err
		}
	}
	return nil
}

func TestAllgatherOfEvenAndUnevenBlocks(t *testing.T) {
	tryAll(t, calls.Allgather, func(tr trial, _ path.Method, o *oracle) error {
		p := o.ranks
		for i, n := range blockLengths {
			typ := movedTypes[i%3]
			parts := everyone(typ, 0, p, func(int) int { return n }, true)
			x := transfer{send: parts[tr.me], recv: alloc(typ, n*p), want: concat(typ, n*p, nil, parts),
				call: func(send, recv mem.Buffer) error { return Allgather(tr, tr.alg, send, recv) }}
			if err := x.check("blocks of %d", n); err != nil {
				return err
			}
			x.send = x.recv.Slice(tr.me*n, tr.me*n+n)
			copy(x.send.HostSlice(), parts[tr.me].HostSlice())
			if err := x.check("blocks of %d", n); err != nil {
				return err
			}
		}
		for _, total := range lengths(p, 1) {
			if err := tr.allgatherv(unevenCounts(total, p), p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (tr trial) allgatherv(counts []int, p int) error {
	displs, n := gaps(counts)
	if tr.me%3 == 0 { // displs may differ between ranks
		displs, n = nil, packed(tr, counts).n
	}
	parts := everyone(mem.I32, 0, p, func(r int) int { return counts[r] }, true)
	x := transfer{send: parts[tr.me], want: concat(mem.I32, n, displs, parts), call: func(send, recv mem.Buffer) error {
		return Allgatherv(tr, tr.alg, send, recv, counts, displs)
	}}
	x.recv, _ = fenced(mem.I32, n)
	if err := x.check("counts %v at %v", counts, displs); err != nil {
		return err
	}
	x.recv = concat(mem.I32, n, displs, parts)
	x.send = placed(tr, counts, displs).of(x.recv, tr.me)
	return x.check("counts %v at %v", counts, displs)
}

func TestAlltoallDeliversEveryBlock(t *testing.T) {
	tryAll(t, calls.Alltoall, func(tr trial, _ path.Method, o *oracle) error {
		p := o.ranks
		for i, n := range blockLengths {
			typ := movedTypes[i%3]
			var out, in []mem.Buffer
			for r := range p {
				out = append(out, parcelFor(typ, tr.me, r, n))
				in = append(in, parcelFor(typ, r, tr.me, n))
			}
			x := transfer{send: concat(typ, n*p, nil, out), recv: alloc(typ, n*p), want: concat(typ, n*p, nil, in),
				call: func(send, recv mem.Buffer) error { return Alltoall(tr, tr.alg, send, recv) }}
			if err := x.check("blocks of %d", n); err != nil {
				return err
			}
			x.recv = x.send
			if err := x.check("blocks of %d", n); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAlltoallvOfUnevenBlocks(t *testing.T) {
	length := func(from, to int) int { return (from*3 + to*5) % 4 }
	symmetric := func(a, b int) int { return (a*b + a + b) % 4 } // in place both ways are equal
	for p := 1; p <= 17; p++ {
		newWorld(p, true).run(t, func(r *rank) error {
			for _, of := range []func(from, to int) int{length, symmetric} {
				var out, in []mem.Buffer
				var sc, rc []int
				for o := range p {
					sc, rc = append(sc, of(r.me, o)), append(rc, of(o, r.me))
					out = append(out, parcelFor(mem.I16, r.me, o, sc[o]))
					in = append(in, parcelFor(mem.I16, o, r.me, rc[o]))
				}
				sd, sn := gaps(sc)
				rd, rn := gaps(rc)
				x := transfer{send: concat(mem.I16, sn, sd, out), want: concat(mem.I16, rn, rd, in),
					call: func(send, recv mem.Buffer) error { return Alltoallv(r, send, sc, sd, recv, rc, rd) }}
				x.recv, _ = fenced(mem.I16, rn)
				if err := x.check("%d ranks, apart", p); err != nil {
					return err
				}
				if slices.Equal(sc, rc) {
					x.recv = x.send
					if err := x.check("%d ranks, in place", p); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// The tables choose long chunks; these are short, so that little data takes the
// path of many.
func TestChainsOfManyShortChunks(t *testing.T) {
	s := exactSums[0]
	for _, p := range []int{2, 3, 5, 8} {
		o := newOracle(p)
		newWorld(p, true).run(t, func(r *rank) error {
			tr := trial{rank: r}
			for _, n := range []int{0, 1, 6, 7, 8, 50} {
				a := o.ask(s, n)
				buf := clone(a.in[r.me])
				if err := bcastChain(r, p-1, buf, 7); err != nil || differ(buf, a.in[p-1]) != "" {
					return fmt.Errorf("bcast of %d: %w %s", n, err, differ(buf, a.in[p-1]))
				}
				root := n % p
				if r.me == root {
					if err := tr.reduction(a, n, 0, n%2 == 0, a.total, func(send, recv mem.Buffer) error {
						return reduceChain(r, root, send, recv, s.op, 7)
					}); err != nil {
						return err
					}
				} else if err := reduceChain(r, root, a.in[r.me], mem.Buffer{}, s.op, 7); err != nil {
					return err
				}
				if err := tr.reduction(a, n, 0, n%2 == 0, a.upto[r.me], func(send, recv mem.Buffer) error {
					return scanChain(r, 0, send, recv, s.op, 7)
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
