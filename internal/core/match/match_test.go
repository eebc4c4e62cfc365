package match

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// request and message are what an engine's types look like: they embed the
// node and are found again through Val.
type request struct {
	id   int
	node Recv[request]
}

type message struct {
	id   int
	node Message[message]
}

func newRequest(id, source, tag int) *request {
	r := &request{id: id}
	r.node = Recv[request]{Source: source, Tag: tag, Val: r}
	return r
}

func newMessage(id, source, tag int) *message {
	m := &message{id: id}
	m.node = Message[message]{Source: source, Tag: tag, Val: m}
	return m
}

// naive is the specification: two slices in order of age, searched from the
// front.
type naive struct {
	posted  []*request
	arrived []*message
}

func matches(r *Recv[request], m *Message[message]) bool {
	return (r.Source == AnySource || r.Source == m.Source) && (r.Tag == AnyTag || r.Tag == m.Tag)
}

func (n *naive) post(r *request) *message {
	i := slices.IndexFunc(n.arrived, func(m *message) bool { return matches(&r.node, &m.node) })
	if i < 0 {
		n.posted = append(n.posted, r)
		return nil
	}
	m := n.arrived[i]
	n.arrived = slices.Delete(n.arrived, i, i+1)
	return m
}

func (n *naive) arrive(m *message) *request {
	i := slices.IndexFunc(n.posted, func(r *request) bool { return matches(&r.node, &m.node) })
	if i < 0 {
		n.arrived = append(n.arrived, m)
		return nil
	}
	r := n.posted[i]
	n.posted = slices.Delete(n.posted, i, i+1)
	return r
}

func (n *naive) find(source, tag int) *message {
	probe := Recv[request]{Source: source, Tag: tag}
	for _, m := range n.arrived {
		if matches(&probe, &m.node) {
			return m
		}
	}
	return nil
}

func (n *naive) dropSource(source int) (gone []*request) {
	n.posted = slices.DeleteFunc(n.posted, func(r *request) bool {
		if r.node.Source != source {
			return false
		}
		gone = append(gone, r)
		return true
	})
	return gone
}

func remove[T comparable](s []T, x T) ([]T, bool) {
	if i := slices.Index(s, x); i >= 0 {
		return slices.Delete(s, i, i+1), true
	}
	return s, false
}

// pair runs every operation on the queues and on the model and compares.
type pair struct {
	t     *testing.T
	tags  int // as many differ, besides AnyTag
	q     Queues[request, message]
	n     naive
	reqs  []*request // all that ever were, matched ones too
	msgs  []*message
	steps int
}

func val[T, N any](node *N, of func(*N) *T) *T {
	if node == nil {
		return nil
	}
	return of(node)
}

func reqVal(r *Recv[request]) *request    { return r.Val }
func msgVal(m *Message[message]) *message { return m.Val }

// step decodes one operation from three bytes: what, who, which tag.
func (p *pair) step(what, who, tag byte) {
	p.steps++
	source, tg := int(who%20)*5-1, int(tag)%(p.tags+1)-1 // AnySource and AnyTag are among them
	switch what % 8 {
	case 0, 1:
		r := newRequest(p.steps, source, tg)
		p.reqs = append(p.reqs, r)
		if got, want := val(p.q.Post(&r.node), msgVal), p.n.post(r); got != want {
			p.t.Fatalf("step %d: Post(source %d, tag %d) = %v, want %v", p.steps, source, tg, got, want)
		}
	case 2, 3, 4:
		m := newMessage(p.steps, max(source, 0), max(tg, 0))
		p.msgs = append(p.msgs, m)
		if got, want := val(p.q.Arrive(&m.node), reqVal), p.n.arrive(m); got != want {
			p.t.Fatalf("step %d: Arrive(%d, %d) = %v, want %v", p.steps, m.node.Source, m.node.Tag, got, want)
		}
	case 5:
		got, want := val(p.q.Find(source, tg), msgVal), p.n.find(source, tg)
		if got != want {
			p.t.Fatalf("step %d: Find(%d, %d) = %v, want %v", p.steps, source, tg, got, want)
		}
		if took := val(p.q.Take(source, tg), msgVal); took != want {
			p.t.Fatalf("step %d: Take(%d, %d) = %v, want %v", p.steps, source, tg, took, want)
		}
		p.n.arrived, _ = remove(p.n.arrived, want)
	case 6:
		p.removeAny(int(who)<<8 | int(tag))
	case 7:
		if what < 200 || source < 0 { // rarely, or the queues never grow
			return
		}
		var got []*request
		p.q.DropSource(source, func(r *Recv[request]) { got = append(got, r.Val) })
		if want := p.n.dropSource(source); !slices.Equal(got, want) {
			p.t.Fatalf("step %d: DropSource(%d) = %v, want %v", p.steps, source, got, want)
		}
	}
}

