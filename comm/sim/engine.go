package sim

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// An engine is a simulation in progress: events in the order of their times. Ranks are coroutines.
// A rank runs from one Wait to the next; only moves of its clock take simulated time. So the result
// depends on the times alone and is the same in each run.
type engine struct {
	*Machine
	ranks  []Rank
	queue  events
	now    float64
	nics   []nic      // by host and rail
	ups    [][]link   // by level and switch, toward hosts
	downs  [][]link   // and back
	hosts  []meetings // by host
	pools  []pool     // of processors, empty where each rank has one
	cut    []float64  // by host, when its link is cut; nil if no link is cut
	detect float64
	spare  *message // head of the list of free messages
	pushed uint64   // events pushed so far: the order of events with the same time
	failed error
	live   int // ranks that have not returned
	res    Result
}

// A Result is the outcome of a simulation.
type Result struct {
	Time     float64   // seconds until the last rank was done
	Done     []float64 // by rank, when the rank was done
	Messages int       // sent by all ranks, without the words of ready receivers
	Bytes    int64
}

// A nic is a host's link, out and in. Messages to different hosts share the way out as TCP's
// connections do, one part of each in turn.
type nic struct {
	out, in link
	flows   queue[flow] // that have messages to send, the next flow first
}

// A flow is the messages to one host that have not left, in order.
type flow struct {
	host     int
	messages []*message
}

// part is the number of bytes of a message that leave before the next flow has its turn. A message
// has at most 16 parts, so the number of events is bounded.
func part(size int) int { return max(16<<10, (size+15)/16) }

// A link carries one message at a time.
type link struct{ free float64 }

// take books the link for some seconds, not before at, and returns when the first and the last byte
// have passed. slack is the lead over its rate that a link may have after a pause.
func (l *link) take(at, seconds, slack float64) (first, last float64) {
	if slack == 0 {
		first = max(at, l.free)
		l.free = first + seconds
		return first, l.free
	}
	l.free = max(at, l.free) + seconds
	return max(at, l.free-seconds-slack), max(at, l.free-slack)
}

// A pool is the processors that some ranks share: for each, when it is free.
type pool []float64

// book takes the processor that is free first, not before at. It returns its number and the time.
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
	move           // the first byte of a part reaches the next link
	leave          // the next part of a nic's messages leaves
	deliver        // the last byte of a message arrives
	fail           // ranks learn that a link is cut
)

type event struct {
	at   float64
	seq  uint64
	kind uint8
	rank int32
	m    *message

	// Of a part that moves: links passed, bytes, and when the last byte arrives.
	hop  int8
	size int
	tail float64
}

// A message is under way, or waits for its receive.
type message struct {
	from, to int32
	size     int
	word     bool    // not data: the receiver of a long message has a buffer
	read     bool    // the receiver processed it before a receive was posted
	sent     int     // bytes that have left the host
	came     int     // bytes that have arrived at the receiver's host
	gone     bool    // the sender is done with it
	head     float64 // when the first byte reached the last link; tail is when the last byte passed it
	tail     float64
	next     *message // in the list of free messages
}

// Run lets body run as each of the ranks of a machine and returns the result. All ranks begin at
// second 0, except late ones (Fault). If ranks wait for messages that are never sent, all of their
// operations fail and the error names the ranks. Run takes some 4 KiB of memory for each rank's
// stack and at most a microsecond of real time for each message.
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
		r.stop() // ends a rank that still waits
		if r.err != nil && err == nil {
			err = fmt.Errorf("rank %d: %w", i, r.err)
		}
	}
	return e.res, err
}

// build makes the hosts and the network.
func (e *engine) build() {
	hosts := e.Machine.hosts(e.members())
	for _, h := range e.Beside {
		hosts = max(hosts, h+1)
	}
	e.nics, e.hosts = make([]nic, hosts*max(e.Rails, 1)), make([]meetings, hosts)
	for _, l := range e.Tree {
		n := (hosts + l.Hosts - 1) / l.Hosts
		e.ups, e.downs = append(e.ups, make([]link, n)), append(e.downs, make([]link, n))
	}
	together := max(e.Hosts, 1)
	if e.Processors > 0 && (e.Beside != nil || e.Processors < e.perHost()*min(together, hosts)) {
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

// members returns the number of ranks, without the processes beside them.
func (e *engine) members() int { return len(e.ranks) - len(e.Beside) }

func (e *engine) host(rank int32) int {
	if n := int(rank) - e.members(); n >= 0 {
		return e.Beside[n]
	}
	return int(rank) / e.perHost()
}

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
		e.move(x)
	case leave:
		e.leave(int(x.rank))
	case deliver:
		e.ranks[x.m.to].delivered(x.m)
	case fail:
		e.fail(fmt.Errorf("the link of host %d is cut", x.rank))
	}
}

