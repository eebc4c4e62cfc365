package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gompi/comm/internal/exec"
	"gompi/comm/internal/message"
	"gompi/comm/internal/path"
	"gompi/comm/internal/round"
	"gompi/comm/internal/shmsync"
	"gompi/internal/boot"
	"gompi/internal/seg"
	"gompi/internal/stats"
	"gompi/internal/world"
)

// A Comm is a communicator: an ordered group of ranks, with messages that no other Comm sees. Its
// methods may be called from any goroutine, its collectives from one at a time.
type Comm struct {
	*process
	ch          *message.Channel
	name        string
	base        string // name without what Shrink and Restore have added
	renewals    int    // by Shrink and Restore, in a row
	rules       *path.Rules
	exec        exec.Exec // of collectives
	ops         opQueue
	round       *round.Round  // the collective in progress
	performs    bool          // it is in the midst of a collective; owned by the one that runs
	onHost      bool          // no rank's buffers are on a device
	block       shmsync.Token // of exec.Shared or exec.Hier.Shared, 0 if none
	allocations allocations   // of Alloc
	maker       maker         // of CreateGroup
	votes       atomic.Uint64 // calls of Shrink and Agree
	gaveUp      atomic.Bool   // in a Shrink or Restore: this rank votes no more
	shut        atomic.Bool   // Close was called
}

// firstName is the name of the first communicator.
const firstName = "world"

// A process holds what the communicators of one rank share.
type process struct {
	e       *message.Engine
	boot    boot.Boot
	rec     *seg.Recorder // nil without a host segment
	stats   *stats.Rank   // nil without -stats and -trace, but in programs of MPI
	memory  *hostMemory   // nil without one that all may map
	log     *slog.Logger
	open    atomic.Int32 // communicators not closed
	leave   func(ctx context.Context) error
	detach  *detacher   // nil where no agent takes back the memory of ranks that died
	mapped  allocations // given back, but a peer or a transport may still use them
	local   allocations // of AllocLocal
	suspect atomic.Bool // a collective has: peers may still write to vectors that it had in the heap

	admits   func(rank world.Rank, card []byte) error // of transports: a rank that comes later; nil if none can
	restored bool                                     // this rank replaces one that died

	staging     exec.Pool
	withDevices []bool // world ranks whose buffers may be in devices' memory
	wantsNCCL   bool   // of these devices
}

// Rank returns this process's number in c, 0 to Size()-1.
func (c *Comm) Rank() int { return c.ch.Rank() }

// Size returns the number of ranks in c.
func (c *Comm) Size() int { return c.ch.Size() }

// Name returns c's name, for messages: "world" for the first communicator, "world/split" for one
// that Split has made of it. Shrink and Restore count instead, so that the name does not grow:
// "world/shrink(3)" was made by Shrink, and two communicators between world and it by Shrink or
// Restore. SetName does not begin the count anew.
func (c *Comm) Name() string { return c.name }

// SetName names c, on this rank only. It must not run beside other methods.
func (c *Comm) SetName(name string) { c.name, c.base = name, name }

// Host returns the name of the host that a rank of c runs on.
func (c *Comm) Host(rank int) string {
	if rank < 0 || rank >= c.Size() {
		return ""
	}
	return c.ch.Host(rank)
}

// String names c and this rank: "world[3/8]".
func (c *Comm) String() string { return fmt.Sprintf("%s[%d/%d]", c.name, c.Rank(), c.Size()) }

// Err returns why c is broken or closed, nil while it works.
func (c *Comm) Err() error { return c.ch.Err() }

// Abort ends the whole job: the launcher ends every rank and exits with code,
// of which the low 8 bits count and 0 becomes 1. Abort returns when the
// launcher has been notified; it does not end this process.
func (c *Comm) Abort(code int, reason string) error {
	if code &= 0xff; code == 0 {
		code = 1
	}
	return c.fault("abort", -1, c.boot.Abort(code, reason))
}

// Close closes c on this rank (MPI_Comm_free, for the last communicator MPI_Finalize). Collectives
// that are under way end with ErrClosed before it returns, unless ctx ends before. Sends that are
// under way are lost, except on the last communicator to be closed: closing that one leaves the
// job, which delivers what was sent, at most until ctx ends, and notifies the peers and the
// launcher that this rank ends well.
//
// Ranks may close at different times, but Close waits for the others up to a second in two cases:
// where NCCL has served, and where the last collective may have ended here before others began it,
// as at the root of a Bcast. In that case their calls are compared with this rank's, and Close
// returns ErrMismatch if they differ. It waits for no rank that has left. Over RDMA, closing
// the last communicator waits until every rank that exchanged messages with this one makes a call,
// or ctx ends. A second Close does nothing.
func (c *Comm) Close(ctx context.Context) error {
	if c.shut.Swap(true) {
		return nil
	}
	c.maker.close(ctx, c)
	alone := c.ops.begin() // until the Channel is closed: nothing begins in between
	if alone {
		c.round.Recall()
	}
	broken := c.part(ctx, alone)
	c.ch.Close()
	if alone {
		c.ops.end(c)
	}
	safe := broken == nil && alone // no peer writes to memory of c: collectives that queue find it closed
	c.freeAllocations(safe)
	c.abandon(ctx, broken)
	if c.open.Add(-1) > 0 {
		if errors.Is(broken, ErrMismatch) {
			return c.fault("close", -1, broken)
		}
		return nil
	}
	defer c.staging.Release()
	if err := c.leave(ctx); err != nil {
		return c.fault("close", -1, err)
	}
	return c.fault("close", -1, broken)
}

// partTime is how long Close waits for other ranks to call what this one has called.
var partTime = time.Second

// part compares this rank's last collective with those of the others, if no other collective runs
// alone, and returns why c is broken, nil while it works.
func (c *Comm) part(ctx context.Context, alone bool) error {
	if err := c.ch.Err(); err != nil || c.Size() == 1 || !alone {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	return c.round.Part(ctx)
}

// abandon waits, at most until ctx ends, until the collectives that are under way have noticed that
// c is closed. Then they touch neither their callers' buffers nor c's shared block any more, which
// is given back.
func (c *Comm) abandon(ctx context.Context, broken error) {
	over := make(chan struct{})
	c.ops.whenOver(func() {
		c.give(c.block)
		c.detach.over(c)
		if c.exec.NCCL != nil {
			c.exec.NCCL.Close(broken, func() { close(over) })
		} else {
			close(over)
		}
	})
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// newComm returns the communicator with a Channel of p.
func (p *process) newComm(name string, ch *message.Channel, rules *path.Rules) *Comm {
	p.open.Add(1)
	c := &Comm{process: p, ch: ch, name: name, base: name, rules: rules, round: round.Of(ch)}
	p.detach.opened(c)
	c.exec = exec.Exec{Rank: c.Rank(), Size: c.Size(), Round: c.round, Staging: &p.staging}
	c.onHost = !c.mayHaveDevices()
	c.setUpNCCL()
	return c
}
