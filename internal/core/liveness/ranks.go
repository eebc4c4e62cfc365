// Package liveness knows which ranks are dead, have left, or are suspects, and whether the job
// ends. Of each communicator it knows the members, which of them have closed the communicator,
// and why it is broken. Transports, peers and the launcher report to this package. It decides
// which reason counts, notifies the peers, and ends the operations that wait in vain.
//
// The launcher's reason counts more than a transport's. So every rank reports the true reason. No
// rank ends because of a death of which the launcher does not know: the launcher would report that
// rank as the first failure. The consequences of this rank's own observations may therefore have to
// wait for news: as a question, which is decided when answered, or when the time for an answer is
// over. No goroutine waits for news with the lock held.
package liveness

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core/peers"
	"gompi/internal/core/progress"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// Messages are the rank's messages. All methods are called with the lock held.
type Messages interface {
	// Forget drops the frames kept for a communicator that is revoked and does not exist here.
	Forget(comm uint64)
	// Ended reports that a rank that is lost writes to no memory any more.
	Ended(rank world.Rank)
}

// Config describes the rank that the Ranks belong to.
type Config struct {
	Rank     world.Rank
	Size     int
	Host     func(rank world.Rank) string // name of a rank's host, for errors
	Boot     boot.Boot                    // nil without a launcher
	Peers    *peers.Table
	Messages Messages
	Progress *progress.Engine           // its lock guards the Ranks
	Left     func(rank world.Rank) bool // reports whether a rank is known to have left; may be nil
	Log      *slog.Logger
}

// Ranks are the ranks of the job, as seen by one of them. Methods are called with the lock held
// unless their comments state otherwise.
type Ranks struct {
	cfg       Config
	flight    *seg.Recorder // nil without a host segment
	comms     map[uint64]*Comm
	past      past                 // communicators closed here, or revoked before they were created here
	next      uint32               // counter of the next context id made here
	fates     map[world.Rank]*fate // of ranks that are lost or have ended
	lost      int
	dead      []world.Rank // as the launcher has reported them
	questions []question
	ends      bool   // the launcher ends the job, or is gone, or this rank leaves: its news is not waited for
	why       string // why the job ends, as the launcher reports
	ballots   map[ballotKey]*ballot
	detach    *detacher // nil where no agent takes back the memory of ranks that died
}

// A fate is a rank's end, or its loss.
type fate struct {
	lost  error // why nothing can be sent to the rank any more
	ended bool  // its process has ended, or will soon
	died  error // how the rank's process ended after it had left, as the launcher reports
}

// Init makes k ready for use.
func (k *Ranks) Init(cfg Config) {
	k.cfg, k.fates, k.ballots, k.comms = cfg, map[world.Rank]*fate{}, map[ballotKey]*ballot{}, map[uint64]*Comm{}
	if cfg.Boot != nil {
		k.flight, k.detach = cfg.Boot.Info().Flight(), newDetacher(k)
	}
}

// Lost returns why a rank is lost, nil if not lost.
func (k *Ranks) Lost(rank world.Rank) error {
	if k.lost == 0 { // every receive that is posted asks
		return nil
	}
	return k.whyLost(rank)
}

func (k *Ranks) whyLost(rank world.Rank) error {
	if f := k.fates[rank]; f != nil {
		return f.lost
	}
	return nil
}

// Ended reports whether the process of a lost rank has ended, or will soon.
func (k *Ranks) Ended(rank world.Rank) bool {
	f := k.fates[rank]
	return f != nil && f.ended
}

// Died returns how the process of a peer that had left ended, nil if the launcher has not reported.
func (c *Comm) Died(p *peers.Peer) error {
	if f := c.ranks.fates[p.Rank]; f != nil {
		return f.died
	}
	return nil
}

// EndJob notes that this rank leaves.
func (k *Ranks) EndJob() {
	if k.ends = true; k.why == "" {
		k.why = "this rank has closed its communicators"
	}
	k.endBallots()
	k.Decide()
}

// lose handles the loss of a rank, of which the first reason counts. known states that the
// launcher notifies all ranks of the loss.
func (k *Ranks) lose(rank world.Rank, err error, known bool) {
	f := k.fates[rank]
	if f == nil {
		f = new(fate)
		k.fates[rank] = f
	}
	// Only the end of its process cuts off a rank that shares memory with this rank.
	if known || errors.Is(err, ErrLeft) || errors.Is(err, transport.ErrCut) {
		f.ended = true
	}
	switch {
	case f.lost == nil:
		k.lost++
		f.lost = err
	case known:
		f.died = err
	}
	if f.ended {
		k.cfg.Messages.Ended(rank)
	}
	p := k.cfg.Peers.Peer(rank)
	if p.Lost != nil {
		return
	}
	p.Lost = err
	for _, c := range k.comms {
		c.dismiss(p, known)
	}
}

// awaits reports whether something waits for a message or an answer of a rank, or of any rank.
func (k *Ranks) awaits(rank world.Rank) bool {
	for _, c := range k.comms {
		if src := c.Member(rank); src >= 0 && c.awaits(src) {
			return true
		}
	}
	return false
}

