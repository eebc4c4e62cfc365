package shmsync

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/mem"
)

// A Port connects a Team with the rest of its rank.
type Port interface {
	// Begun is called once in a collective, when the other members can see that this member has
	// begun.
	Begun()
	// TryProgress makes progress of the rank's other operations during a wait for a member,
	// without blocking. The result is why the communicator is broken, nil if unbroken.
	TryProgress(member int) error
	// Await sleeps until word, which a member stores, is at least want. It fails if word never
	// will be.
	Await(word *atomic.Uint64, want uint64, member int) error
	// Gone makes progress, as TryProgress does, and reports whether a member's process is lost.
	Gone(member int) bool
	// Looks returns the number of polls of a flag by a caller that may spin, before it yields.
	Looks() int
	// Wake wakes a sleeping member.
	Wake(member int)
	// Disagree breaks the communicator: ago collectives before this one a member's call was not
	// this rank's.
	Disagree(member, ago int, mine, theirs EncodedCall) error
	// DisagreeOn breaks the communicator: a member sends another block than this rank expects, as
	// their words of AgreeLengths say.
	DisagreeOn(member, mine, theirs int) error
	// Unreachable breaks the communicator: this rank could not read or write the memory that a
	// member has shared.
	Unreachable(member int, err error) error
}

// A Team is a member's view of the members of a communicator that share memory. A Team serves one
// collective at a time, and is not for concurrent use. The methods called for every step are
// small enough to be inlined.
type Team struct {
	port      Port
	me        int
	looks     int
	spinLooks int // looks of a caller that may spin
	gate      Gate
	parts     []Part
	claim     func() error // this member's large buffer

	step    uint64 // the last step of the last collective
	first   uint64 // the first step of the last collective
	digest  uint64
	call    *EncodedCall // the caller's, until the next Begin
	begun   bool         // the Port has been notified of the collective's beginning
	differs bool         // from another member's call
	free    uint64       // all members have read the steps up to this one
	acked   uint64       // this member has stored in consumed that it has read the steps up to this one
	toAck   uint64       // and, if this is more, can store the same for the steps up to this one
	small   ring
	l2      ring
	l3      ring // of no size where some member has no memory for its large buffer
	asked   bool // whether all have
	at      [depth]place
}

// New returns the Team of member me of a communicator. parts are the memory of all
// members. claim allocates this member's large buffer, of large bytes.
func New(me int, parts []Part, claim func() error, large int, gate Gate, port Port) Team {
	var turn uint64
	if len(parts) == 2 {
		turn = 1
	}
	return Team{
		port: port, me: me, parts: parts, gate: gate, spinLooks: port.Looks(), claim: claim,
		small: ring{at: smallAt, size: smallSize, turn: turn}, l2: ring{at: l2At, size: l2Size, turn: turn},
		l3: ring{size: uint64(large), turn: turn},
	}
}

// Me returns this member's number.
func (t *Team) Me() int { return t.me }

// Size returns the number of members.
func (t *Team) Size() int { return len(t.parts) }

// Begin begins a collective, which all members call. digest is of the communicator's id and all
// calls, including this call. quiet callers do not spin.
func (t *Team) Begin(c *EncodedCall, digest uint64, quiet bool) {
	t.call, t.digest, t.begun, t.first = c, digest, false, t.step+1
	t.looks = t.spinLooks
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

// Unreachable breaks the communicator: this member could not read or write the memory that another
// has shared.
func (t *Team) Unreachable(member int, err error) error { return t.port.Unreachable(member, err) }

// TryProgress makes progress of the rank's other operations, in the midst of long work for a
// member. It returns why the Team is broken, nil if unbroken.
func (t *Team) TryProgress(member int) error { return t.port.TryProgress(member) }

// Last returns the last step that has been taken.
func (t *Team) Last() uint64 { return t.step }

// Lay finds the place of step s with at most n bytes of payload, in the L3 buffer if large and n
// is long. exchange means that all members fill the step for all others. All members call Lay for
// every step that is filled, in order.
func (t *Team) Lay(s uint64, n int, large, exchange bool) {
	if t.LayInHead(s); n <= InHead {
		return
	}
	p := &t.at[s%depth]
	p.inHead = false
	switch {
	case n <= smallMost:
		t.small.lay(p, s, n, exchange)
	case large:
		p.large = true
		t.l3.lay(p, s, n, exchange)
	default:
		t.l2.lay(p, s, n, exchange)
	}
}

// LayInHead is Lay for a payload that fits into a head.
func (t *Team) LayInHead(s uint64) { t.at[s%depth] = place{inHead: true, after: s - min(s, depth)} }

// Ahead returns the number of steps of n bytes that a member fills before reading the first: half
// of the buffer, so that the lines that others read have left the writer's cache.
func (t *Team) Ahead(n int, large bool) uint64 {
	g := &t.l2
	if large {
		g = &t.l3
	}
	return max(min(g.size/2/uint64(max(n, lineSize)), depth/2), 1)
}

// Acquire waits until step s may be filled, and returns this member's head of the step. A signed
// head carries the call, as in a collective's first step.
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

// AwaitPlace returns when step s may be filled: no member reads the old content of its place any
// more. Acquire is AwaitPlace and Signed.
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

// sign copies the call word by word: loading a value as a whole that was stored in parts stalls
// the processor.
func (t *Team) sign(h *Head) {
	h.callDigest = t.digest
	h.call.A, h.call.B = t.call.A, t.call.B
}

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
		if t.parts[j].reused() { // consumed is another Team's, in whose buffers this member must not write
			return t.AwaitError(j)
		}
	}
	t.free = free
	return nil
}

