// Package round is a collective in progress: all collectives of a communicator are rounds, one at a
// time. A round has a number, a call, which is compared with the other members' calls, and a
// context. It waits, and ends or breaks the communicator, in the same way whether its ranks
// exchange messages (messages.go, queue.go), or store flags in shared memory (flags.go), or both.
//
// # Calls
//
// Members make the same calls. Every frame of a round carries its number and its call. Frames that
// carry or offer payload also carry a digest of all calls so far, because frames of a call may be
// late, and ranks whose calls differ may exchange none. Waiting ranks send Call frames. In shared
// memory the first step of each round has call and digest. A difference breaks the communicator
// (mismatch.go). Before it closes, members compare their last calls (parting.go).
//
// # Locks
//
// The lock of the rank's messages guards a Round, except the fields of the call, which its caller
// alone changes. Where all collectives go through shared memory, they take no lock at all.
package round

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/coll"
	"gompi/internal/core/lease"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/peers"
	"gompi/internal/core/progress"
	"gompi/internal/core/record"
	"gompi/internal/core/shmsync"
	"gompi/internal/seg"
)

// A Round is the running collective of a Channel, or the last one. It implements coll.Peers.
type Round struct {
	ch       *message.Channel
	progress *progress.Engine // of the rank: has the lock
	byFlags  bool             // no collective sends messages
	team     *shmsync.Team    // nil without shared memory

	// The call.
	seq     uint64
	call    shmsync.EncodedCall
	digest  uint64 // of the communicator's id and all calls, including this one
	bytes   int
	ctx     context.Context
	quiet   bool
	running bool // not kept where byFlags is true
	err     error
	ticket  seg.Ticket                      // in the flight recorder
	past    [pastCalls]shmsync.EncodedCall  // by seq
	loan    atomic.Pointer[lease.TeamLease] // to C; nil before the first

	messages
	flag    flagWait
	parting parting
}

var (
	_ coll.Peers          = (*Round)(nil)
	_ message.Collectives = (*Round)(nil)
)

// New returns the Round of a new Channel, as Config.Collectives of package message.
func New(ch *message.Channel) message.Collectives {
	rd := &Round{ch: ch, progress: &ch.Engine.Progress, digest: ch.ID}
	rd.messages.wait.Init(ch.Flight(), rd)
	rd.flag.wait.Init(ch.Flight(), rd)
	return rd
}

// Of returns the Round of a Channel.
func Of(ch *message.Channel) *Round { return ch.Collectives().(*Round) }

// Begin begins the next round: f, of that many bytes. It compares f with the calls of this round
// that have arrived from other members. quiet rounds run in the background.
func (rd *Round) Begin(ctx context.Context, f *call.Fingerprint, bytes int, quiet bool) error {
	if !rd.byFlags {
		rd.progress.Lock()
	}
	if rd.ch.BrokenWord().Load() {
		if !rd.byFlags {
			rd.progress.Unlock()
		}
		return rd.ch.Err()
	}
	a, b := f.Words()
	c := shmsync.EncodedCall{A: a, B: b}
	rd.seq++
	rd.digest = c.Digest(rd.digest)
	rd.call = c
	rd.ctx, rd.bytes, rd.quiet, rd.ticket = ctx, bytes, quiet, 0
	rd.parting.closes = false
	if rd.team != nil {
		rd.team.Begin(&rd.call, rd.digest, quiet)
	}
	if rd.byFlags {
		return nil // Begun records the call
	}
	return rd.beginMessages()
}

// beginMessages is the rest of Begin where messages may be sent, and unlocks.
func (rd *Round) beginMessages() error {
	defer rd.progress.Unlock()
	rd.running, rd.err = true, nil
	rd.compareEarly()
	if err := rd.ch.Broken(); err != nil {
		return err
	}
	rd.record()
	return nil
}

// record writes the call to the flight recorder.
func (rd *Round) record() {
	rd.ticket = rd.ch.Flight().BeginCollective(rd.ch.ID, rd.call.A, rd.call.B, rd.bytes, rd.seq)
}

// End ends the round, whose algorithm has returned err: unless it is nil, the Channel breaks,
// because others count on this rank. The result is why the round has failed, perhaps another rank's
// reason. No operation is under way: the algorithm has waited for all, or they were withdrawn.
func (rd *Round) End(err error) error {
	if !rd.byFlags {
		err = rd.endMessages(err)
	}
	rd.ch.Flight().EndCall(rd.ticket)
	return err
}

