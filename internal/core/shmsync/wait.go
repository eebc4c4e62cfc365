package shmsync

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/mem"
)

// How a member waits for others, and compares calls.

// A waiting member calls TryProgress every progressInterval polls; a call costs about 1024 polls.
const progressInterval = 1024

// await returns when a flag of another member is at least want.
func (t *Team) await(word *atomic.Uint64, want uint64, member int) error {
	for i := 1; i <= t.looks; i++ {
		if word.Load() >= want {
			return nil
		}
		if i%progressInterval == 0 {
			if err := t.port.TryProgress(member); err != nil {
				return err
			}
		}
	}
	t.notifyBegun()
	t.spinLooks = t.port.Looks() // the number of useful looks may have changed
	waits := &t.parts[t.me].flags.waitingFor
	waits.Store(uint64(member) + 1)
	defer waits.Store(0)
	return t.port.Await(word, want, member)
}

// AwaitStep returns when another member has filled step s.
func (t *Team) AwaitStep(member int, s uint64) error {
	return t.await(&t.head(member, s).step, s, member)
}

// AwaitResult returns when another member's result of step s is ready.
func (t *Team) AwaitResult(member int, s uint64) error {
	return t.await(&t.parts[member].flags.resultReady, s, member)
}

// AwaitCall returns when another member has filled the collective's first step, and compares its
// call.
func (t *Team) AwaitCall(member int, first uint64) error {
	h := t.head(member, first)
	if err := t.await(&h.step, first, member); err != nil {
		return err
	}
	if h.step.Load() != first || h.callDigest != t.digest {
		return t.differ(member, first)
	}
	return nil
}

// AwaitCallAhead is AwaitCall of a member that may fill further steps before this member reads this
// one. If the step is filled, the next one may be, too: its head is fetched meanwhile.
func (t *Team) AwaitCallAhead(member int, first uint64) error {
	if t.head(member, first).step.Load() >= first {
		mem.Prefetch(unsafe.Pointer(t.head(member, first+1)), lineSize)
	}
	return t.AwaitCall(member, first)
}

// differ finds the first call in which a member differs, among calls whose heads still exist: a
// rank that waited for no other member may have ended the collective in which they differ. If the
// member failed while the Team was made, the member's reason is returned.
func (t *Team) differ(member int, first uint64) error {
	if t.parts[member].reused() || t.head(member, first).step.Load() == retracted {
		return t.AwaitError(member)
	}
	t.differs = true
	for s := first - min(first-1, depth-1); s < first; s++ {
		mine, theirs := t.head(t.me, s), t.head(member, s)
		if mine.step.Load() == s && theirs.step.Load() == s && mine.call.A != 0 && theirs.call.A != 0 &&
			mine.call != theirs.call {
			return t.port.Disagree(member, t.since(s, first), mine.call, theirs.call)
		}
	}
	return t.port.Disagree(member, 0, *t.call, t.head(member, first).call)
}

// since returns the number of collectives that this member has begun after the collective of step
// s, up to the collective whose first step is first. A collective may sign several heads, all with
// the same call.
func (t *Team) since(s, first uint64) (n int) {
	digest := t.head(t.me, s).callDigest
	for s++; s < first; s++ {
		if h := t.head(t.me, s); h.step.Load() == s && h.call.A != 0 && h.callDigest != digest {
			digest = h.callDigest
			n++
		}
	}
	if digest != t.digest {
		n++
	}
	return n
}

// Compared reports whether Compare has nothing left to compare.
func (t *Team) Compared() bool { return t.step != t.first || t.step == 0 }

// Compare compares this member's last call with the calls of members of which it has read nothing
// in that call: in a short Bcast the root reads no head. Compare waits for members that have not
// made a call yet, as long as the Port does.
func (t *Team) Compare() error {
	if t.Compared() {
		return nil
	}
	for j := range t.parts {
		if j == t.me {
			continue
		}
		h := t.head(j, t.first)
		if err := t.await(&h.step, t.first, j); err != nil {
			return err
		}
		switch s := h.step.Load(); {
		case s == retracted:
			return t.AwaitError(j)
		case s == t.first && h.callDigest != t.digest:
			return t.differ(j, t.first)
		}
	}
	return nil
}

// A Gate is the steps in which members wait for a single flag of member 0, which has waited for
// all. Behind a gated barrier member 0, often the root of the next collective, goes on first. Steps
// that Assemble are gated, too, if so many members share a processor that each would poll most
// others in vain.
type Gate struct{ Barriers, Steps bool }

// Assemble waits until all members have filled step s, if all steps are gated. first means that s
// is a collective's first step, in which calls are compared.
func (t *Team) Assemble(s uint64, first bool) error {
	if !t.gate.Steps {
		return nil
	}
	return t.pass(s, first)
}

// pass passes the gate of step s. If calls are compared, a member compares its own with member 0's
// before it waits for the flag: member 0 may be in another call, which waits for nobody.
func (t *Team) pass(s uint64, first bool) error {
	flag := &t.parts[0].flags.barrierFlag
	if t.me != 0 {
		if first {
			if err := t.AwaitCall(0, s); err != nil {
				return err
			}
		}
		return t.await(flag, s, 0)
	}
	for j := 1; j < len(t.parts); j++ {
		if err := t.AwaitStep(j, s); err != nil {
			return err
		}
	}
	t.store(flag, s)
	return nil
}

// AwaitCalls waits until all members have made this member's call, whose first step is filled.
func (t *Team) AwaitCalls(first uint64) error {
	if err := t.Assemble(first, true); err != nil {
		return err
	}
	for j := range t.parts {
		if j == t.me {
			continue
		}
		if err := t.AwaitCall(j, first); err != nil {
			return err
		}
	}
	return nil
}

// retracted is no step.
const retracted = 0

// Retract takes back the first step of this member's collective, which has failed. Otherwise a late
// member would find all its data in the step, and end without an error. After Retract it waits in
// AwaitCall for a step that does not come, and so learns of the failure. If the late member has
// read the step just before, its call still ends without an error. A call that differs from
// another's stays, for all to compare with theirs.
func (t *Team) Retract() {
	if step := &t.head(t.me, t.first).step; step.Load() == t.first && !t.differs {
		step.Store(retracted)
	}
}

// Barrier is a step that returns when every member has begun this step.
func (t *Team) Barrier() error {
	s := t.Next(1)
	t.LayInHead(s)
	if err := t.AwaitPlace(s); err != nil {
		return err
	}
	t.Publish(t.Signed(s), s)
	if t.gate.Barriers && !t.gate.Steps {
		if err := t.pass(s, true); err != nil {
			return err
		}
	}
	if err := t.AwaitCalls(s); err != nil {
		return err
	}
	t.AllConsumed(s)
	return nil
}
