package comm

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/comm/internal/record"
	"gompi/internal/boot"
	"gompi/internal/stats"
	"gompi/internal/world"
)

// What a rank counts of its calls, for gompirun -stats and -trace and the tools of MPI: package
// stats has the rest. Each call looks once at whether process.stats is on.

// counts returns where this rank counts its calls, nil if it is never to.
func (p *process) counts(info *boot.Info, mpi bool) (*stats.Rank, error) {
	var mem []byte
	if info.Segment != nil {
		var err error
		if mem, err = info.Segment.Extension(); err != nil {
			return nil, err
		}
	}
	switch {
	case mem == nil && mpi:
		return stats.Later(int(info.LocalRank), func() (*stats.Memory, error) { return ownCounts(info) }), nil
	case mem == nil:
		return nil, nil
	}
	m, err := stats.Of(mem)
	if err != nil {
		return nil, fmt.Errorf("statistics: %w", err)
	}
	return m.Rank(int(info.LocalRank), record.CallSite, mpi), nil
}

// ownCounts returns memory of this process, for good, in which it counts without -stats. It is not
// Go's, since C has its address.
func ownCounts(info *boot.Info) (*stats.Memory, error) {
	ranks := make([]int, info.LocalRank+1) // those of the host, where C sends to them
	if s := info.Segment; s != nil {
		ranks = make([]int, s.Ranks())
		for i := range ranks {
			ranks[i] = int(s.WorldRank(world.LocalRank(i)))
		}
	}
	size := stats.Size(len(ranks), info.Places(), false)
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes to count calls: %w", size, err)
	}
	return stats.Format(mem, ranks, info.Places(), false), nil
}

// countSend counts a blocking send, which begins.
func (c *Comm) countSend(span *stats.Span, to, tag int, b Buffer, sync bool) {
	op := stats.Send
	if sync {
		op = stats.Ssend
	}
	c.countMessage(span, op, to, tag, b.Size())
}

// countMessage counts a message that is sent, and the call.
func (c *Comm) countMessage(span *stats.Span, op stats.Op, to, tag, bytes int) {
	peer := int(c.ch.World(to))
	c.stats.Begin(span, op, bytes)
	c.stats.Sent(peer, bytes)
	c.stats.Message(span, peer, tag)
}

// countStart counts the start of a message.
func (c *Comm) countStart(span *stats.Span, k requestKind, peer, tag int, b Buffer) {
	switch k {
	case sendRequest:
		c.countMessage(span, stats.Isend, peer, tag, b.Size())
	case ssendRequest:
		c.countMessage(span, stats.Issend, peer, tag, b.Size())
	default:
		c.stats.Begin(span, stats.Irecv, 0)
		if peer >= 0 {
			c.stats.Message(span, int(c.ch.World(peer)), tag)
		}
	}
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
