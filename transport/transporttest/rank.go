package transporttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// timeout bounds a test's wait without progress.
const timeout = 20 * time.Second

// longest bounds a wait with progress.
const longest = 3 * time.Minute

// A message is a frame as it arrived.
type message struct {
	peer    world.Rank
	h       transport.Header
	payload []byte
	dropped bool
}

// A rank is one end of a Net under test and the Sink of that end: it keeps arriving frames and
// checks the rules that hold always.
type rank struct {
	id world.Rank
	End

	window func(h *transport.Header) int  // bytes of each window; nil: the whole payload
	drops  func(h *transport.Header) int  // windows before the rest is dropped; nil or negative: never
	hook   func(m *message)               // called for each complete message
	takes  func(h *transport.Header) bool // selects whole frames that Take takes; nil: none
	quiet  *still                         // replaces this Sink, if set

	got       []message
	arriving  map[uint64]*arrival // by token
	lastToken uint64
	due       map[uint64]bool // tokens whose Sent is due
	sent      map[uint64]error
	lost      map[world.Rank]error
	broken    error // the first rule that the transport broke
}

// An arrival is a message that is not complete.
type arrival struct {
	message
	scratch []byte
	size    int
	windows int
}

func newRank(id world.Rank) *rank {
	return &rank{
		id:       id,
		arriving: make(map[uint64]*arrival),
		due:      make(map[uint64]bool),
		sent:     make(map[uint64]error),
		lost:     make(map[world.Rank]error),
	}
}

func (r *rank) violated(format string, args ...any) {
	if r.broken == nil {
		r.broken = fmt.Errorf(format, args...)
	}
}

// Arrive implements transport.Sink.
func (r *rank) Arrive(peer world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	if r.quiet != nil {
		return r.quiet.Arrive(peer, h)
	}
	if err, ok := r.lost[peer]; ok {
		r.violated("a frame from rank %d arrived after Lost(%v)", peer, err)
	}
	r.lastToken++
	a := &arrival{message: message{peer: peer, h: *h}}
	if h.Len == 0 {
		r.complete(a)
		return mem.Buffer{}, 0
	}
	a.size = int(h.Len)
	if r.window != nil {
		a.size = max(r.window(h), 1)
	}
	a.scratch = make([]byte, min(a.size, int(h.Len)))
	r.arriving[r.lastToken] = a
	return r.nextWindow(a), r.lastToken
}

// Take implements transport.EagerSink.
func (r *rank) Take(peer world.Rank, h *transport.Header, payload []byte) bool {
	if r.takes == nil || r.quiet != nil || !r.takes(h) {
		return false
	}
	if int64(len(payload)) != h.Len {
		r.violated("Take of %d bytes of a frame of %d", len(payload), h.Len)
	}
	r.complete(&arrival{message: message{peer: peer, h: *h, payload: bytes.Clone(payload)}})
	return true
}

// Wants implements transport.EagerSink.
func (r *rank) Wants(peer world.Rank) bool { return len(r.got)%2 > 0 }

func (r *rank) nextWindow(a *arrival) mem.Buffer {
	left := int(a.h.Len) - len(a.payload)
	if r.drops != nil && r.drops(&a.h) == a.windows {
		a.dropped = true
		r.complete(a)
		return mem.Buffer{}
	}
	a.windows++
	a.scratch = a.scratch[:min(left, a.size)]
	return mem.Bytes(a.scratch)
}

// Filled implements transport.Sink.
func (r *rank) Filled(token uint64) mem.Buffer {
	if r.quiet != nil {
		return r.quiet.Filled(token)
	}
	a := r.arriving[token]
	if a == nil || a.dropped {
		r.violated("Filled(%d): no window with that token", token)
		return mem.Buffer{}
	}
	a.payload = append(a.payload, a.scratch...)
	if len(a.payload) < int(a.h.Len) {
		return r.nextWindow(a)
	}
	delete(r.arriving, token)
	r.complete(a)
	return mem.Buffer{}
}

func (r *rank) complete(a *arrival) {
	r.got = append(r.got, a.message)
	if r.hook != nil {
		r.hook(&a.message)
	}
}

// Sent implements transport.Sink.
func (r *rank) Sent(token uint64, err error) {
	if r.quiet != nil {
		return
	}
	if !r.due[token] {
		r.violated("Sent(%d, %v) is not due", token, err)
	}
	delete(r.due, token)
	r.sent[token] = err
}

