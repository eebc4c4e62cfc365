package ucx

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"gompi/internal/world"
	"gompi/transport"
)

const (
	// flushTime bounds the time of the flush.
	flushTime = time.Second
	// flushSleep is the sleep of Close's caller between calls, in nanoseconds.
	flushSleep = int64(time.Millisecond)
)

// Deadline implements transport.Progresser.
func (t *Transport) Deadline() int64 {
	switch {
	case t.closed:
		return 0
	case !t.flushBegan.IsZero():
		return flushSleep
	case !t.unanswered.Empty():
		return max(1, int64(time.Until(t.unanswered.Front().due)))
	}
	return 0
}

// Close implements transport.Transport. UCX drops a worker's transfers when the worker is
// destroyed. So Close waits until each peer has acknowledged the goodbye, and so all earlier
// frames, and until this rank's acknowledgements are flushed.
func (t *Transport) Close(force bool) bool {
	if t.closed {
		return true
	}
	if !t.closing {
		t.closing = true
		for _, p := range t.used {
			p.in.Abandon()
			t.noteLanes(p)
		}
	}
	t.Poll(world.None)
	done := true
	for _, p := range t.used {
		if !t.finish(p) {
			done = false
		}
	}
	if !force && !(done && t.flushed()) {
		return false
	}
	t.release()
	return true
}

// finish reports whether all frames and puts to p have arrived there. A peer that has not been
// admitted is not waited for: any process may claim to be a rank, to which this rank then connects.
func (t *Transport) finish(p *peer) bool {
	switch {
	case p.lost:
		return true
	case !p.open:
		return p.handshake == nil || !p.handshake.admitSent && p.out.Empty() && p.puts.Empty()
	case !p.puts.Empty():
		return false
	case !p.bye:
		p.bye = true
		t.enqueue(p, &transport.Header{Kind: transport.Goodbye}, nil, false, 0)
		t.flush()
	}
	return p.acked
}

// flushed reports whether UCX has sent everything, or has had flushTime.
func (t *Transport) flushed() bool {
	if t.flushBegan.IsZero() {
		t.flushBegan = time.Now()
		t.ucp.Flush()
	}
	return t.ucp.Outstanding() == 0 || time.Since(t.flushBegan) > flushTime
}

// release destroys UCX's worker.
func (t *Transport) release() {
	t.closed = true
	for _, p := range t.used {
		t.discard(p, transport.ErrClosed)
	}
	if n := t.ucp.Unauthenticated(); n > 0 {
		t.log.Warn("dropped messages over UCX without a valid token", "rank", t.cfg.Rank, "messages", n)
	}
	if len(t.lanes) > 0 {
		t.log.Info("used", "rank", t.cfg.Rank, "devices", strings.Join(slices.Sorted(maps.Keys(t.lanes)), " "))
	}
	t.set.DelWaker(t.ucp.FD())
	if left, unanswered := t.ucp.Close(); left > 0 {
		t.leaked = true
		level := slog.LevelWarn
		if left == unanswered { // a peer that has never answered is beyond remedy
			level = slog.LevelDebug
		}
		t.log.Log(context.Background(), level, "UCX does not complete some operations: their memory is not freed",
			"rank", t.cfg.Rank, "operations", left)
	}
}
