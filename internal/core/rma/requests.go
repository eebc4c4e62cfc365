package rma

import (
	"context"
	"encoding/binary"
	"errors"

	"gompi/internal/core"
	"gompi/internal/core/layout"
	"gompi/internal/mem"
)

// Requests of a rank to another, in messages of the window's communicator. A request is a head,
// the runs of the target, and the payload if short; a longer payload is a message of its own
// after the request, into its place. Answers come in the order of the requests, so a single tag
// does for all: the receive of an answer is posted before the request leaves, with the lock held.

// Tags.
const (
	tagRequest = iota
	tagPayload
	tagAnswer
	tagGrant // of a lock, when free
	tagPost
	tagComplete
)

// Requests.
const (
	reqPut uint64 = iota
	reqGet
	reqAccumulate
	reqSwap
	reqFlush
	reqLock
	reqUnlock
)

// Words of a head.
const (
	headRequest = iota
	headAt
	headRuns
	headBytes
	headPayload
	headAnswer // 1: the old elements are wanted
	headHow    // operator, type and size
	headCode
	headWords
)

// Where the payload of a request is.
const (
	none uint64 = iota
	inside
	behind // in a message of its own
)

const (
	mostRuns    = 128
	mostInline  = 2048
	mostRequest = 8*headWords + 16*mostRuns + mostInline
)

// A request is a decoded request.
type request struct {
	head [headWords]uint64
	runs []run
	data []byte
}

type run struct{ off, n int }

func (h How) encode() uint64 { return uint64(h.Op) | uint64(h.Type)<<8 | uint64(h.Size)<<16 }

func (r *request) how() How {
	x := r.head[headHow]
	return How{Op: mem.Op(x & 0xff), Type: mem.Type(x >> 8 & 0xff), Size: int(x >> 16), Code: r.head[headCode]}
}

// append adds the bytes of r to b.
func (r *request) append(b []byte) []byte {
	for _, x := range r.head {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	for _, x := range r.runs {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(x.off)), uint64(x.n))
	}
	return append(b, r.data...)
}

// parse is the inverse of append. It reports false if b is no request.
func (r *request) parse(b []byte) bool {
	if len(b) < 8*headWords {
		return false
	}
	for i := range r.head {
		r.head[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	b = b[8*headWords:]
	n := int(r.head[headRuns])
	if n > mostRuns || len(b) < 16*n {
		return false
	}
	r.runs = r.runs[:0]
	for i := range n {
		r.runs = append(r.runs, run{int(binary.LittleEndian.Uint64(b[16*i:])),
			int(binary.LittleEndian.Uint64(b[16*i+8:]))})
	}
	r.data = b[16*n:]
	return true
}

// layout returns the target's layout.
func (r *request) layout() layout.Layout {
	var b layout.Builder
	for _, x := range r.runs {
		one := layout.Run(x.n)
		b.Add(one.At(x.off))
	}
	return b.Layout()
}

// sendPieces sends requests for an operation on t, each with as many runs as fit a request.
func (w *Window) sendPieces(what uint64, t *Target, b, result mem.Buffer, how How, keep Keep) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := request{runs: make([]run, 0, 1)}
	from, to := 0, 0
	flush := func() {
		if err != nil || len(r.runs) == 0 {
			return
		}
		r.head = [headWords]uint64{headRequest: what, headAt: uint64(t.At), headRuns: uint64(len(r.runs)),
			headBytes: uint64(to - from),
			headHow:   how.encode(), headCode: how.Code}
		err = w.send(t.Rank, &r, piece(b, from, to), piece(result, from, to), keep)
		r.runs, from = r.runs[:0], to
	}
	t.Layout.Runs(func(off, n int, _ layout.Element) {
		if len(r.runs) == mostRuns {
			flush()
		}
		r.runs = append(r.runs, run{off, n})
		to += n
	})
	flush()
	return err
}

// piece returns some bytes of b, none if b is empty.
func piece(b mem.Buffer, from, to int) mem.Buffer {
	if b.Size() == 0 {
		return mem.Buffer{}
	}
	return b.Raw().Slice(from, to)
}

func (w *Window) sendSwap(t *Target, both []byte, result mem.Buffer, how How) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := request{runs: []run{{0, how.Size}}}
	r.head = [headWords]uint64{headRequest: reqSwap, headAt: uint64(t.At), headRuns: 1, headBytes: uint64(how.Size),
		headHow: how.encode()}
	return w.send(t.Rank, &r, mem.Bytes(both), result.Raw(), nil)
}

// send sends a request with the payload b, and posts the receive of its answer, if result has
// room for an answer. The lock is held.
func (w *Window) send(rank int, r *request, b, result mem.Buffer, keep Keep) error {
	p := &w.pending[rank]
	if result.Size() > 0 || r.head[headRequest] == reqFlush {
		r.head[headAnswer] = 1
		p.keep(w.Comm.Irecv(rank, tagAnswer, result), keep)
	}
	r.data = nil
	switch {
	case b.Size() == 0:
	case b.Size() > mostInline:
		r.head[headPayload] = behind
	default:
		data, err := packed(b)
		if err != nil {
			return err
		}
		r.data, r.head[headPayload] = data, inside
	}
	w.room = r.append(w.room[:0])
	if err := w.Comm.Send(context.Background(), rank, tagRequest, mem.Bytes(w.room)); err != nil {
		return err
	}
	if r.head[headPayload] == behind {
		p.keep(w.Comm.Isend(rank, tagPayload, b), keep)
	}
	// Requests are done in order: an answer says that all earlier requests are done, or were
	// refused.
	p.sent = r.head[headRequest] != reqFlush && (r.head[headAnswer] == 0 || w.cfg.Kind == Dynamic)
	return nil
}

// Requested starts an operation, and returns a request that is complete when all requests kept by
// start are.
func (w *Window) Requested(start func(keep Keep) error) (core.Request, error) {
	var all []core.Request
	if err := start(func(r core.Request) { all = append(all, r) }); err != nil || len(all) == 0 {
		return core.Request{}, err
	}
	if len(all) == 1 && w.cfg.Kind != Dynamic {
		return all[0], nil
	}
	whole := w.Comm.Promise()
	go func() { // until all are complete, which a broken window's are, too
		w.Comm.Complete(whole, w.Outcome(core.WaitAll(core.InBackground(context.Background()), all)))
	}()
	return whole, nil
}

// Outcome returns the error of a request that an operation has kept.
func (w *Window) Outcome(err error) error {
	if w.cfg.Kind == Dynamic && errors.Is(err, core.ErrTruncated) { // as the server refuses
		return ErrRange
	}
	return err
}

// keep keeps a request for a flush, or passes it to the caller's Keep.
func (p *pending) keep(r core.Request, keep Keep) {
	if keep == nil {
		p.requests = append(p.requests, r)
		return
	}
	keep(r)
	p.callers.forget()
	p.callers = append(p.callers, r)
}
