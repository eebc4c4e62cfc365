package comm

import (
	"fmt"

	"gompi/comm/internal/record"
	"gompi/internal/boot"
	"gompi/internal/stats"
)

// What a rank counts of its calls, for gompirun -stats and -trace: package stats has the rest.
// Where it counts nothing, process.stats is nil, and each call looks at that once.

// counts returns where this rank counts its calls, nil if it is not to.
func (p *process) counts(info *boot.Info, mpi bool) (*stats.Rank, error) {
	if info.Segment == nil {
		return nil, nil
	}
	mem, err := info.Segment.Extension()
	if mem == nil || err != nil {
		return nil, err
	}
	m, err := stats.Of(mem)
	if err != nil {
		return nil, fmt.Errorf("statistics: %w", err)
	}
	return m.Rank(int(info.LocalRank), record.CallSite, mpi), nil
}

// countSend counts a blocking send, which begins.
func (c *Comm) countSend(to, tag int, b Buffer, sync bool) stats.Span {
	op := stats.Send
	if sync {
		op = stats.Ssend
	}
	return c.countMessage(op, to, tag, b.Size())
}

// countMessage counts a message that is sent, and the call.
func (c *Comm) countMessage(op stats.Op, to, tag, bytes int) stats.Span {
	peer := int(c.ch.World(to))
	span := c.stats.Begin(op, bytes)
	c.stats.Sent(peer, bytes)
	c.stats.Message(&span, peer, tag)
	return span
}

// countStart counts the start of a message.
func (c *Comm) countStart(k requestKind, peer, tag int, b Buffer) stats.Span {
	switch k {
	case sendRequest:
		return c.countMessage(stats.Isend, peer, tag, b.Size())
	case ssendRequest:
		return c.countMessage(stats.Issend, peer, tag, b.Size())
	}
	span := c.stats.Begin(stats.Irecv, 0)
	if peer >= 0 {
		c.stats.Message(&span, int(c.ch.World(peer)), tag)
	}
	return span
}

// countReceived ends the count of a receive.
func (c *Comm) countReceived(span *stats.Span, st Status, err error) {
	if err == nil {
		c.stats.Message(span, int(c.ch.World(st.Source)), st.Tag)
		c.stats.Received(span, st.Bytes)
	}
	span.End()
}

// probeOp returns what a probe is called.
func probeOp(wait, take bool) stats.Op {
	switch {
	case wait && take:
		return stats.Mprobe
	case take:
		return stats.Improbe
	case wait:
		return stats.Probe
	}
	return stats.Iprobe
}