// TransportLost handles an error after which a transport reaches a rank no more.
func (k *Ranks) TransportLost(rank world.Rank, err error) {
	if !k.Suspected(rank, err) {
		k.lose(rank, k.Reason(rank, err), false)
	}
}

// BreaksProtocol loses a rank that has sent an invalid frame.
func (k *Ranks) BreaksProtocol(rank world.Rank, err error) { k.lose(rank, err, false) }

// Suspected reports whether err, the error of a transport with a rank, counts only after the
// launcher had time to report why. A rank that left in good order may have left because a
// communicator was revoked, of which this rank does not know yet: the launcher's news of it comes
// before its answer. Meanwhile operations that wait for the rank continue to wait.
func (k *Ranks) Suspected(rank world.Rank, err error) bool {
	b := k.cfg.Boot
	if b == nil || k.Lost(rank) != nil {
		return false
	}
	if b.Pending() {
		k.HandleEvents()
	}
	if k.Lost(rank) != nil || k.ends || !k.explains(rank, err) {
		return false
	}
	if !k.isSuspect(rank) {
		k.ask(question{
			suspect: rank, due: time.Now().Add(ReasonTimeout),
			answered: func() bool { return k.Lost(rank) != nil },
			decide:   func() { k.lose(rank, k.Reason(rank, err), false) },
		})
		b.Inquire(rank) // if the launcher is gone, that is news, too
	}
	return true
}

// explains reports whether the launcher may report a better reason than err, and an operation needs
// a reason.
func (k *Ranks) explains(rank world.Rank, err error) bool {
	return errors.Is(err, transport.ErrCut) || errors.Is(err, transport.ErrUnreachable) ||
		errors.Is(err, transport.ErrGone) && k.awaits(rank)
}

func (k *Ranks) isSuspect(rank world.Rank) bool {
	return slices.ContainsFunc(k.questions, func(q question) bool { return q.suspect == rank })
}

// Reason returns why a transport failed with a rank that is no suspect. If no process listens at
// the rank's address, and the launcher has no news of the rank, the rank has left.
func (k *Ranks) Reason(rank world.Rank, err error) error {
	switch lost := k.Lost(rank); {
	case lost != nil:
		return lost
	case errors.Is(err, transport.ErrGone):
		return ErrLeft
	case errors.Is(err, transport.ErrRefused):
		return fmt.Errorf("%w: it %w", ErrLeft, err)
	}
	return err
}

// Inquire asks the launcher about a rank that may have left before anything was sent to that rank.
func (k *Ranks) Inquire(rank world.Rank) {
	if k.cfg.Boot != nil {
		k.cfg.Boot.Inquire(rank) // if the launcher is gone, that is news, too
	}
}

// Pending reports whether the launcher may have news.
func (k *Ranks) Pending() bool { return k.cfg.Boot != nil && k.cfg.Boot.Pending() }

// HandleEvents handles news of the launcher, and returns the number of events.
func (k *Ranks) HandleEvents() int {
	events := k.cfg.Boot.Events()
	for _, ev := range events {
		switch ev.Kind {
		case boot.Died:
			k.dead = append(k.dead, ev.Rank)
			k.cfg.Peers.Peer(ev.Rank).Ended(transport.ErrCut)
			k.lose(ev.Rank, fmt.Errorf("%s", ev.Text), true)
			k.detach.died(ev.Rank)
		case boot.Left:
			k.cfg.Peers.Peer(ev.Rank).Ended(transport.ErrGone)
			if k.isSuspect(ev.Rank) {
				k.lose(ev.Rank, ErrLeft, false)
			}
		case boot.Revoked:
			k.revoked(ev.Rank, ev.Comm, ev.Text)
		case boot.Agreed:
			k.agreed(ev.Outcome)
		case boot.Terminate, boot.Gone:
			k.ends, k.why = true, string(ev.Text)
			k.endBallots()
			for _, c := range k.comms {
				c.fail(k.whyEnding())
			}
		}
	}
	return len(events)
}

// revoked handles the revocation of a communicator by another rank. Both that rank and the launcher
// send the reason; the first to arrive counts.
func (k *Ranks) revoked(from world.Rank, comm uint64, text []byte) {
	v, err := DecodeReason(text)
	if err == nil && (v.Rank < 0 || int(v.Rank) >= k.cfg.Size) {
		err = fmt.Errorf("it blames rank %d of %d", v.Rank, k.cfg.Size)
	}
	if err != nil {
		k.cfg.Log.Warn("revocation cannot be read", "from", from, "err", err)
		v = Reason{Rank: from, Cause: "revoked it"}
	}
	k.revoke(comm, v)
}

// report sends the reason why a communicator broke to the launcher, which notifies all ranks.
func (k *Ranks) report(comm uint64, text []byte) {
	if b := k.cfg.Boot; b != nil {
		if err := b.Revoke(comm, text); err != nil {
			k.cfg.Log.Warn("cannot tell the others that a communicator broke", "comm", comm, "err", err)
		}
	}
}

// whyEnding returns why the job ends.
func (k *Ranks) whyEnding() error {
	return &RevokedError{Rank: -1, Cause: fmt.Sprintf("the job ends: %s", k.why)}
}