// removeAny cancels a request and removes a message, queued or not.
func (p *pair) removeAny(which int) {
	if len(p.reqs) > 0 {
		r := p.reqs[which%len(p.reqs)]
		var want bool
		p.n.posted, want = remove(p.n.posted, r)
		if got := p.q.Cancel(&r.node); got != want {
			p.t.Fatalf("step %d: Cancel(request %d) = %v, want %v", p.steps, r.id, got, want)
		}
	}
	if len(p.msgs) > 0 {
		m := p.msgs[which%len(p.msgs)]
		var want bool
		p.n.arrived, want = remove(p.n.arrived, m)
		if got := p.q.Remove(&m.node); got != want {
			p.t.Fatalf("step %d: Remove(message %d) = %v, want %v", p.steps, m.id, got, want)
		}
	}
}

// compare checks that the same receives and messages are queued.
func (p *pair) compare() {
	var arrived []*message
	for m := range p.q.Arrived() {
		arrived = append(arrived, m.Val)
	}
	if !slices.Equal(arrived, p.n.arrived) {
		p.t.Fatalf("after %d steps %d messages are queued, want %d", p.steps, len(arrived), len(p.n.arrived))
	}
	var posted []*request
	for r := range p.q.Posted() {
		posted = append(posted, r.Val)
	}
	bySource := func(rs []*request) map[int][]*request {
		groups := map[int][]*request{}
		for _, r := range rs {
			groups[r.node.Source] = append(groups[r.node.Source], r)
		}
		return groups
	}
	if !maps.EqualFunc(bySource(posted), bySource(p.n.posted), slices.Equal[[]*request]) {
		p.t.Fatalf("after %d steps %d receives are queued, want %d, in order of age within each source", p.steps,
			len(posted), len(p.n.posted))
	}
}

func TestQueuesAgreeWithSearchInOrderOfAge(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := pair{t: t, tags: 4}
		sources := byte(1 + rng.IntN(20))
		for range 2000 {
			p.step(byte(rng.IntN(256)), byte(rng.IntN(256))%sources, byte(rng.IntN(256)))
		}
		p.compare()
	}
}

// So they do where many tags make the queues long, which come and go.
func TestLongQueuesAgreeWithSearchInOrderOfAge(t *testing.T) {
	made := map[string]int{}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := pair{t: t, tags: 200}
		sources := byte(1 + rng.IntN(3))
		for phase := range 12 {
			what := byte(rng.IntN(2)) // posts, or messages
			for range 300 {
				op := byte(rng.IntN(256))
				if op%8 < 5 && phase%3 < 2 {
					op = 2 * what
				}
				recvs, messages, tags := p.q.recvs.active, p.q.messages.active, p.q.tags.active
				p.step(op, byte(rng.IntN(256))%sources, byte(rng.IntN(256)))
				for name, is := range map[string][2]bool{
					"receives": {recvs, p.q.recvs.active}, "messages": {messages, p.q.messages.active},
					"tags": {tags, p.q.tags.active},
				} {
					if is[0] != is[1] {
						made[name]++
					}
				}
			}
		}
		p.compare()
	}
	for _, name := range []string{"receives", "messages", "tags"} {
		if made[name] < 20 {
			t.Errorf("the index of %s was made and given up %d times, want 20 and more", name, made[name])
		}
	}
}

func FuzzQueues(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 1, 1, 0, 1, 2, 3, 1, 2, 5, 0, 0, 6, 0, 1, 255, 1, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := pair{t: t, tags: 4}
		for ; len(ops) >= 3; ops = ops[3:] {
			p.step(ops[0], ops[1], ops[2])
		}
		p.compare()
	})
}

