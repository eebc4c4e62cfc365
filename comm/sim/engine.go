package sim

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// An engine is a simulation in progress: events in the order of their times. Ranks are coroutines:
// one runs, in no time but for what its clock is moved by, from one Wait to the next. So all that
// happens depends on the times alone, and is the same in each run.
type engine struct {
	*Machine
	ranks  []Rank
	queue  events
	now    float64
	nics   []nic     // by host and rail
	ups    [][]link  // by level and switch, upward
	downs  [][]link  // and back
	pools  []pool    // of processors, empty where each rank has one
	cut    []float64 // by host, from when on its link is cut; nil if none is
	detect float64
	spare  *message // free ones
	pushed uint64   // events ever, which those of one time go by
	failed error
	live   int // ranks that have not returned
	res    Result
}

// A Result is what a simulation found.
type Result struct {
	Time     float64   // seconds until the last rank was done
	Done     []float64 // when each rank was
	Messages int       // sent by all ranks, without words that receivers are ready
	Bytes    int64
}

// A nic is a host's end of a link: out of the host, and in.
type nic struct{ out, in link }

// A link carries one message after the other.
type link struct{ free float64 }

// take books the link from no earlier than at on. It returns when the first and the last byte have
// passed. slack is by how much a link that has paused may run ahead of its rate.
func (l *link) take(at, seconds, slack float64) (first, last float64) {
	if slack == 0 {
		first = max(at, l.free)
		l.free = first + seconds
		return first, l.free
	}
	l.free = max(at, l.free) + seconds
	return max(at, l.free-seconds-slack), max(at, l.free-slack)
}

// A pool is the processors that some ranks share: when each is free.
type pool []float64

// book takes the processor that is free first, no earlier than at, and returns which one and when.
func (p pool) book(at float64) (cpu int, from float64) {
	for i, free := range p {
		if free < p[cpu] {
			cpu = i
		}
	}
	return cpu, max(at, p[cpu])
}

// What an event does to its message, or to its rank.
const (
	resume  = iota // lets the rank go on
	move           // the message's first byte comes to the next link
	deliver        // its last byte is there
	fail           // ranks learn that a link is cut
)

type event struct {
	at   float64
	seq  uint64
	kind uint8
	rank int32
	m    *message
}

// A message is on its way, or waits for its receive.
type message struct {
	from, to int32
	size     int
	word     bool    // that the receiver of a long message has a buffer
	read     bool    // before there was a receive
	hop      int8    // links passed
	head     float64 // when the first byte came to the last link, and the last byte passed it
	tail     float64
	next     *message // of spare ones
}

// Run lets body run as each of so many ranks of a machine, and returns what happened. All begin at
// second 0, but for those with faults. If ranks wait for messages that nobody sends, all of their
// operations fail, and the error says so. Run takes memory for each rank's stack, some 4 KiB, and
// no time but the processor's: a microsecond for a message, or less.
func Run(m *Machine, ranks int, body func(r *Rank) error, faults ...Fault) (Result, error) {
	e := &engine{Machine: m, ranks: make([]Rank, ranks), live: ranks}
	e.res.Done = make([]float64, ranks)
	e.build()
	for i := range e.ranks {
		e.ranks[i] = Rank{e: e, me: int32(i), speed: 1}
	}
	for _, f := range faults {
		e.add(f)
	}
	for i := range e.ranks {
		r := &e.ranks[i]
		r.next, r.stop = iter.Pull(r.coroutine(body))
		e.push(event{at: r.clock, kind: resume, rank: r.me})
	}
	for len(e.queue) > 0 {
		e.step(e.queue.pop())
	}
	err := e.failed
	if e.live > 0 && err == nil {
		err = e.stuck()
	}
	for i := range e.ranks {
		r := &e.ranks[i]
		r.stop() // ends who still waits
		if r.err != nil && err == nil {
			err = fmt.Errorf("rank %d: %w", i, r.err)
		}
	}
	return e.res, err
}

// build makes the hosts and the network.
func (e *engine) build() {
	hosts := (len(e.ranks) + e.perHost() - 1) / e.perHost()
	e.nics = make([]nic, hosts*max(e.Rails, 1))
	for _, l := range e.Tree {
		n := (hosts + l.Hosts - 1) / l.Hosts
		e.ups, e.downs = append(e.ups, make([]link, n)), append(e.downs, make([]link, n))
	}
	together := max(e.Hosts, 1)
	if e.Processors > 0 && e.Processors < e.perHost()*min(together, hosts) {
		for range (hosts + together - 1) / together {
			e.pools = append(e.pools, make(pool, e.Processors))
		}
	}
}

func (e *engine) add(f Fault) {
	r := &e.ranks[f.Rank]
	r.clock = f.Late
	if f.Slow > 0 {
		r.speed = f.Slow
	}
	if f.Cut {
		if e.cut == nil {
			e.cut = slices.Repeat([]float64{never}, len(e.nics)/max(e.Rails, 1))
		}
		e.cut[e.host(r.me)], e.detect = f.At, f.Detect
	}
}

