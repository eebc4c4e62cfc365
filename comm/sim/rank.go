package sim

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"gompi/internal/core/call"
	"gompi/internal/core/hier"
	"gompi/internal/mem"
)

// A Rank is one rank of a simulation, as its program sees it. It implements coll.Peers, the
// interface of the algorithms of package coll.
type Rank struct {
	e     *engine
	me    int32
	clock float64 // time of its processor, in seconds
	speed float64 // factor on the time of its processor
	busy  float64 // seconds that its processor has worked
	err   error

	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	waiting bool // in Wait, or for a rank of its host
	meets   bool // the latter
	resumed bool // an event lets it go on

	posted  queue[receive]  // whose messages have not arrived
	came    []pair          // whose messages arrived before Wait
	inbox   queue[*message] // messages that arrived before their receives
	held    queue[*message] // messages that wait for the word of their receivers, and messages behind them
	words   queue[int32]    // receivers whose word came before the message is sent
	leaving int             // messages that have not left
	leftAt  float64         // when the last message had left

	memory memory
	hier   *hier.Collectives // nil before the first
}

// A receive has been posted.
type receive struct {
	from   int32
	reduce bool
}

// A pair is a receive with its message.
type pair struct {
	receive
	m *message
}

func (r *Rank) coroutine(body func(r *Rank) error) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		r.yield = yield
		if err := body(r); err != nil && r.err == nil {
			r.err = err
		}
		r.waiting = false
		if n := len(r.posted.waiting()) + r.leaving; n > 0 && r.err == nil {
			r.err = fmt.Errorf("ends without waiting for %d messages", n)
		}
		r.e.live--
		r.e.res.Done[r.me] = r.clock
		r.e.res.Time = max(r.e.res.Time, r.clock)
	}
}

// run resumes the rank at the time of the present event.
func (r *Rank) run() {
	r.clock, r.waiting, r.resumed = max(r.clock, r.e.now), false, false
	pool := r.e.pool(r.me)
	if pool == nil {
		r.next()
		return
	}
	cpu, from := pool.book(r.clock)
	r.clock = from
	r.next()
	pool[cpu] = max(pool[cpu], r.clock)
}

// Rank implements coll.Peers.
func (r *Rank) Rank() int { return int(r.me) }

// Size implements coll.Peers. It does not count the processes beside the ranks.
func (r *Rank) Size() int { return r.e.members() }

// Now returns the rank's time, in seconds.
func (r *Rank) Now() float64 { return r.clock }

// Work lets the rank's processor work for some seconds.
func (r *Rank) Work(seconds float64) { r.spend(seconds * r.speed) }

func (r *Rank) spend(seconds float64) {
	r.clock += seconds
	r.busy += seconds
}

// Busy returns the seconds for which its processor has worked, on messages, too.
func (r *Rank) Busy() float64 { return r.busy }

// Yield gives a shared processor to other ranks before the rank continues.
func (r *Rank) Yield() {
	r.e.push(event{at: r.clock, kind: resume, rank: r.me})
	if !r.yield(struct{}{}) && r.err == nil {
		r.err = errors.New("waits for a processor that nobody gives back")
	}
}

// link returns the cost of messages between the rank and another.
func (r *Rank) link(peer int32) *Link {
	if r.e.host(r.me) == r.e.host(peer) {
		return &r.e.Inside
	}
	return &r.e.Between
}

// Isend implements coll.Peers.
func (r *Rank) Isend(to int, b mem.Buffer) { r.SendBytes(to, b.Size()) }

// Irecv implements coll.Peers.
func (r *Rank) Irecv(from int, b mem.Buffer) { r.receive(from, b.Size(), false) }

// IrecvReduce implements coll.Peers.
func (r *Rank) IrecvReduce(from int, _, own mem.Buffer, _ call.Op, _ bool) {
	r.receive(from, own.Size(), true)
}

// RecvBytes posts a receive of a number of bytes.
func (r *Rank) RecvBytes(from, size int) { r.receive(from, size, false) }

// SendBytes starts to send a message of a number of bytes.
func (r *Rank) SendBytes(to, size int) {
	if to == int(r.me) {
		r.err = errors.New("message to oneself")
		return
	}
	r.e.res.Messages++
	r.e.res.Bytes += int64(size)
	m := r.e.message()
	m.from, m.to, m.size = r.me, int32(to), size
	r.leaving++
	if r.isHeld(m.to) || r.e.isLong(size) && !r.isReady(m.to) {
		r.held.push(m)
		return
	}
	r.send(m)
}

// isHeld reports whether a message to peer is held back: the messages of a pair arrive in order.
func (r *Rank) isHeld(peer int32) bool {
	return slices.ContainsFunc(r.held.waiting(), func(m *message) bool { return m.to == peer })
}

// isLong reports whether a message leaves only when its receiver has a buffer.
func (m *Machine) isLong(size int) bool { return m.Eager > 0 && size > m.Eager }

// isReady consumes the word of a receiver, if it has arrived.
func (r *Rank) isReady(peer int32) bool {
	for i, p := range r.words.waiting() {
		if p == peer {
			r.words.take(i)
			return true
		}
	}
	return false
}

