package round

import (
	"errors"
	"fmt"
	"sync/atomic"

	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/peers"
	"gompi/internal/core/record"
	"gompi/internal/core/shmsync"
	"gompi/transport"
)

// Waits of a round through shared memory: for a flag, a word that another member stores.

// A flagWait is the wait of a round for a flag.
type flagWait struct {
	wait  record.Wait
	waits bool // the following are valid
	word  *atomic.Uint64
	want  uint64
	src   int
}

// A Port connects a shmsync.Team of ranks that share memory with the Round of their communicator.
type Port struct {
	Round *Round
	Ranks []int            // in the communicator, by member
	Waker func(member int) // wakes a sleeping member
}

var _ shmsync.Port = (*Port)(nil)

// SetTeam makes t, which has p as its Port, take part in all rounds. If whole is true no round
// sends messages from now on.
func (p *Port) SetTeam(t *shmsync.Team, whole bool) {
	p.Round.progress.Lock()
	defer p.Round.progress.Unlock()
	p.Round.team, p.Round.byFlags = t, whole
}

// How often a rank polls a flag before yielding: for some microseconds, or just twice where ranks
// outnumber processors.
const (
	spinLooks           = 8000
	oversubscribedLooks = 2
)

// Looks implements shmsync.Port.
func (p *Port) Looks() int {
	if p.Round.progress.Spins() {
		return spinLooks
	}
	return oversubscribedLooks
}

// Begun implements shmsync.Port: it records the call, unless recorded. The other ranks already have
// this rank's data, so the recording delays none of them.
func (p *Port) Begun() {
	if p.Round.byFlags {
		p.Round.record()
	}
}

// Wake implements shmsync.Port.
func (p *Port) Wake(member int) { p.Waker(member) }

// TryProgress implements shmsync.Port.
func (p *Port) TryProgress(member int) error {
	ch := p.Round.ch
	return ch.TryProgress(ch.World(p.Ranks[member]))
}

// Gone implements shmsync.Port.
func (p *Port) Gone(member int) bool {
	ch := p.Round.ch
	p.Round.progress.Lock()
	defer p.Round.progress.Exit()
	return ch.ProcessLost(p.Ranks[member])
}

// Await implements shmsync.Port.
func (p *Port) Await(word *atomic.Uint64, want uint64, member int) error {
	return p.Round.awaitFlag(word, want, p.Ranks[member])
}

// Disagree implements shmsync.Port. If messages are sent, too, ranks may differ in a call unknown
// to shared memory: this rank sends its calls, and waits until the other finds the difference.
func (p *Port) Disagree(member, ago int, mine, theirs shmsync.EncodedCall) error {
	rd, src := p.Round, p.Ranks[member]
	if rd.byFlags {
		return rd.breakWith(rd.reason(&liveness.MismatchError{
			Seq: rd.seq - uint64(ago), Rank: rd.ch.Rank(), Peer: src,
			Call: call.OfWords(mine.A, mine.B), PeerCall: call.OfWords(theirs.A, theirs.B),
		}))
	}
	rd.progress.Lock()
	rd.recall(src)
	rd.progress.Unlock()
	return rd.awaitError(src)
}

// DisagreeOn implements shmsync.Port.
func (p *Port) DisagreeOn(member, mine, theirs int) error {
	return p.Round.DisagreeOn(p.Ranks[member], mine, theirs)
}

// Unreachable implements shmsync.Port. If the process has ended, the reason is the launcher's
// report of its end.
func (p *Port) Unreachable(member int, err error) error {
	rd, src := p.Round, p.Ranks[member]
	if errors.Is(err, transport.ErrGone) {
		return rd.awaitError(src)
	}
	cause := fmt.Sprintf("could not reach the memory of rank %d in %v: %v", src, rd.fingerprint(), err)
	return rd.breakWith(liveness.Reason{Rank: rd.ch.World(rd.ch.Rank()), Cause: cause})
}

// awaitError waits for a member until the Channel breaks.
func (rd *Round) awaitError(src int) error {
	var never atomic.Uint64
	return rd.awaitFlag(&never, 1, src)
}

// awaitFlag returns when word, which member src stores, is at least want. If the round's context
// ends earlier, the communicator breaks: the other members wait for this rank. When the Channel
// is about to close, neither the context nor a member that has left breaks the communicator.
func (rd *Round) awaitFlag(word *atomic.Uint64, want uint64, src int) error {
	ch := rd.ch
	rd.progress.Lock()
	defer ch.Engine.ExitPolling()
	err := rd.awaitMember(word, want, src)
	if err != nil && word.Load() < want && !rd.parting.closes {
		rd.breakUp(fmt.Sprintf("gave up in %v: %v", rd.fingerprint(), err))
		return err
	}
	return ch.Broken()
}

// awaitMember waits for a word that member src stores, or that the handler of src's frame stores,
// until the round's context or the Channel ends. When the Channel is about to close, and the member
// has left, awaitMember waits for the reports of the member and the launcher.
func (rd *Round) awaitMember(word *atomic.Uint64, want uint64, src int) error {
	ch, v := rd.ch, &rd.flag
	if ch.Broken() != nil {
		return nil
	}
	v.wait.Reset()
	v.wait.Background, v.wait.Hint = rd.quiet, ch.World(src)
	v.waits, v.word, v.want, v.src = true, word, want, src
	if ch.Gone(src) != nil || rd.parting.closes && ch.HasLeft(src) {
		rd.dismissFlag(ch.Peer(src))
	}
	err := rd.progress.AwaitFlag(rd.ctx, &v.wait.Waiter, word, want)
	open := func() bool { return rd.parting.closes && !v.isSet() && ch.Broken() == nil }
	if open() && ch.HasLeft(src) {
		// the host segment may report its end before its last frames are read
		if rd.progress.Drain(); open() && rd.ctx.Err() == nil {
			ch.AwaitReason(rd.quiet)
		}
	}
	v.waits = false
	return err
}

func (v *flagWait) isSet() bool { return v.word.Load() >= v.want }

// dismissFlag ends the wait for a member that has left. If it has set its flag, the round looks at
// the flag once more: a member whose collective fails after leaving takes its step back.
func (rd *Round) dismissFlag(p *peers.Peer) {
	switch v := &rd.flag; {
	case !v.waits || rd.ch.World(v.src) != p.Rank:
	case v.isSet() || rd.parting.closes:
		rd.progress.MakeReady(&v.wait.Waiter)
	default:
		rd.Missing(p, errLeft)
	}
}