const never = 1e300

func (e *engine) host(rank int32) int { return int(rank) / e.perHost() }

// pool returns the processors that a rank shares, nil if it has its own.
func (e *engine) pool(rank int32) pool {
	if e.pools == nil {
		return nil
	}
	return e.pools[e.host(rank)/max(e.Hosts, 1)]
}

func (e *engine) push(x event) {
	e.pushed++
	x.seq = e.pushed
	e.queue.push(x)
}

func (e *engine) step(x event) {
	e.now = x.at
	switch x.kind {
	case resume:
		e.ranks[x.rank].run()
	case move:
		e.move(x.m)
	case deliver:
		e.ranks[x.m.to].delivered(x.m)
	case fail:
		e.fail(fmt.Errorf("the link of host %d is cut", x.rank))
	}
}

// move lets the message that has come to its next link pass it. Links pass a message's first bytes
// on while the last are still to come.
func (e *engine) move(m *message) {
	src, dst := e.host(m.from), e.host(m.to)
	last := len(e.Tree)
	for last > 0 && src/e.Tree[last-1].Hosts == dst/e.Tree[last-1].Hosts {
		last-- // switches that both are below need not be left
	}
	hop, latency := int(m.hop), 0.0
	n := float64(m.size)
	var l *link
	var seconds, slack float64
	switch {
	case hop == 0 || hop == 1+2*last:
		seconds, slack = e.Gap+n*e.Wire, float64(e.Burst)*e.Wire
		if hop == 0 {
			l, latency = &e.nics[e.rail(m.from)].out, e.Between.Latency
		} else {
			l = &e.nics[dst*max(e.Rails, 1)+int(m.from)%e.perHost()%max(e.Rails, 1)].in
		}
	case hop <= last:
		up := e.Tree[hop-1]
		l, seconds, latency = &e.ups[hop-1][src/up.Hosts], n*up.Up, up.Latency
	default:
		down := e.Tree[2*last-hop]
		l, seconds, latency = &e.downs[2*last-hop][dst/down.Hosts], n*down.Up, 0
	}
	if e.cut != nil && (hop == 0 && e.now >= e.cut[src] || hop > 0 && e.now >= e.cut[dst]) {
		e.lose(m, src, dst)
		return
	}
	first, passed := l.take(e.now, seconds, slack)
	m.head, m.tail = first, max(m.tail, passed)
	if hop == 0 && !m.word {
		e.ranks[m.from].left(m.tail - float64(e.Buffer)*e.Wire)
	}
	m.tail += latency
	if m.hop++; int(m.hop) <= 1+2*last {
		e.push(event{at: first + latency, kind: move, m: m})
		return
	}
	e.push(event{at: m.tail, kind: deliver, m: m})
}

// rail returns the number of the link that a rank sends by.
func (e *engine) rail(rank int32) int {
	rails := max(e.Rails, 1)
	return e.host(rank)*rails + int(rank)%e.perHost()%rails
}

// lose drops a message.
func (e *engine) lose(m *message, src, dst int) {
	host := src
	if e.now < e.cut[src] {
		host = dst
	}
	if m.hop == 0 && !m.word {
		e.ranks[m.from].left(m.tail) // it is in the socket
	}
	e.free(m)
	e.push(event{at: e.now + e.detect, kind: fail, rank: int32(host)})
}

// fail ends all operations of all ranks.
func (e *engine) fail(err error) {
	if e.failed != nil {
		return
	}
	e.failed = err
	for i := range e.ranks {
		if r := &e.ranks[i]; r.waiting {
			r.clock = max(r.clock, e.now)
			r.resume()
		}
	}
}

// stuck says which ranks wait for what nobody sends.
func (e *engine) stuck() error {
	var who []string
	for i := range e.ranks {
		r := &e.ranks[i]
		if !r.waiting || len(who) == 8 {
			continue
		}
		for _, c := range r.posted.waiting() {
			who = append(who, fmt.Sprintf("rank %d waits for rank %d", r.me, c.from))
			break
		}
		if len(r.posted.waiting()) == 0 {
			who = append(who, fmt.Sprintf("rank %d waits until its messages have left", r.me))
		}
	}
	return errors.New("nothing happens any more: " + strings.Join(who, ", "))
}

func (e *engine) message() *message {
	m := e.spare
	if m == nil {
		return new(message)
	}
	e.spare = m.next
	*m = message{}
	return m
}

func (e *engine) free(m *message) { m.next, e.spare = e.spare, m }

// events is a heap, the first event at its root.
type events []event

func (q events) before(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}

func (q *events) push(x event) {
	*q = append(*q, x)
	s := *q
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 4
		if !s.before(i, up) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (q *events) pop() event {
	s := *q
	x, n := s[0], len(s)-1
	s[0] = s[n]
	s[n].m = nil
	s = s[:n]
	*q = s
	for i := 0; ; {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < n; c++ {
			if s.before(c, least) {
				least = c
			}
		}
		if least == i {
			return x
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