// Lost implements transport.Sink.
func (r *rank) Lost(peer world.Rank, err error) {
	if old, ok := r.lost[peer]; ok {
		r.violated("Lost(%d, %v) after Lost(%d, %v)", peer, err, peer, old)
	}
	if err == nil {
		r.violated("Lost(%d) without a reason", peer)
	}
	r.lost[peer] = err
}

// send sends a payload and keeps account of its token.
func (r *rank) send(peer world.Rank, h transport.Header, payload []byte, token uint64) bool {
	r.due[token] = true // a call of the Sink in Send shows as a violation
	if !r.Send(peer, &h, mem.Bytes(payload), token) {
		return false
	}
	delete(r.due, token)
	return true
}

// sendNow sends a payload at once, if r's transport can, and reports whether it did.
func (r *rank) sendNow(peer world.Rank, h transport.Header, payload []byte) bool {
	p := r.Capabilities().Inline
	return p != nil && p.SendNow(peer, &h, mem.Bytes(payload))
}

// recvNow receives the frame with a tag at once, or begins to, if r's transport can and the frame
// is the next, has arrived, and has at most that many bytes.
func (r *rank) recvNow(peer world.Rank, tag, most int) {
	h, payload := transport.Header{Kind: transport.Eager, Tag: int32(tag)}, make([]byte, most)
	p := r.Capabilities().Inline
	if p == nil {
		return
	}
	switch a := (&arrival{message: message{peer: peer, h: h}}); p.RecvNow(peer, &a.h, mem.Bytes(payload)) {
	case transport.Whole:
		a.payload = payload[:a.h.Len]
		r.complete(a)
	case transport.Begun:
		r.lastToken++
		a.scratch = payload[:a.h.Len]
		r.arriving[r.lastToken] = a
		p.Continue(peer, r.lastToken)
	}
}

// until polls until done reports true, and sleeps when there is nothing to poll.
func (r *rank) until(what string, done func() bool) error {
	return r.drive(what, world.None, done)
}

// drive is until with a peer to poll first. It gives up when nothing has happened for timeout: a
// slow machine may take longer in all.
func (r *rank) drive(what string, peer world.Rank, done func() bool) error {
	late, began := time.NewTimer(timeout), time.Now()
	defer late.Stop()
	for idle := 0; ; {
		switch {
		case r.broken != nil:
			return fmt.Errorf("rank %d: %w", r.id, r.broken)
		case done():
			return nil
		case r.Poll(peer) > 0:
			if idle = 0; time.Since(began) < longest {
				late.Reset(timeout)
			}
			continue
		}
		if idle++; idle < 20 {
			select {
			case <-late.C:
				return fmt.Errorf("rank %d: polled in vain for %s; got %d frames, lost %v", r.id, what,
					len(r.got), r.lost)
			default:
				continue
			}
		}
		if err := r.sleep(late.C); err != nil {
			return fmt.Errorf("rank %d: waited in vain for %s; got %d frames, lost %v", r.id, what, len(r.got), r.lost)
		}
	}
}

var errLate = errors.New("late")

// sleep sleeps until there is something to poll, or late delivers.
func (r *rank) sleep(late <-chan time.Time) error {
	if !r.Arm() {
		return nil
	}
	var due <-chan time.Time
	if c := r.Capabilities().Progresser; c != nil {
		if d := c.Deadline(); d > 0 {
			timer := time.NewTimer(time.Duration(d))
			defer timer.Stop()
			due = timer.C
		}
	}
	r.Parker.Arm()
	defer r.Parker.Disarm()
	select {
	case <-r.Parker.C():
	case <-due:
	case <-late:
		return errLate
	}
	return nil
}

// close closes in good order.
func (r *rank) close() error {
	return r.until("Close", func() bool { return r.Close(false) })
}

// all runs f for every rank at the same time, each as its own driver.
func all(t *testing.T, ranks []*rank, f func(r *rank) error) {
	t.Helper()
	errs := make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() { errs[i] = f(r) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// pattern returns a payload that encodes its sender, its number and each position.
func pattern(from world.Rank, number, size int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(from))
	binary.LittleEndian.PutUint64(seed[8:], uint64(number))
	b := make([]byte, size)
	rand.NewChaCha8(seed).Read(b)
	return b
}