func TestOlderOfSpecificAndWildcardReceiveWins(t *testing.T) {
	for _, wildFirst := range []bool{true, false} {
		var q Queues[request, message]
		wild, exact := newRequest(1, AnySource, AnyTag), newRequest(2, 3, 7)
		first, second := exact, wild
		if wildFirst {
			first, second = wild, exact
		}
		q.Post(&first.node)
		q.Post(&second.node)
		for i, want := range []*request{first, second} {
			m := newMessage(i, 3, 7)
			if got := val(q.Arrive(&m.node), reqVal); got != want {
				t.Errorf("wildcard first %v: message %d went to %v, want %v", wildFirst, i, got, want)
			}
		}
	}
}

func TestPostedMayBeDrainedWhileIterating(t *testing.T) {
	var q Queues[request, message]
	for i := range 40 {
		q.Post(&newRequest(i, i%20-1, i).node)
	}
	n := 0
	for r := range q.Posted() {
		if !q.Cancel(r) {
			t.Fatalf("receive %d is not queued", r.Val.id)
		}
		n++
	}
	for r := range q.Posted() {
		t.Errorf("receive %d is still queued", r.Val.id)
	}
	if n != 40 {
		t.Errorf("Posted returned %d receives, want 40", n)
	}
	for range q.Arrived() {
		t.Error("a message is queued, want none")
	}
}

func TestQueueingDoesNotAllocate(t *testing.T) {
	var q Queues[request, message]
	r, m := newRequest(1, 5, 1), newMessage(1, 5, 1)
	wild, other := newRequest(2, AnySource, AnyTag), newMessage(2, 900, 3)
	cycle := func() {
		q.Post(&r.node)
		q.Arrive(&m.node)
		q.Arrive(&other.node)
		q.Find(AnySource, 3)
		q.Post(&wild.node)
	}
	cycle() // makes the heads of the two sources
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("matching allocates %v times, want 0", n)
	}
}

// Nor does a queue that is long again and again.
func TestLongQueuesDoNotAllocate(t *testing.T) {
	const depth = 2 * walkMost
	var q Queues[request, message]
	var reqs []*request
	var msgs []*message
	for i := range depth {
		reqs, msgs = append(reqs, newRequest(i, 1, i)), append(msgs, newMessage(i, 1, i))
	}
	cycle := func() {
		for _, m := range msgs {
			q.Arrive(&m.node)
		}
		for _, r := range slices.Backward(reqs) {
			q.Post(&r.node)
		}
		for _, r := range reqs {
			q.Post(&r.node)
		}
		for _, m := range slices.Backward(msgs) {
			q.Arrive(&m.node)
		}
	}
	cycle()
	if n := testing.AllocsPerRun(100, cycle); n != 0 || !q.Empty() {
		t.Errorf("matching allocates %v times, want 0; empty: %v", n, q.Empty())
	}
}

func BenchmarkPostThenArrive(b *testing.B) {
	var q Queues[request, message]
	r, m := newRequest(1, 1, 1), newMessage(1, 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		q.Post(&r.node)
		q.Arrive(&m.node)
	}
}

// benchmarkDepth receives messages of as many tags of one source in reverse, unexpected or posted.
// A round of it is one operation.
func benchmarkDepth(b *testing.B, depth int, reverse, posted bool) {
	var q Queues[request, message]
	reqs, msgs := make([]*request, depth), make([]*message, depth)
	for i := range depth {
		reqs[i], msgs[i] = newRequest(i, 1, i), newMessage(i, 1, i)
	}
	at := func(i int) int {
		if reverse {
			return depth - 1 - i
		}
		return i
	}
	for b.Loop() {
		for i := range depth {
			if posted {
				q.Post(&reqs[i].node)
			} else {
				q.Arrive(&msgs[i].node)
			}
		}
		for i := range depth {
			if posted {
				q.Arrive(&msgs[at(i)].node)
			} else {
				q.Post(&reqs[at(i)].node)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(depth), "ns/message")
}

func BenchmarkDepth(b *testing.B) {
	for _, depth := range []int{1, 4, 16, 32, 64, 128, 256, 1024, 16384} {
		for _, reverse := range []bool{false, true} {
			for _, posted := range []bool{false, true} {
				b.Run(fmt.Sprintf("%d/reverse=%v/posted=%v", depth, reverse, posted), func(b *testing.B) {
					benchmarkDepth(b, depth, reverse, posted)
				})
			}
		}
	}
}