// send gives a message to the link, or to another rank of the host.
func (r *Rank) send(m *message) {
	l := r.link(m.to)
	begin := r.clock + l.Overhead*r.speed
	r.Work(l.Overhead + float64(m.size)*l.Copy)
	m.head, m.tail = begin, r.clock
	if l == &r.e.Inside {
		m.head, m.tail = begin+l.Latency, r.clock+l.Latency
		if !m.word {
			r.left(r.clock)
		}
		r.e.push(event{at: m.tail, kind: deliver, m: m})
		return
	}
	r.e.push(event{at: begin, kind: move, m: m})
}

// left notes that a message has left, or is in the socket, at a time.
func (r *Rank) left(at float64) {
	r.leaving--
	r.leftAt = max(r.leftAt, at)
	r.check()
}

func (r *Rank) receive(from, size int, reduce bool) {
	c := receive{int32(from), reduce}
	for i, m := range r.inbox.waiting() {
		if m.from == c.from {
			r.came = append(r.came, pair{c, r.inbox.take(i)})
			return
		}
	}
	r.posted.push(c)
	if r.e.isLong(size) {
		m := r.e.message()
		m.from, m.to, m.word = r.me, c.from, true
		r.send(m)
	}
}

// delivered takes an arriving message.
func (r *Rank) delivered(m *message) {
	if m.word {
		r.ready(m)
		return
	}
	for i, c := range r.posted.waiting() {
		if c.from == m.from {
			r.read(m, r.posted.take(i).reduce)
			r.e.free(m)
			r.check()
			return
		}
	}
	if r.waiting {
		r.read(m, false)
		m.read = true
	}
	r.inbox.push(m)
}

// ready handles a receiver's message that its buffer is ready, and sends the messages held for it.
func (r *Rank) ready(m *message) {
	peer := m.from
	r.e.free(m)
	r.words.push(peer)
	for i := 0; i < len(r.held.waiting()); {
		h := r.held.waiting()[i]
		switch {
		case h.to != peer:
			i++
		case !r.e.isLong(h.size):
			r.send(r.held.take(i))
		case r.isReady(peer):
			r.compute(r.e.now, r.link(peer).Overhead*r.speed)
			r.send(r.held.take(i))
		default:
			return
		}
	}
}

// reduceChunk is the number of bytes that are combined while the next arrive.
const reduceChunk = 128 << 10

// read does the processor's work for a message: while its bytes arrive, and for the last of them
// afterwards.
func (r *Rank) read(m *message, reduce bool) {
	l, n := r.link(m.from), float64(m.size)
	perByte := l.Copy
	if reduce {
		perByte += r.e.Reduce
	}
	work := (l.Overhead + n*perByte) * r.speed
	last := (l.Overhead + min(n, reduceChunk)*perByte) * r.speed
	r.compute(max(m.head, m.tail+last-work), work)
}

// compute lets the rank's processor work for some seconds, not before at. Where ranks share
// processors, a waiting rank has to be woken for it.
func (r *Rank) compute(at, seconds float64) {
	r.clock = max(r.clock, at)
	pool := r.e.pool(r.me)
	if pool == nil || !r.waiting {
		r.spend(seconds)
		return
	}
	cpu, from := pool.book(r.clock)
	r.clock = from
	r.spend(seconds + r.e.Switch)
	pool[cpu] = r.clock
}

// check resumes the rank if all messages that it waits for are done.
func (r *Rank) check() {
	if r.waiting && !r.meets && len(r.posted.waiting()) == 0 && r.leaving == 0 {
		r.clock = max(r.clock, r.leftAt)
		r.resume(r.clock)
	}
}

// resume schedules the rank at a time, or when its processor has finished its present work.
func (r *Rank) resume(at float64) {
	if !r.resumed {
		r.resumed = true
		r.e.push(event{at: max(r.clock, at, r.e.now), kind: resume, rank: r.me})
	}
}

// Wait implements coll.Peers.
func (r *Rank) Wait() error {
	if r.err != nil {
		return r.err
	}
	for _, p := range r.came { // in the order of arrival
		if p.m.read { // it was copied to a buffer of its own
			r.Work(float64(p.m.size) * r.e.Reduce)
		} else {
			r.read(p.m, p.reduce)
		}
		r.e.free(p.m)
	}
	r.came, r.leftAt = r.came[:0], max(r.leftAt, r.clock)
	if len(r.posted.waiting())+r.leaving == 0 && r.e.failed == nil {
		return nil
	}
	r.waiting = true
	if r.e.failed != nil {
		r.resume(r.clock)
	}
	if !r.yield(struct{}{}) {
		r.err = errors.New("waits for a message that nobody sends")
	} else if r.e.failed != nil {
		r.err = r.e.failed
	}
	return r.err
}

// Scratch implements coll.Peers.
func (r *Rank) Scratch(like mem.Buffer, n int) mem.Buffer {
	if n == 0 {
		return like.Slice(0, 0)
	}
	space := like.Space()
	if !like.IsHost() {
		space = r.space()
	}
	b, _ := space.Alloc(like.Type(), n)
	return b
}
