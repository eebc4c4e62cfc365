package rma

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gompi/internal/core"
	"gompi/internal/core/lease"
	"gompi/internal/mem"
)

// A server does the operations of other ranks on this rank's part, on a goroutine of its own: any
// polling goroutine delivers a request to the server, and need not know of windows. Between
// requests the server waits for nothing that the launcher would take for a stuck rank.
type server struct {
	w      *Window
	room   []byte
	in     []byte        // of accumulates, kept: the kernel zeroes new memory
	signal chan struct{} // next is complete
	over   chan struct{} // the goroutine has ended

	refused map[int][]byte // answers to the next flush of ranks of which a request was refused

	mu     sync.Mutex // guards next, which stop cancels, and ending
	next   core.Request
	ending bool

	// State of the lock of this rank's part, if ranks do not share memory.
	holders int
	writer  bool
	queue   []lockRequest
}

type lockRequest struct {
	rank int
	how  lease.Hold
}

// serve starts the server.
func (w *Window) serve() {
	s := &server{w: w, room: make([]byte, mostRequest), signal: make(chan struct{}, 1), over: make(chan struct{})}
	w.server = s
	go s.run()
}

// expect posts the receive of the next request, unless the window ends, and returns the request.
func (s *server) expect() (core.Request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return core.Request{}, false
	}
	s.next = s.w.Comm.Irecv(core.AnySource, tagRequest, mem.Bytes(s.room))
	s.w.Comm.Signal(s.next, s.signal, false)
	return s.next, true
}

func (s *server) run() {
	defer close(s.over)
	for {
		next, ok := s.expect()
		if !ok {
			return
		}
		<-s.signal
		st, err := next.Wait(context.Background())
		if err != nil {
			return // the window is freed, or broken: then all its waits learn of that
		}
		var r request
		if !r.parse(s.room[:st.Bytes]) {
			err = fmt.Errorf("sent %d bytes that are no request", st.Bytes)
		} else {
			err = s.handle(st.Source, &r)
		}
		if err != nil {
			s.w.Comm.Revoke(fmt.Sprintf("cannot do what rank %d wants of its window: %v", st.Source, err))
			return
		}
	}
}

// stop ends the server of a window that nobody uses any more.
func (w *Window) stop() {
	if w.server == nil {
		return
	}
	s := w.server
	s.mu.Lock()
	s.ending = true
	s.next.Cancel() // does nothing if next is complete, or none
	s.mu.Unlock()
	<-s.over
}

func (s *server) handle(from int, r *request) error {
	switch r.head[headRequest] {
	case reqFlush:
		s.answer(from, mem.Bytes(s.refused[from]))
		delete(s.refused, from)
		return nil
	case reqLock:
		s.queue = append(s.queue, lockRequest{from, lease.Hold(r.head[headAt])})
		s.grant()
		return nil
	case reqUnlock:
		s.holders--
		s.writer = false
		s.grant()
		return nil
	}
	t := Target{Rank: s.w.me, At: int(r.head[headAt]), Layout: r.layout()}
	if err := s.check(&t, r); errors.Is(err, ErrRange) {
		s.refuse(from, r)
		return nil
	} else if err != nil {
		return err
	}
	here := s.w.parts[s.w.me].buffer(&t)
	switch r.head[headRequest] {
	case reqPut:
		return s.payload(from, r, here)
	case reqGet:
		s.answer(from, here)
		return nil
	case reqAccumulate:
		return s.combine(from, r, &t)
	case reqSwap:
		return s.swap(from, r, &t)
	}
	return fmt.Errorf("request %d: there is none", r.head[headRequest])
}

// check returns an error if a target in this rank's part is not valid.
func (s *server) check(t *Target, r *request) error {
	if n := t.Layout.Size(); n != int(r.head[headBytes]) || n == 0 {
		return fmt.Errorf("%d bytes for a target of %d", r.head[headBytes], n)
	}
	return s.w.check(t, t.Layout.Size())
}

// refuse rejects a request for unattached memory, and does no part of it. The origin learns this by
// answers longer than their receives: to this request, if it has one, and to the next flush.
func (s *server) refuse(from int, r *request) {
	if r.head[headPayload] == behind {
		come := s.w.Comm.Irecv(from, tagPayload, mem.Buffer{}) // truncated
		s.w.Comm.Signal(come, s.signal, true)
		<-s.signal
		_, _ = come.Wait(context.Background())
	}
	if r.head[headAnswer] != 0 {
		s.answer(from, mem.Bytes(make([]byte, r.head[headBytes]+1)))
	}
	if s.refused == nil {
		s.refused = map[int][]byte{}
	}
	s.refused[from] = []byte{1}
}

