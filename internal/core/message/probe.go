package message

import (
	"context"
	"fmt"
	"slices"

	"gompi/internal/core/payload"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// Probe looks for a message from src with tag and, if wait is true, waits for one. With take Probe
// removes it, for Claim alone to receive. The result is empty, without an error, if there is none.
func (ch *Channel) Probe(ctx context.Context, src, tag int, wait, take bool) (Probed, Status, error) {
	e := ch.Engine
	if ctx.Err() != nil {
		return Probed{}, Status{}, context.Cause(ctx)
	}
	e.Progress.Lock()
	defer e.ExitPolling()
	for tested := false; ; {
		if ch.Broken() != nil {
			return Probed{}, Status{}, ch.Broken()
		}
		n := ch.q.Find(src, tag)
		if n != nil && take {
			ch.q.Remove(n)
		}
		if n != nil {
			m := n.Val
			return Probed{ch, m}, Status{Source: m.Src, Tag: m.Tag, Bytes: m.Size, Type: m.Type}, nil
		}
		if err := ch.unreachable(src); err != nil {
			return Probed{}, Status{}, err
		}
		switch {
		case wait:
			if err := ch.watch(ctx, src); err != nil {
				return Probed{}, Status{}, err
			}
		case tested:
			ch.sought[src] = true
			return Probed{}, Status{}, nil
		default:
			e.Progress.CallBack()
			e.poll(ch.hint(src))
			tested = true
		}
	}
}

// watch waits until an unexpected message arrives, or ch breaks.
func (ch *Channel) watch(ctx context.Context, src int) error {
	e := ch.Engine
	w := e.newWaiter(ctx)
	w.probed, w.Hint = ch, ch.hint(src)
	ch.probes = append(ch.probes, w)
	err := e.Progress.Await(ctx, &w.Waiter)
	if i := slices.Index(ch.probes, w); i >= 0 {
		ch.probes = slices.Delete(ch.probes, i, i+1)
	}
	e.freeWaiter(w)
	return err
}

func (ch *Channel) rouseProbes() {
	for _, w := range ch.probes {
		ch.Engine.rouse(w)
	}
}

// hint returns the rank to poll first for a message from src.
func (ch *Channel) hint(src int) world.Rank {
	if src == Any {
		return world.None
	}
	return ch.World(src)
}

// A Probed is a message that a probe has found; the zero Probed is none.
type Probed struct {
	ch *Channel
	m  *Kept
}

// Found reports whether there is a message.
func (m Probed) Found() bool { return m.m != nil }

// Claim receives m, which a probe took out of the queue, into b, once. If ctx has ended
// before, m is still to be claimed.
func (m *Probed) Claim(ctx context.Context, b mem.Buffer) (Status, error) {
	e, ch := m.ch.Engine, m.ch
	e.Progress.Lock()
	defer e.ExitPolling()
	if m.m == nil {
		return Status{}, fmt.Errorf("message already received")
	}
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	r := e.newRequest()
	defer e.FreeRequest(r)
	r.begin(ch, payload.Posted, b, Any, m.m.Tag)
	kept := m.m
	m.m = nil
	if ch.Broken() != nil {
		e.Drop(kept)
		return Status{}, ch.Broken()
	}
	ch.pair(r, kept)
	err := ch.waitBlocking(ctx, r)
	return r.status, err
}