// enter queues a message at its host's nic.
func (e *engine) enter(m *message) {
	i, dst := e.rail(m.from), e.host(m.to)
	n := &e.nics[i]
	f, idle := slices.IndexFunc(n.flows.waiting(), func(f flow) bool { return f.host == dst }), n.flows.empty()
	if f < 0 {
		f = len(n.flows.waiting())
		n.flows.push(flow{host: dst})
	}
	to := &n.flows.waiting()[f]
	to.messages = append(to.messages, m)
	e.buffer(to, e.now)
	if idle {
		e.leave(i)
	}
}

// buffer notifies the senders whose messages fit a flow's socket at a time. No sender waits for a
// control message to leave.
func (e *engine) buffer(f *flow, at float64) {
	room := e.Buffer
	for _, m := range f.messages {
		if room -= m.size - m.sent; room < 0 {
			return
		}
		e.gone(m, at)
	}
}

// gone notifies a message's sender, once, that the message has left its buffer.
func (e *engine) gone(m *message, at float64) {
	if !m.gone && !m.word {
		e.ranks[m.from].left(max(at, m.tail-float64(e.Buffer)*e.Wire))
	}
	m.gone = true
}

// leave sends a part of the first flow's message; the next flow is then the first.
func (e *engine) leave(i int) {
	n := &e.nics[i]
	f := n.flows.take(0)
	m := f.messages[0]
	size := min(part(m.size), m.size-m.sent)
	seconds := float64(size) * e.Wire
	if m.sent == 0 {
		seconds += e.Gap
	}
	first, passed := n.out.take(e.now, seconds, float64(e.Burst)*e.Wire)
	x := event{at: first + e.Between.Latency, kind: move, m: m, hop: 1, size: size, tail: passed + e.Between.Latency}
	m.sent += size
	e.buffer(&f, passed)
	if m.sent == m.size {
		f.messages = f.messages[1:]
		e.gone(m, passed)
		x.tail = max(x.tail, m.tail+e.Between.Latency)
	}
	if len(f.messages) > 0 {
		n.flows.push(f)
	}
	if !n.flows.empty() {
		e.push(event{at: passed, kind: leave, rank: int32(i)})
	}
	if src := e.host(m.from); e.cut != nil && e.now >= e.cut[src] {
		e.lose(src)
		return
	}
	e.push(x)
}

// move lets a part of a message pass its next link. A link passes the first bytes on before the
// last have arrived.
func (e *engine) move(x event) {
	m := x.m
	if x.hop == 0 {
		e.enter(m)
		return
	}
	src, dst := e.host(m.from), e.host(m.to)
	if e.cut != nil && e.now >= e.cut[dst] {
		e.lose(dst)
		return
	}
	last := len(e.Tree)
	for last > 0 && src/e.Tree[last-1].Hosts == dst/e.Tree[last-1].Hosts {
		last-- // a message does not climb above the first switch that both hosts share
	}
	hop, n, latency := int(x.hop), float64(x.size), 0.0
	var first, passed float64
	switch {
	case hop <= last:
		up := e.Tree[hop-1]
		first, passed = e.ups[hop-1][src/up.Hosts].take(e.now, n*up.Up, 0)
		latency = up.Latency
	case hop <= 2*last:
		down := e.Tree[2*last-hop]
		first, passed = e.downs[2*last-hop][dst/down.Hosts].take(e.now, n*down.Up, 0)
	default:
		e.arrive(x)
		return
	}
	x.at, x.tail, x.hop = first+latency, max(x.tail, passed)+latency, x.hop+1
	e.push(x)
}

// arrive lets a part pass the link of its destination host.
func (e *engine) arrive(x event) {
	m, rails := x.m, max(e.Rails, 1)
	seconds := float64(x.size) * e.Wire
	if m.came == 0 {
		seconds += e.Gap
	}
	in := &e.nics[e.host(m.to)*rails+int(m.from)%e.perHost()%rails].in
	first, passed := in.take(e.now, seconds, float64(e.Burst)*e.Wire)
	if m.came == 0 {
		m.head = first
	}
	if m.came += x.size; m.came == m.size {
		m.tail = max(x.tail, passed)
		e.push(event{at: m.tail, kind: deliver, m: m})
	}
}

// rail returns the number of the link by which a rank sends.
func (e *engine) rail(rank int32) int {
	rails := max(e.Rails, 1)
	return e.host(rank)*rails + int(rank)%e.perHost()%rails
}

// lose schedules the failure: host's link is cut and a message was lost there.
func (e *engine) lose(host int) {
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
			r.resume(r.clock)
		}
	}
}

// stuck returns an error that names the waiting ranks and the ranks from which no message comes.
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
		if r.meets {
			who = append(who, fmt.Sprintf("rank %d waits for ranks of its host", r.me))
		} else if len(r.posted.waiting()) == 0 {
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

// events is a heap of four children to a node, with the first event at its root.
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
