package round

import (
	"context"
	"fmt"
	"time"

	"gompi/internal/core/liveness"
	"gompi/internal/core/progress"
	"gompi/internal/core/record"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Waits of a collective for work outside gompi, such as NCCL's. Such work wakes no goroutine when
// it ends, and does not fail when a rank dies. So the waiting goroutine alternates between a test
// of the work and polling, which reports ranks that have died.

const (
	// spinFirst is the number of tests before PollUntil sleeps between two tests. A test takes
	// about a microsecond.
	spinFirst = 200
	// Then PollUntil sleeps, first for restLeast, and longer from time to time.
	restLeast = 20 * time.Microsecond
	restMost  = time.Millisecond
	// leaverGrace is the time for which PollUntil continues after a member has left. The member may
	// have done its part; if it has not, only the end of this time shows that.
	leaverGrace = 3 * time.Second
)

// PollUntil returns when done returns true or an error. If the round's context ends, PollUntil
// breaks the communicator, as Wait does.
func (rd *Round) PollUntil(done func() (bool, error)) error {
	var left time.Time // when a member was found to have
	rest, due := restLeast, time.Now().Add(progress.StallAfter)
	for asked := 1; ; asked++ {
		if ok, err := done(); err != nil {
			return rd.reasonOf(err)
		} else if ok {
			return nil
		}
		if err := rd.ch.TryProgress(world.None); err != nil {
			return err
		}
		if !rd.quiet {
			rd.progress.Lock()
			rd.progress.CallBack()
			rd.progress.Unlock()
		}
		if err := context.Cause(rd.ctx); err != nil {
			return rd.giveUp(err)
		}
		if asked < spinFirst {
			continue
		}
		if now := time.Now(); now.After(due) {
			due = now.Add(progress.StallAfter)
			if err := rd.waitsLong(now, &left); err != nil {
				return err
			}
		}
		time.Sleep(rest)
		rest = min(rest*5/4, restMost)
	}
}

// reasonOf returns why done has failed with err: if the cause is a member's death, the launcher
// reports the death soon.
func (rd *Round) reasonOf(err error) error {
	for end := time.Now().Add(liveness.ReasonTimeout); time.Now().Before(end); time.Sleep(restMost) {
		if known := rd.ch.TryProgress(world.None); known != nil {
			return known
		}
	}
	return err
}

// giveUp breaks the communicator because the round's context has ended.
func (rd *Round) giveUp(err error) error {
	rd.progress.Lock()
	defer rd.progress.Exit()
	rd.err = err
	rd.breakUp(fmt.Sprintf("gave up in %v: %v", rd.fingerprint(), err))
	return err
}

// waitsLong acts on a wait that has lasted for progress.StallAfter, or for that long once more.
// It notifies the next member of this rank's call: if that member has left, some rank finds out.
func (rd *Round) waitsLong(now time.Time, left *time.Time) error {
	ch := rd.ch
	rd.progress.Lock()
	defer rd.progress.Exit()
	if !rd.byFlags {
		rd.sendCall(rd.queue((ch.Rank() + 1) % ch.Size()))
	}
	p := ch.AnyLeft()
	switch {
	case p != nil && left.IsZero():
		*left = now
	case p != nil && now.Sub(*left) > leaverGrace:
		rd.Missing(p, errLeft)
	}
	if flight := ch.Flight(); flight != nil {
		flight.Stamp(rd.ticket, seg.Now()-int64(progress.StallAfter))
		if !rd.quiet {
			flight.SetSite(rd.ticket, record.CallSite())
		}
	}
	return ch.Broken()
}
