package p2p

import (
	"cmp"
	"slices"
	"sync/atomic"

	"gompi/internal/core"
	"gompi/internal/core/lease"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
)

// The face posts short receives itself while it can. Package lease of internal/core passes them
// to Go and back; here they become requests of MPI, and receives again. Their handles are
// FirstHeld and more, in C as in Go.

// calls is the number of calls of the face under way.
var calls atomic.Int32

// Enter is called at the beginning of each call of the face. The face's receives become requests,
// in their order.
func Enter() {
	calls.Add(1)
	if comms.Lease.Holds() {
		comms.Lease.TakeOver(takeOver)
	}
}

func takeOver(h lease.Receive) {
	r := requestPool.Get().(*Request)
	r.c, r.active = comms.At(h.Slot), true
	if h.Arrived {
		r.Finish(abi.Status{Source: int32(h.Source), Tag: int32(h.Tag), Bytes: int64(h.Bytes)})
	} else {
		r.post(dtypes.LoopBuffer(abi.Addr(h.Buf), h.Bytes, h.Run, h.Stride), h.Source, h.Tag)
	}
	r.stay(h.Place, h.Source)
}

// stay gives r, a receive from source, a handle of the face's.
func (r *Request) stay(place, source int) {
	r.source = source
	r.Handle = abi.Handle(abi.FirstHeld + place)
	r.order = orders.Add(1)
	Requests.Restore(r.Handle, r) // not Set: another thread may add a request, and grow the registry
}

// orders is the order of the last receive with such a handle.
var orders atomic.Uint64

// Leave is called at the end of each call of the face.
func Leave() {
	if comms.Lease != nil {
		comms.Lend(giveBack)
	}
	calls.Add(-1)
}

// giveBack gives the receives that are posted to the face if they are all that is under way. A
// program that always has some posted and tests them would enter Go for each test.
func giveBack() {
	var passed []*Request
	comms.Lease.GiveBack(func() (places []int) {
		if calls.Load() == 1 { // a call that begins from here on waits in TakeOver
			passed, places = passPosted()
		}
		return places
	})
	for i, r := range passed {
		if i == 0 || r.c != passed[i-1].c || r.source != passed[i-1].source {
			comms.LendFor(r.c, r.source)
		}
	}
	for _, r := range passed {
		*r = Request{}
		requestPool.Put(r)
	}
}

// passPosted ends the receives that are posted here, and returns them and their places, in the
// order in which they were posted.
func passPosted() (all []*Request, places []int) {
	for h := abi.Handle(abi.FirstHeld); h < abi.FirstHeld+lease.Held; h++ {
		if r := Requests.Find(h); r != nil && r.active && !r.over && r.order > 0 && !r.Op.Done() && !r.c.Freed() {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Request) int { return cmp.Compare(a.order, b.order) })
	ops := make([]core.Request, len(all))
	for i, r := range all {
		ops[i] = r.Op
	}
	if len(all) == 0 || !comms.World.P2P.Withdraw(ops) {
		return nil, nil
	}
	for _, r := range all {
		places = append(places, int(r.Handle-abi.FirstHeld))
		Requests.Remove(r.Handle)
	}
	return all, places
}
