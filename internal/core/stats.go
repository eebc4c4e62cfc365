package core

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gompi/internal/boot"
	"gompi/internal/core/progress"
	"gompi/internal/core/record"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/stats"
	"gompi/internal/world"
)

// The counts of a rank's calls, for gompirun -stats and -trace and the tools of MPI: package
// stats has the rest. Each call looks once at whether process.stats is on.

// counts returns the counts of this rank's calls, nil if they are never counted.
func (p *process) counts(info *boot.Info, mpi *MPI) (*stats.Rank, error) {
	var mem []byte
	if info.Segment != nil {
		var err error
		if mem, err = info.Segment.Extension(); err != nil {
			return nil, err
		}
	}
	switch {
	case mem == nil && mpi != nil:
		own := func() (*stats.Memory, error) { return ownCounts(info) }
		return stats.Later(int(info.LocalRank), mpi.Count, own), nil
	case mem == nil:
		return nil, nil
	}
	m, err := stats.Of(mem)
	if err != nil {
		return nil, fmt.Errorf("statistics: %w", err)
	}
	if mpi != nil {
		return m.RankOfMPI(int(info.LocalRank), mpi.Count), nil
	}
	return m.Rank(int(info.LocalRank), record.CallSite), nil
}

// sleepsOf returns the observer of waits that sleep, nil if there is none.
func sleepsOf(r *stats.Rank) progress.Sleeps {
	if s := r.Sleeps(); s != nil {
		return s
	}
	return nil
}

// ownCounts returns memory of this process, for good, for its counts without -stats. The memory
// is not Go's, since C has its address.
func ownCounts(info *boot.Info) (*stats.Memory, error) {
	ranks := make([]int, info.LocalRank+1) // the host's ranks, where C sends to them
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

// Hide leaves this rank's later calls on c out of all reports. Hide is called before all other
// methods.
func (c *Comm) Hide() {
	c.ch.Hide()
	c.stats = nil
}

// Counts reports whether gompirun counts the calls on c.
func (c *Comm) Counts() bool { return c.stats.On() }

type placeKey struct{}

// placed reports whether any context has a place, so that contexts need not be searched otherwise.
var placed atomic.Bool

// AtPlace returns a context whose collectives gompirun counts as calls at a place of the program.
func AtPlace(ctx context.Context, place string) context.Context {
	placed.Store(true)
	return context.WithValue(ctx, placeKey{}, stats.NewPlace(place))
}

func placeOf(ctx context.Context) *stats.Place {
	if !placed.Load() {
		return nil
	}
	p, _ := ctx.Value(placeKey{}).(*stats.Place)
	return p
}

// SetSite sets the place in the program that reports name for waits, until the next SetSite.
func (c *Comm) SetSite(site string) {
	p := &c.e.Progress
	p.Lock()
	defer p.Exit()
	c.rec.SetSite(seg.AnyCall, site)
}

// countSend counts a blocking send, which begins.
func (c *Comm) countSend(span *stats.Span, to, tag int, b mem.Buffer, sync bool) {
	op := stats.Send
	if sync {
		op = stats.Ssend
	}
	c.countMessage(span, op, to, tag, b.Size())
}

// countMessage counts a message that is sent, and the call.
func (c *Comm) countMessage(span *stats.Span, op stats.Op, to, tag, bytes int) {
	peer := int(c.ch.World(to))
	c.stats.Begin(span, op, bytes, nil)
	c.stats.Sent(peer, bytes)
	c.stats.Message(span, peer, tag)
}

// countStart counts the start of a message.
func (c *Comm) countStart(span *stats.Span, k requestKind, peer, tag int, b mem.Buffer) {
	switch k {
	case sendRequest:
		c.countMessage(span, stats.Isend, peer, tag, b.Size())
	case ssendRequest:
		c.countMessage(span, stats.Issend, peer, tag, b.Size())
	default:
		c.stats.Begin(span, stats.Irecv, 0, nil)
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

// probeOp returns the name of a probe.
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
