package sim

import (
	"errors"
	"math"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/hier"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// This file simulates collectives through the memory of a host, by a model of package shmcoll: the
// bytes that ranks store and read, and the ranks for which they wait. It implements hier.Shared.

// A Memory is the cost of a host's memory for its ranks.
type Memory struct {
	Latency float64 // from a rank's store until another rank sees it
	Peer    float64 // of a processor, to poll one other rank
	Copy    float64 // of a processor, to store a byte, or to read and combine it
	Total   float64 // the same where ranks do so at once, times the number of ranks
}

// A meeting is one collective of a host.
type meeting struct {
	stores  []stored // by member
	came    int
	left    int
	waiting []waiter
}

// stored is when a member had stored the first part of its bytes, and all of them.
type stored struct {
	is          bool
	first, last float64
}

// A waiter waits until a member, or everybody, has stored.
type waiter struct {
	s  *shared
	on int
}

// Values of waiter.on and work.on besides members.
const (
	everybody = -1
	nobody    = -2
)

// meetings are the collectives of a host that some rank has not left, in order.
type meetings struct {
	open []*meeting
	done int // number of collectives before open
}

// shared is a member's part of the collectives of its host.
type shared struct {
	r       *Rank
	host    *meetings
	me, all int // members
	next    int // meeting
}

// work is a member's part in a collective.
type work struct {
	stores, reads int  // bytes
	on            int  // member for which it waits, everybody or nobody
	rooted        bool // one rank stores or reads all bytes, so few ranks do at once
}

// OpenWindow implements hier.Shared. No vector is from Alloc.
func (s *shared) OpenWindow(_, _ mem.Buffer, _, _ int) (w hier.Window, open bool, err error) {
	return w, false, nil
}

// Run implements hier.Shared.
func (s *shared) Run(p *path.Path, o *call.Call) error {
	for p.Ask == path.CrossMemory || p.Ask == path.SharedHeap {
		p = p.Otherwise
	}
	r, c, w := s.r, &s.r.e.Shared, s.workOf(p, o)
	perByte := max(c.Copy, c.Total*float64(s.all))
	if w.rooted {
		perByte = max(c.Copy, c.Total*2)
	}
	// Other ranks may read the first part while the rest is stored.
	part := math.Inf(1)
	if p.Chunk.Most > 0 {
		part = float64(p.Chunk.Of(max(w.stores, w.reads), 1)) * perByte
	}
	x := s.host.at(s.next)
	s.next++
	begin, stores, reads := r.clock, float64(w.stores)*perByte, float64(w.reads)*perByte
	r.Work(stores)
	x.store(s, begin+min(stores, part)*r.speed)
	if w.on != nobody {
		first, last, err := s.await(x, w.on)
		if err != nil {
			return err
		}
		r.clock = max(r.clock, first+c.Latency)
		peers := 1
		if w.on == everybody {
			peers = s.all - 1
		}
		r.Work(float64(peers)*c.Peer + reads)
		r.clock = max(r.clock, last+c.Latency+min(reads, part)*r.speed)
		if p.Algorithm == path.Rsag { // the reader of a share stores the result
			r.Work(c.Latency + float64(peers)*c.Peer)
		}
	}
	x.left++
	s.host.forget()
	return nil
}

// workOf returns the member's work in o along p.
func (s *shared) workOf(p *path.Path, o *call.Call) work {
	h, root := s.all, o.Root == s.me
	send, recv := o.Send.Size(), o.Recv.Size()
	others := func(n int) int { return n - n/h }
	switch k := o.Kind.As(); {
	case k == calls.Bcast && root:
		return work{stores: recv, on: nobody}
	case k == calls.Bcast:
		return work{reads: recv, on: o.Root}
	case k == calls.Allreduce && p.Algorithm == path.Rsag:
		return work{stores: others(send), reads: 2 * others(send), on: everybody}
	case k == calls.Allreduce:
		return work{stores: send, reads: (h - 1) * send, on: everybody}
	case k == calls.Reduce && p.Algorithm == path.Rsag:
		return work{stores: others(send), reads: others(send), on: everybody}
	case k == calls.Reduce && root:
		return work{reads: (h - 1) * send, on: everybody, rooted: true}
	case k == calls.Reduce:
		return work{stores: send, on: nobody, rooted: true}
	case k == calls.ReduceScatter, k == calls.ReduceScatterBlock, k == calls.Alltoall:
		return work{stores: others(send), reads: others(send), on: everybody}
	case k == calls.Allgather, k == calls.Allgatherv:
		return work{stores: send, reads: recv - send, on: everybody}
	case k == calls.Gather && root:
		return work{reads: recv - send, on: everybody, rooted: true}
	case k == calls.Gather:
		return work{stores: send, on: nobody, rooted: true}
	case k == calls.Scatter && root:
		return work{stores: others(send), on: nobody, rooted: true}
	case k == calls.Scatter:
		return work{reads: recv, on: o.Root, rooted: true}
	}
	return work{on: everybody} // barrier
}

// store notes that a member stores, the first part until first and the last until its clock, and
// wakes its waiters.
func (x *meeting) store(s *shared, first float64) {
	if x.stores == nil {
		x.stores = make([]stored, s.all)
	}
	x.stores[s.me] = stored{true, first, s.r.clock}
	x.came++
	x.waiting = slices.DeleteFunc(x.waiting, func(w waiter) bool {
		if !x.has(w.on) {
			return false
		}
		first, _ := x.times(w.s.me, w.on)
		w.s.r.resume(first + s.r.e.Shared.Latency)
		return true
	})
}

// has reports whether a member, or everybody, has stored.
func (x *meeting) has(member int) bool {
	if member == everybody {
		return x.came == len(x.stores)
	}
	return x.stores[member].is
}

// times returns when a member, or everybody but me, had stored.
func (x *meeting) times(me, member int) (first, last float64) {
	for i, t := range x.stores {
		if i != me && (member == everybody || i == member) {
			first, last = max(first, t.first), max(last, t.last)
		}
	}
	return first, last
}

// await waits for a member, or everybody, and returns when they had stored.
func (s *shared) await(x *meeting, member int) (first, last float64, err error) {
	if !x.has(member) {
		x.waiting = append(x.waiting, waiter{s, member})
		if err := s.r.sleep(); err != nil {
			return 0, 0, err
		}
	}
	first, last = x.times(s.me, member)
	return first, last, nil
}

// sleep suspends the rank until another rank of the host wakes it. Meanwhile its messages arrive.
func (r *Rank) sleep() error {
	if r.err == nil && r.e.failed == nil {
		r.waiting, r.meets = true, true
		if !r.yield(struct{}{}) {
			r.err = errors.New("waits for ranks of its host that never call")
		}
		r.meets = false
		if r.e.pool(r.me) != nil {
			r.Work(r.e.Switch)
		}
	}
	if r.err == nil {
		r.err = r.e.failed
	}
	return r.err
}

// at returns the meeting with a number.
func (h *meetings) at(i int) *meeting {
	for len(h.open) <= i-h.done {
		h.open = append(h.open, new(meeting))
	}
	return h.open[i-h.done]
}

// forget drops the meetings that all ranks have left.
func (h *meetings) forget() {
	for len(h.open) > 0 && h.open[0].left == len(h.open[0].stores) && h.open[0].left > 0 {
		h.open = h.open[1:]
		h.done++
	}
}
