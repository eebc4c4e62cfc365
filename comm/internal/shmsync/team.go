package shmsync

import (
	"sync/atomic"
	"unsafe"
)

// A Port is what a Team needs of the rank that it works for.
type Port interface {
	// Begun tells, once in a collective, that the others can see that this member has
	// begun it.
	Begun()
	// Glance lets other things of the rank go on, without waiting, while it waits
	// for a member, and returns why the communicator is broken, nil while it works.
	Glance(member int) error
	// Await returns when word, which that member stores, is at least want, or
	// why that will not be.
	Await(word *atomic.Uint64, want uint64, member int) error
	// Looks returns how often a caller that may spin looks at a word before it lets go
	// of the processor.
	Looks() int
	// Wake wakes a member, should it sleep.
	Wake(member int)
	// Disagree breaks the communicator: that member's call is not the one made here,
	// so many collectives ago.
	Disagree(member, ago int, mine, theirs Call) error
	// DisagreeOn breaks the communicator: that member sends so many bytes where
	// this one expects so many.
	DisagreeOn(member, mine, theirs int) error
}

// A Team is the members of a communicator that share memory, as one of them sees them. Its methods
// do collectives one at a time, and are not for concurrent use. What is called for every step is
// small enough to be inlined.
type Team struct {
	port    Port
	me      int
	looks   int
	patient int // looks of a caller that may spin
	gated   bool
	parts   []Part
	claim   func() error // this member's large buffer

	step   uint64 // the last one of the last collective
	first  uint64 // the first one of it
	digest uint64 // of all calls
	call   Call
	told   bool   // the rank knows that it has begun
	free   uint64 // all members have read the steps up to this one
	small  ring
	l2     ring
	l3     ring // of no size where some member has no memory for it
	asked  bool // whether all have
	at     [depth]place
}

// New returns the Team of member me of those with the given parts. claim makes sure that its large
// buffer exists, of so many bytes. gated members wait for one who waits for all (see Assemble).
func New(me int, parts []Part, claim func() error, large int, gated bool, port Port) Team {
	return Team{
		port: port, me: me, parts: parts, gated: gated, patient: port.Looks(), claim: claim,
		small: ring{at: smallAt, size: smallSize}, l2: ring{at: l2At, size: l2Size}, l3: ring{size: uint64(large)},
	}
}

// Me returns which member this is.
func (t *Team) Me() int { return t.me }

// Size returns how many members there are.
func (t *Team) Size() int { return len(t.parts) }

// Begin begins a collective: every member calls the same. quiet is for callers
// that must not spin.
func (t *Team) Begin(c Call, quiet bool) {
	const odd = 0x9e3779b97f4a7c15
	t.call, t.told, t.first = c, false, t.step+1
	t.digest = ((t.digest^c.A)*odd ^ c.B) * odd
	t.looks = t.patient
	if quiet {
		t.looks = 1
	}
}

// Next takes the next n steps for this collective, and returns the first of them.
func (t *Team) Next(n int) uint64 {
	first := t.step + 1
	t.step += uint64(n)
	return first
}

// Last returns the last step that has been taken.
func (t *Team) Last() uint64 { return t.step }

// Lay finds the place of step s with n bytes of payload at most, in the L3 buffer if large and they
// are long. All members do so for every step that is filled, in order.
func (t *Team) Lay(s uint64, n int, large bool) {
	if t.LayInHead(s); n <= InHead {
		return
	}
	p := &t.at[s%depth]
	p.inHead = false
	switch {
	case n <= smallMost:
		t.small.lay(p, s, n)
	case large:
		p.large = true
		t.l3.lay(p, s, n)
	default:
		t.l2.lay(p, s, n)
	}
}

// LayInHead is Lay for a payload that fits into a head.
func (t *Team) LayInHead(s uint64) { t.LayElsewhere(s, depth) }

// LayElsewhere is Lay for a payload that lies in memory of the caller's, where that of the step
// that was so many before lay.
func (t *Team) LayElsewhere(s uint64, slots uint64) {
	t.at[s%depth] = place{inHead: true, after: s - min(s, slots)}
}

