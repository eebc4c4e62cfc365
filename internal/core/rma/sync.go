package rma

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// barrier orders this goroutine's loads and stores before the barrier and after it, including
// memory shared with other processes. It is a store and a load that are sequentially consistent,
// as all of Go's atomics are. On amd64 the store is an exchange, which drains earlier stores. On
// arm64 earlier accesses come before the store, which is a release; the load comes after the
// store, since both are of that kind, and later accesses after the load, an acquire.
func barrier() {
	var word atomic.Uint32
	word.Store(1)
	word.Load()
}

// Flush waits until all that this rank has put to the part of a rank, got from that part and
// accumulated there is done at both (MPI_Win_flush).
func (w *Window) Flush(ctx context.Context, rank int) error {
	if uint(rank) < uint(len(w.parts)) && w.parts[rank].Direct {
		barrier()
		w.poll()
		if err := w.Comm.Err(); err != nil {
			return w.fault("window flush", rank, err)
		}
		return nil
	}
	if err := w.checkRank(rank); err != nil {
		return w.fault("window flush", rank, err)
	}
	return w.fault("window flush", rank, w.flush(ctx, rank))
}

// FlushAll is Flush of all parts.
func (w *Window) FlushAll(ctx context.Context) error {
	w.poll()
	var refused error
	for rank := range w.parts {
		if err := w.flush(ctx, rank); !goesOn(&refused, err) {
			return w.fault("window flushall", rank, err)
		}
	}
	return w.fault("window flushall", -1, cmp.Or(refused, w.Comm.Err()))
}

// FlushLocal waits until the buffers of such operations may be used again (MPI_Win_flush_local).
func (w *Window) FlushLocal(ctx context.Context, rank int) error {
	w.poll()
	if err := w.checkRank(rank); err != nil {
		return w.fault("window flushlocal", rank, err)
	}
	return w.fault("window flushlocal", rank, w.flushLocal(ctx, rank))
}

// FlushLocalAll is FlushLocal of all parts.
func (w *Window) FlushLocalAll(ctx context.Context) error {
	w.poll()
	var refused error
	for rank := range w.parts {
		if err := w.flushLocal(ctx, rank); !goesOn(&refused, err) {
			return w.fault("window flushlocalall", rank, err)
		}
	}
	return w.fault("window flushlocalall", -1, refused)
}

// Sync makes others' puts visible to this rank's loads, and this rank's stores to others' gets
// (MPI_Win_sync).
func (w *Window) Sync() {
	barrier()
	w.poll()
}

// poll makes progress now and then, in calls without waits: a program may make no others until
// another rank acts. Every call that C may do itself polls in this way.
func (w *Window) poll() {
	if w.shared.Polls() {
		w.Comm.Progress(true)
	}
}

func (w *Window) flush(ctx context.Context, rank int) error {
	barrier()
	if w.parts[rank].Direct {
		return nil
	}
	w.mu.Lock()
	if err := w.flushRemote(rank); err != nil {
		w.mu.Unlock()
		return err
	}
	if w.pending[rank].sent {
		r := request{}
		r.head[headRequest] = reqFlush
		if err := w.send(rank, &r, mem.Buffer{}, mem.Buffer{}, nil); err != nil {
			w.mu.Unlock()
			return err
		}
	}
	w.mu.Unlock()
	return w.flushLocal(ctx, rank)
}

// flushLocal waits for the requests to a rank that are under way. They stay visible to other
// goroutines until complete: a flush that finds none reports that nothing is under way.
func (w *Window) flushLocal(ctx context.Context, rank int) error {
	w.mu.Lock()
	p := &w.pending[rank]
	all, callers := p.requests, p.callers
	if len(all) == 0 && len(callers) == 0 {
		w.mu.Unlock()
		return nil
	}
	p.flushes++
	w.mu.Unlock()
	err := core.WaitAll(ctx, all)
	if of := core.WaitAll(ctx, callers); err == nil {
		err = of
	}
	err = w.Outcome(err)
	w.mu.Lock()
	p.flushes--
	p.requests.prune(p.flushes)
	p.callers.prune(p.flushes)
	w.mu.Unlock()
	return err
}

// underWay are requests that may be under way.
type underWay []core.Request

// prune forgets the leading requests that are over. While a flush waits for them they stay in
// place, and new requests go behind them.
func (u *underWay) prune(flushes int) {
	over := 0
	for over < len(*u) && (*u)[over].Done() {
		over++
	}
	if over == len(*u) && flushes == 0 {
		*u = (*u)[:0]
		return
	}
	*u = (*u)[over:]
}