func (rd *Round) endMessages(err error) error {
	rd.progress.Lock()
	defer rd.ch.Engine.ExitPolling()
	if err != nil {
		rd.abort("failed in", err)
	}
	rd.past[rd.seq%pastCalls] = rd.call
	rd.takeBackRequests()
	rd.running = false
	rd.takeBack(0)
	if rd.err == nil || err != nil && rd.brokeIt(rd.err) {
		return err
	}
	return rd.err
}

// brokeIt reports whether err states that this rank has broken the Channel.
func (rd *Round) brokeIt(err error) bool {
	var revoked *liveness.RevokedError
	return errors.As(err, &revoked) && revoked.Rank == rd.ch.Rank()
}

func (rd *Round) abort(what string, err error) {
	if rd.err == nil {
		rd.err = err
	}
	rd.breakUp(fmt.Sprintf("%s %v: %v", what, rd.fingerprint(), err))
}

// breakUp breaks the Channel because of this rank.
func (rd *Round) breakUp(cause string) {
	rd.ch.BreakUp(liveness.Reason{Rank: rd.ch.World(rd.ch.Rank()), Cause: cause})
}

// fingerprint returns the call.
func (rd *Round) fingerprint() call.Fingerprint { return call.OfWords(rd.call.A, rd.call.B) }

// Rank implements coll.Peers.
func (rd *Round) Rank() int { return rd.ch.Rank() }

// Size implements coll.Peers.
func (rd *Round) Size() int { return rd.ch.Size() }

// Describe implements record.Call.
func (rd *Round) Describe() (seg.Call, seg.Ticket, bool) {
	switch {
	case rd.ch.Flight() == nil:
		return seg.Call{}, 0, false
	case rd.parting.closes:
		return seg.Call{Kind: calls.Wait, Peer: -1}, 0, false
	}
	return seg.Call{Comm: rd.ch.ID}, rd.ticket, true
}

var _ record.Call = (*Round)(nil)

// Missing implements message.Collectives: other members may wait for messages that this rank will
// not send.
func (rd *Round) Missing(p *peers.Peer, err error) {
	f := rd.fingerprint()
	ch := rd.ch
	if !errors.Is(err, liveness.ErrLeft) {
		ch.BreakUp(liveness.Reason{Rank: p.Rank, Cause: "cannot be reached: " + err.Error()})
		return
	}
	ch.BreakSoon(func() bool { return ch.Died(p) != nil }, func() liveness.Reason {
		return liveness.Reason{Rank: p.Rank, Cause: hasLeft(p, ch.Died(p), f)}
	})
}

// Fail implements message.Collectives.
func (rd *Round) Fail(err error) {
	if !rd.byFlags {
		rd.failMessages(err)
	}
	if t := rd.loan.Load(); t != nil {
		t.Break()
	}
	if rd.flag.waits {
		rd.progress.MakeReady(&rd.flag.wait.Waiter)
	}
}

// Dismiss implements message.Collectives.
func (rd *Round) Dismiss(p *peers.Peer) {
	rd.dismissFlag(p)
	if !rd.byFlags {
		rd.dismissMessages(p)
	}
}

// Awaited implements message.Collectives.
func (rd *Round) Awaited(to []int) []int {
	for member, l := range rd.queues {
		if l.posted.Front() != nil || l.out.Front() != nil {
			to = append(to, member)
		}
	}
	if rd.flag.waits {
		to = append(to, rd.flag.src)
	}
	return to
}

// Unanswered implements message.Collectives.
func (rd *Round) Unanswered(yield func(int) bool) {
	for _, l := range rd.early {
		if !yield(l.src) {
			return
		}
	}
}

// Stalled implements record.Call: it sends a Call frame to the members that this round waits for,
// once per wait. A member that waits for a flag may itself be awaited with a message.
func (rd *Round) Stalled() {
	switch {
	case !rd.running:
	case rd.flag.waits:
		rd.sendCall(rd.queue(rd.flag.src))
	default:
		for _, l := range rd.queues {
			if l.waitsToSend() > 0 || l.posted.Front() != nil {
				rd.sendCall(l)
			}
		}
	}
}
