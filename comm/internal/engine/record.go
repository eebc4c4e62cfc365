package engine

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"gompi/comm/internal/progress"
	"gompi/internal/boot/wire"
	"gompi/internal/seg"
)

// A call that waits for long is written to the flight recorder, with its place in the program.
// There the launcher reads which rank waits for which. Calls that do not wait cost nothing:
// collectives are recorded when they begin, without a time, and messages not at all.

// record writes the call in which w's goroutine, the caller, has been waiting for
// progress.StallAfter.
func (w *waiter) record() {
	e := w.e
	if w.recorded || e.flight == nil {
		return
	}
	w.recorded = true
	since := seg.Now() - int64(progress.StallAfter)
	if t, ok := w.collective(); ok {
		e.flight.Stamp(t, since)
		if !w.Background {
			e.flight.SetSite(t, CallSite())
		}
		return
	}
	c := w.call()
	c.Start = since
	w.ticket = e.flight.BeginCall(&c)
	e.flight.SetSite(w.ticket, CallSite())
}

// collective returns the ticket of the collective that w waits in, false if it waits in none.
func (w *waiter) collective() (seg.Ticket, bool) {
	switch {
	case w.round != nil:
		return w.round.ticket, true
	case w.flagWait != nil:
		return w.flagWait.ticket, true
	}
	return 0, false
}

// call describes a wait for no collective: for the request that w began to wait
// for last, or for a message to probe.
func (w *waiter) call() seg.Call {
	r := w.request
	switch {
	case w.probed != nil:
		return seg.Call{Comm: w.probed.ID, Kind: seg.Probe, Peer: int(w.Hint), Seq: Any}
	case w.voted != nil:
		return seg.Call{Comm: w.voted.Comm, Kind: kindOf(w.voted.Kind), Peer: -1, Seq: int64(w.voted.Seq)}
	case r == nil || r.ch == nil:
		return seg.Call{Kind: seg.Wait, Peer: -1} // for a collective that has a record of its own
	}
	kind := seg.Send
	if r.stage == posted || r.stage == filling {
		kind = seg.Recv
	}
	return seg.Call{
		Comm: r.ch.ID, Kind: kind, Type: r.buf.Type(), Peer: int(r.peer),
		Count: int64(r.buf.Len()), Bytes: int64(r.buf.Size()), Seq: int64(r.tag), Held: w.held(),
	}
}

// held returns for how many messages that the receiver holds a send waits, 0 if it does not.
func (w *waiter) held() int64 {
	if r := w.request; r.starved && r.stage == announced {
		return int64(w.e.peer(r.peer).holds)
	}
	return 0
}

// kindOf returns the kind of a call that votes.
func kindOf(k wire.VoteKind) seg.Kind {
	switch k {
	case wire.Shrink:
		return seg.Shrink
	case wire.Restore:
		return seg.Restore
	}
	return seg.Agree
}

// Ended implements progress.Owner.
func (w *waiter) Ended() {
	if w.ticket != 0 {
		w.e.flight.EndCall(w.ticket)
		w.ticket = 0
	}
}

// CallSite returns the innermost place on this goroutine's stack that is not in
// this library, as "train/main.go:55"; "" if there is none.
func CallSite() string {
	var pcs [48]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.File != "" && !isLibrary(f.Function) && !isForC(f) {
			return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(f.File)), path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// isForC reports whether f is of what stands between C and this library: behind it is a program
// that has no frames here.
func isForC(f runtime.Frame) bool {
	return strings.HasPrefix(f.Function, "_cgoexp_") ||
		strings.HasPrefix(f.Function, "main.") && strings.HasSuffix(path.Dir(f.File), "comm/libgompi")
}

// isLibrary reports whether a function is of the runtime or this library, whose tests are
// programs.
func isLibrary(function string) bool {
	for _, prefix := range []string{"runtime.", "gompi/comm.", "gompi/comm/"} {
		if strings.HasPrefix(function, prefix) {
			return !strings.Contains(function, "_test.")
		}
	}
	return false
}