// forget makes room for another request: it moves pending requests to new memory, and fills at most
// half of that. So an epoch takes memory only for the requests under way at a time, and a request
// is examined twice on average. Meanwhile flushes may wait for requests in the old memory.
func (u *underWay) forget() {
	if len(*u) < cap(*u) {
		return
	}
	left := 0
	for _, r := range *u {
		if !r.Done() {
			left++
		}
	}
	kept := make(underWay, 0, max(16, 2*left))
	for _, r := range *u {
		if !r.Done() {
			kept = append(kept, r)
		}
	}
	*u = kept
}

// goesOn reports whether a synchronizing call continues after a flush with an error. Other ranks
// wait for it, and a target that is not attached is an error of this rank's alone, kept in refused.
func goesOn(refused *error, err error) bool {
	if errors.Is(err, ErrRange) {
		*refused = cmp.Or(*refused, err)
		return true
	}
	return err == nil
}

// Fence ends the operations that all ranks have begun, and begins anew (MPI_Win_fence). Fence is
// collective.
func (w *Window) Fence(ctx context.Context) error {
	var refused error
	for rank := range w.parts {
		if err := w.flush(ctx, rank); !goesOn(&refused, err) {
			return w.fault("window fence", rank, err)
		}
	}
	return w.fault("window fence", -1, cmp.Or(w.Comm.Do(ctx, new(call.Call).Barrier()), refused))
}

// Post lets ranks, each of which has to call Start, access this rank's part (MPI_Win_post). It does
// not wait. unannounced sends no messages: the ranks know of the Post (MPI_MODE_NOCHECK).
func (w *Window) Post(ranks []int, unannounced bool) error {
	if len(w.posts) > 0 || w.dones != nil {
		return w.fault("window post", -1, wrong("this rank has posted already"))
	}
	if err := w.checkRanks(ranks); err != nil {
		return w.fault("window post", -1, err)
	}
	barrier()
	w.posts = append(w.posts[:0], ranks...)
	w.dones = make([]core.Request, 0, len(ranks))
	for _, r := range ranks {
		w.dones = append(w.dones, w.Comm.Irecv(r, tagComplete, mem.Buffer{}))
	}
	for _, r := range ranks {
		if unannounced {
			break
		}
		w.Comm.Isend(r, tagPost, mem.Buffer{})
	}
	return w.fault("window post", -1, w.Comm.Err())
}

// Start waits until some ranks have posted, and begins to access their parts (MPI_Win_start).
func (w *Window) Start(ctx context.Context, ranks []int, unannounced bool) error {
	if w.starts != nil {
		return w.fault("window start", -1, wrong("this rank has started already"))
	}
	if err := w.checkRanks(ranks); err != nil {
		return w.fault("window start", -1, err)
	}
	for _, r := range ranks {
		if unannounced {
			break
		}
		if _, err := w.Comm.Recv(ctx, r, tagPost, mem.Buffer{}); err != nil {
			return w.fault("window start", r, err)
		}
	}
	w.starts = append(make([]int, 0, len(ranks)), ranks...)
	return w.fault("window start", -1, w.Comm.Err())
}

func (w *Window) checkRanks(ranks []int) error {
	for _, r := range ranks {
		if err := w.checkRank(r); err != nil {
			return err
		}
	}
	return nil
}

// Complete ends the accesses begun by Start (MPI_Win_complete).
func (w *Window) Complete(ctx context.Context) error {
	if w.starts == nil {
		return w.fault("window complete", -1, wrong("this rank has not started"))
	}
	var refused error
	for _, r := range w.starts {
		if err := w.flush(ctx, r); !goesOn(&refused, err) {
			return w.fault("window complete", r, err)
		}
		w.Comm.Isend(r, tagComplete, mem.Buffer{})
	}
	w.starts = nil
	return w.fault("window complete", -1, cmp.Or(w.Comm.Err(), refused))
}

// Wait waits until all ranks that this rank has posted to have called Complete (MPI_Win_wait).
func (w *Window) Wait(ctx context.Context) error {
	if w.dones == nil {
		return w.fault("window wait", -1, wrong("this rank has not posted"))
	}
	if err := core.WaitAll(ctx, w.dones); err != nil {
		return w.fault("window wait", -1, err)
	}
	w.dones, w.posts = nil, w.posts[:0]
	barrier()
	return nil
}

// Test reports whether Wait would return at once; if so Test has done the same (MPI_Win_test).
func (w *Window) Test(ctx context.Context) (bool, error) {
	if w.dones == nil {
		return false, w.fault("window test", -1, wrong("this rank has not posted"))
	}
	for _, r := range w.dones {
		if _, over, err := r.Test(); !over || err != nil {
			return false, w.fault("window test", -1, err)
		}
	}
	return true, w.Wait(ctx)
}