// Ahead returns how many steps of n bytes a member fills before it reads the first: half of the
// buffer, so that what others read has left its cache.
func (t *Team) Ahead(n int, large bool) uint64 {
	g := &t.l2
	if large {
		g = &t.l3
	}
	return max(min(g.size/2/uint64(max(n, lineSize)), depth/2), 1)
}

// Acquire returns this member's head of step s when no member reads any more what its place held.
// The head carries the call if signed, which that of a collective's first step does.
func (t *Team) Acquire(s uint64, signed bool) (*Head, error) {
	if err := t.AwaitPlace(s); err != nil {
		return nil, err
	}
	h := t.head(t.me, s)
	if h.call.A = 0; signed {
		t.sign(h)
	}
	return h, nil
}

// AwaitPlace returns when step s may be filled. It is a part of Acquire, as Signed is, for who can
// do without the call.
func (t *Team) AwaitPlace(s uint64) error {
	if t.at[s%depth].after > t.free {
		return t.awaitReaders(s)
	}
	return nil
}

// Signed returns this member's head of step s with the call.
func (t *Team) Signed(s uint64) *Head {
	h := t.head(t.me, s)
	t.sign(h)
	return h
}

func (t *Team) sign(h *Head) { h.callDigest, h.call = t.digest, t.call }

func (t *Team) head(member int, s uint64) *Head { return &t.parts[member].flags.heads[s%depth] }

// awaitReaders is AwaitPlace where members may still have to read.
func (t *Team) awaitReaders(s uint64) error {
	free, after := s, t.at[s%depth].after
	for j := range t.parts {
		if j == t.me {
			continue
		}
		consumed := &t.parts[j].flags.consumed
		if err := t.await(consumed, after, j); err != nil {
			return err
		}
		free = min(free, consumed.Load())
	}
	t.free = free
	return nil
}

// Payload returns n bytes from off on of a member's payload of step s.
func (t *Team) Payload(member int, s uint64, off, n int) []byte {
	p, m := &t.at[s%depth], &t.parts[member]
	at := unsafe.Pointer(&m.flags.heads[s%depth].payload)
	switch {
	case p.inHead:
	case p.large:
		at = unsafe.Add(m.large, p.off)
	default:
		at = unsafe.Add(unsafe.Pointer(m.flags), p.off)
	}
	return unsafe.Slice((*byte)(unsafe.Add(at, off)), n)
}

// store stores a word that others wait for, and wakes those who sleep for it.
func (t *Team) store(word *atomic.Uint64, v uint64) {
	word.Store(v)
	for j := range t.parts {
		if t.parts[j].flags.waits.Load() == uint64(t.me)+1 {
			t.port.Wake(j)
		}
	}
}

// Publish makes step s, whose head is filled, visible to the others. Until they see it the own
// next head is taken back from those who read it 64 steps ago, lest its stores wait for
// that (np=2 near, 8 B, back to back: barrier 90 ns, so 74; allreduce 152 and 131). The
// next place in the buffer as well: nothing gained (1 KiB: bcast 204 and 243).
func (t *Team) Publish(h *Head, s uint64) {
	t.store(&h.step, s)
	t.begun()
	prefetchToWrite(unsafe.Pointer(t.head(t.me, s+1)), lineSize)
}

// Filled is Publish for a step that was acquired a while ago.
func (t *Team) Filled(s uint64) { t.Publish(t.head(t.me, s), s) }

// begun tells the rank, once, that the collective has begun. It is done when the first
// step is published, since the others need time to see that.
func (t *Team) begun() {
	if !t.told {
		t.told = true
		t.port.Begun()
	}
}

// Consumed tells that this member wants nothing of the steps up to s any more.
func (t *Team) Consumed(s uint64) { t.store(&t.parts[t.me].flags.consumed, s) }

// AllConsumed notes that all members have read what was before step s, as those have that have begun
// it: in a collective of one step in which all read all none tells so.
func (t *Team) AllConsumed(s uint64) { t.free = s - 1 }

// ResultReady tells that this member has reduced its share of the steps up to s. It may say so
// again.
func (t *Team) ResultReady(s uint64) {
	if ready := &t.parts[t.me].flags.resultReady; ready.Load() < s {
		t.store(ready, s)
	}
}
