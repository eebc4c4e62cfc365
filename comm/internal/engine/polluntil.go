package engine

import (
	"context"
	"fmt"
	"time"

	"gompi/comm/internal/call"
	"gompi/comm/internal/liveness"
	"gompi/comm/internal/progress"
	"gompi/comm/internal/record"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// How a rank waits in a collective for something outside gompi, such as work of NCCL. That wakes no
// goroutine and does not fail when a rank dies. So the waiting goroutine asks again and again, and
// polls in between, by which it learns of ranks that have died.

const (
	// spinFirst is how often it asks before it sleeps in between. To ask takes about a microsecond.
	spinFirst = 200
	// Then it sleeps, first for restLeast, and longer from time to time.
	restLeast = 20 * time.Microsecond
	restMost  = time.Millisecond
	// leaverGrace is how long it goes on when a member has left, which may have done its
	// part. If it has not, nothing else will tell.
	leaverGrace = 3 * time.Second
)

// PollUntil returns when done returns true or an error. Like Wait, it breaks the communicator if
// the Round's context ends.
func (rd *Round) PollUntil(done func() (bool, error)) error {
	a := pollWait{ch: rd.ch, round: rd, call: rd.call, ticket: rd.ticket, quiet: rd.quiet}
	return a.wait(rd.ctx, done)
}

// PollUntil returns when done returns true or an error. Like Await, it breaks the communicator if
// the collective's context ends.
func (v *FlagWait) PollUntil(done func() (bool, error)) error {
	a := pollWait{ch: v.ch, call: v.call(), ticket: v.ticket, quiet: v.quiet}
	return a.wait(v.ctx, done)
}

// A pollWait is one such wait.
type pollWait struct {
	ch     *Channel
	round  *Round // nil where no messages are sent
	call   call.Fingerprint
	ticket seg.Ticket
	quiet  bool
	left   time.Time // when a member was found to have
}

func (a *pollWait) wait(ctx context.Context, done func() (bool, error)) error {
	rest, due := restLeast, time.Now().Add(progress.StallAfter)
	for asked := 1; ; asked++ {
		if ok, err := done(); err != nil {
			return a.reason(err)
		} else if ok {
			return nil
		}
		if err := a.ch.tryProgress(world.None); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return a.giveUp(err)
		}
		if asked < spinFirst {
			continue
		}
		if now := time.Now(); now.After(due) {
			due = now.Add(progress.StallAfter)
			if err := a.long(now); err != nil {
				return err
			}
		}
		time.Sleep(rest)
		rest = min(rest*5/4, restMost)
	}
}

// reason returns why done has failed with err: if that comes of a member's death, the
// launcher says so before long.
func (a *pollWait) reason(err error) error {
	for end := time.Now().Add(liveness.NewsTime); time.Now().Before(end); time.Sleep(restMost) {
		if known := a.ch.tryProgress(world.None); known != nil {
			return known
		}
	}
	return err
}

// giveUp breaks the communicator because the collective's context has ended.
func (a *pollWait) giveUp(err error) error {
	e := a.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	a.ch.breakUp(liveness.Reason{Rank: e.cfg.Rank, Cause: fmt.Sprintf("gave up in %v: %v", a.call, err)})
	if a.round != nil {
		a.round.err = err
	}
	return err
}

// long acts on a wait that has lasted for progress.StallAfter, or once more so long. It tells
// the next member what this one waits in: if that has left, one of all finds out.
func (a *pollWait) long(now time.Time) error {
	e := a.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	if a.round != nil {
		if l := a.round.queue((a.ch.rank + 1) % a.ch.size); a.ch.usable(l.p) == nil {
			a.round.say(l, transport.Call, 0)
		}
	}
	p := a.ch.leaver()
	switch {
	case p != nil && a.left.IsZero():
		a.left = now
	case p != nil && now.Sub(a.left) > leaverGrace:
		a.ch.miss(p, liveness.ErrLeft, a.call)
	}
	if e.flight != nil {
		e.flight.Stamp(a.ticket, seg.Now()-int64(progress.StallAfter))
		if !a.quiet {
			e.flight.SetSite(a.ticket, record.CallSite())
		}
	}
	return a.ch.err
}

// leaver returns a member that has left, nil if there is none.
func (ch *Channel) leaver() *peer {
	for r := range ch.size {
		w := ch.World(r)
		if w != ch.e.cfg.Rank && (ch.gone(r) != nil || ch.e.cfg.Left != nil && ch.e.cfg.Left(w)) {
			return ch.e.peer(w)
		}
	}
	return nil
}