// payload stores a request's payload. While waiting for a payload in a message of its own, this
// goroutine leaves polling to others: if it had polled, a goroutine that has waited for long
// would begin again only a millisecond later.
func (s *server) payload(from int, r *request, b mem.Buffer) error {
	if r.head[headPayload] == behind {
		come := s.w.Comm.Irecv(from, tagPayload, b)
		s.w.Comm.Signal(come, s.signal, true)
		<-s.signal
		_, err := come.Wait(context.Background())
		return err
	}
	if len(r.data) != b.Size() {
		return fmt.Errorf("%d bytes: want %d", len(r.data), b.Size())
	}
	return mem.Copy(b, mem.Bytes(r.data))
}

// answer sends b. A change of b before its arrival is an access conflict in the program.
func (s *server) answer(to int, b mem.Buffer) { s.w.Comm.Isend(to, tagAnswer, b) }

func (s *server) combine(from int, r *request, t *Target) error {
	n, how := t.Layout.Size(), r.how()
	if how.Size <= 0 || n%how.Size != 0 || !how.Defined() || how.Type == mem.NoType && s.w.cfg.Custom == nil {
		return fmt.Errorf("operator %v for %d bytes of %v", how.Op, n, how.Type)
	}
	var in, out []byte
	if how.Op != Fetch {
		in = s.operands(n)
		if err := s.payload(from, r, mem.Bytes(in)); err != nil {
			return err
		}
	}
	if r.head[headAnswer] != 0 {
		out = make([]byte, n)
	}
	p := &s.w.parts[s.w.me]
	if err := s.w.combine(p, p.Here+uintptr(t.At), &t.Layout, in, out, how); err != nil {
		return err
	}
	if out != nil {
		s.answer(from, mem.Bytes(out))
	}
	return nil
}

// mostKept bounds the bytes of operand buffers that the server keeps.
const mostKept = 4 << 20

// operands returns room for n bytes, until the next call.
func (s *server) operands(n int) []byte {
	if n > mostKept {
		return make([]byte, n)
	}
	if n > len(s.in) {
		s.in = make([]byte, min(mostKept, 2*n))
	}
	return s.in[:n]
}

func (s *server) swap(from int, r *request, t *Target) error {
	n, how := t.Layout.Size(), r.how()
	if _, ok := t.Layout.Contiguous(); !ok || how.Size != n || len(r.data) != 2*n {
		return fmt.Errorf("compare and swap of %d bytes with %d", n, len(r.data))
	}
	p, out := &s.w.parts[s.w.me], make([]byte, n)
	if err := s.w.compareAndSwap(p, p.Here+uintptr(t.At), r.data[:n], r.data[n:], out, how); err != nil {
		return err
	}
	s.answer(from, mem.Bytes(out))
	return nil
}

// grant gives the lock to the next ranks, in the order of their requests.
func (s *server) grant() {
	for len(s.queue) > 0 && !s.writer {
		first := s.queue[0]
		if first.how == lease.ForWriting && s.holders > 0 {
			return
		}
		s.queue = s.queue[1:]
		s.holders++
		s.writer = first.how == lease.ForWriting
		s.w.Comm.Isend(first.rank, tagGrant, mem.Buffer{})
	}
}

// askForLock waits until the server of a rank gives its lock.
func (w *Window) askForLock(ctx context.Context, rank int, how lease.Hold) error {
	granted := w.Comm.Irecv(rank, tagGrant, mem.Buffer{})
	if err := w.sendLock(reqLock, rank, how); err != nil {
		return err
	}
	_, err := granted.Wait(ctx)
	if err != nil && ctx.Err() != nil && w.Comm.Err() == nil {
		w.Comm.Revoke(fmt.Sprintf("gave up to wait for the lock of rank %d: %v", rank, context.Cause(ctx)))
	}
	return err
}

func (w *Window) sendLock(what uint64, rank int, how lease.Hold) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := request{}
	r.head[headRequest], r.head[headAt] = what, uint64(how)
	w.room = r.append(w.room[:0])
	return w.Comm.Send(context.Background(), rank, tagRequest, mem.Bytes(w.room))
}