// Room returns this member's payload of step s, n bytes to be filled. A short payload's lines are
// fetched for writing all at once: stores fetch fewer at a time (np=2 near on an Intel Xeon,
// without and with: allreduce of 256 B .60 and .44 us, of 1 KiB .73 and .65, of 2 KiB .93 and
// .85; bcast of 2 KiB back to back .49 and .36).
func (t *Team) Room(s uint64, n int) []byte {
	b := t.Payload(t.me, s, 0, n)
	if n > InHead && n <= fetched {
		mem.PrefetchToWrite(unsafe.Pointer(unsafe.SliceData(b)), n)
	}
	return b
}

// fetched is up to which length Room fetches.
const fetched = 8 << 10

// Payload returns n bytes from off on of a member's payload of step s.
func (t *Team) Payload(member int, s uint64, off, n int) []byte {
	p := &t.at[s%depth]
	at := unsafe.Pointer(&t.parts[member].flags.heads[s%depth].payload)
	switch m := member ^ p.exchanged; {
	case p.inHead:
	case p.large:
		at = unsafe.Add(t.parts[m].large, p.off)
	default:
		at = unsafe.Add(unsafe.Pointer(t.parts[m].flags), p.off)
	}
	return unsafe.Slice((*byte)(unsafe.Add(at, off)), n)
}

// Block returns the number of the block for a member in the payloads of step s, where each has a
// block for each member.
func (t *Team) Block(member int, s uint64) int { return member ^ t.at[s%depth].exchanged }

// store stores a flag, and wakes the members that sleep for this flag.
func (t *Team) store(word *atomic.Uint64, v uint64) {
	word.Store(v)
	for j := range t.parts {
		if t.parts[j].flags.waitingFor.Load() == uint64(t.me)+1 {
			t.port.Wake(j)
		}
	}
}

// Publish makes step s, whose head is filled, visible to the others. Meanwhile it prefetches the
// next head for writing, which others have read 64 steps ago: else the next stores would wait for
// that line (np=2 near, 8 B, back to back: barrier 90 ns without and 74 with, allreduce 152 and
// 131). The prefetch comes before the call is recorded: where lines travel far, it lasts longer
// than the recording (far, allreduce 361 with the prefetch after it and 350 before it).
// Prefetching the next place in the buffer gains nothing (1 KiB: bcast 204 without and 243 with).
func (t *Team) Publish(h *Head, s uint64) {
	t.store(&h.step, s)
	mem.PrefetchToWrite(unsafe.Pointer(t.head(t.me, s+1)), lineSize)
	t.notifyBegun()
}

// Filled is Publish for a step that was acquired a while ago.
func (t *Team) Filled(s uint64) { t.Publish(t.head(t.me, s), s) }

// notifyBegun notifies the Port, once, that the collective has begun: when the first step is
// published, since the others then need time to see the step.
func (t *Team) notifyBegun() {
	if !t.begun {
		t.begun = true
		t.port.Begun()
	}
}

// Consumed reports to the others that this member needs nothing more of the steps up to s.
func (t *Team) Consumed(s uint64) {
	t.acked = s
	t.store(&t.parts[t.me].flags.consumed, s)
}

// ConsumedSoon is Consumed for a step whose payload is in the heads: up to soon such steps are
// reported at once. Only writers of their heads, filled again depth steps later, wait for the
// report: by then this member, which reads all steps that are filled, has reported them.
func (t *Team) ConsumedSoon(s uint64) {
	if t.toAck = s; s-t.acked >= soon {
		t.Consumed(s)
	}
}

// AllConsumed notes that all members have read all steps before s, because all have begun s. In a
// collective of a single step in which every member reads all others no member stores consumed.
func (t *Team) AllConsumed(s uint64) { t.free = s - 1 }

// ResultReady reports to the others that this member has reduced its share of the steps up to s,
// or made its chunks. Repeated calls for the same step are allowed.
func (t *Team) ResultReady(s uint64) {
	if ready := &t.parts[t.me].flags.resultReady; ready.Load() < s {
		t.store(ready, s)
	}
}

// Cursors are the fields of a Team that a collective of a single step changes.
type Cursors struct{ Step, Free, Acked, ToAck uint64 }

// Cursors returns them, between two collectives.
func (t *Team) Cursors() Cursors { return Cursors{t.step, t.free, t.acked, t.toAck} }

// Advance sets the cursors as C has left them after some collectives, each of a single step. call
// is the last of these collectives.
func (t *Team) Advance(to Cursors, call *EncodedCall, digest uint64) {
	if to.Step != t.step {
		t.first, t.call, t.digest = to.Step, call, digest
	}
	t.step, t.free, t.acked, t.toAck = to.Step, to.Free, to.Acked, to.ToAck
}

// Gate returns the steps in which members wait for the barrier flag.
func (t *Team) Gate() Gate { return t.gate }

// Rings returns the rings of the small and the L2 bounce buffer, in which C lays steps, too.
func (t *Team) Rings() [2]unsafe.Pointer {
	return [2]unsafe.Pointer{unsafe.Pointer(&t.small), unsafe.Pointer(&t.l2)}
}

// Uses returns the uses of the other member's block, in a Team of two.
func (t *Team) Uses() uint64 {
	if len(t.parts) != 2 {
		return 0
	}
	return t.parts[1-t.me].uses
}

// Blocks returns the places of the members' blocks.
func (t *Team) Blocks() []unsafe.Pointer {
	blocks := make([]unsafe.Pointer, len(t.parts))
	for i, p := range t.parts {
		blocks[i] = unsafe.Pointer(p.flags)
	}
	return blocks
}
