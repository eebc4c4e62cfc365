package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core/exec"
	"gompi/internal/core/group"
	"gompi/internal/core/memory"
	"gompi/internal/core/message"
	"gompi/internal/core/path"
	"gompi/internal/core/progress"
	"gompi/internal/core/round"
	"gompi/internal/core/shmsync"
	"gompi/internal/seg"
	"gompi/internal/stats"
	"gompi/internal/world"
)

// A Comm is a communicator: an ordered group of ranks, with messages that no other Comm sees. Faces
// are built on Comms. Package comm documents the methods. Methods may be called from any goroutine,
// collectives by one goroutine at a time.
type Comm struct {
	*process
	ch          *message.Channel
	name        string
	stats       *stats.Rank // process.stats, nil if Hide was called
	base        string      // name without the suffixes of Shrink and Restore
	renewals    int         // by Shrink and Restore, in a row
	rules       *path.Rules
	exec        exec.Exec          // of collectives
	ops         exec.Queue         // of collectives
	round       *round.Round       // the collective in progress
	onHost      bool               // no rank's buffers are on a device
	block       shmsync.Token      // of exec.Shared or exec.Hier.Shared, 0 if none
	allocations memory.Allocations // of Alloc
	maker       group.Maker        // of CreateGroup
	votes       atomic.Uint64      // calls of Shrink and Agree
	gaveUp      atomic.Bool        // in a Shrink or Restore: this rank votes no more
}

// firstName is the name of the first communicator.
const firstName = "world"

// A process holds the common state of a rank's communicators.
type process struct {
	e       *message.Engine
	boot    boot.Boot
	rec     *seg.Recorder // nil without a host segment
	stats   *stats.Rank   // nil without -stats and -trace, but in programs of MPI
	memory  memory.Memory
	log     *slog.Logger
	open    atomic.Int32 // communicators not closed
	leave   func(ctx context.Context) error
	suspect atomic.Bool // a collective has failed: peers may still write to its vectors in the heap

	admits   func(rank world.Rank, card []byte) error // of transports: a rank that comes later; nil if none can
	restored bool                                     // this rank replaces a dead rank

	staging     exec.Pool
	oneClock    bool   // all ranks read the same monotonic clock
	withDevices []bool // world ranks whose buffers may be in devices' memory
	wantsNCCL   bool   // of these devices
}

// Rank returns this process's number in c, 0 to Size()-1.
func (c *Comm) Rank() int { return c.ch.Rank() }

// Size returns the number of ranks in c.
func (c *Comm) Size() int { return c.ch.Size() }

// Name returns c's name, for messages.
func (c *Comm) Name() string { return c.name }

// SetName names c, on this rank only, and must not run beside other methods.
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

// Err returns why c is broken or closed, nil while c works.
func (c *Comm) Err() error { return c.ch.Err() }

// Broken returns a flag that is true when the communicator is broken or closed.
func (c *Comm) Broken() *atomic.Bool { return c.ch.BrokenWord() }

// Dead returns the members that are known to have died, in an order that is the same on all.
func (c *Comm) Dead() []int { return c.ch.Dead() }

// ID returns the number of the communicator, the argument of MPI.Names.
func (c *Comm) ID() uint64 { return c.ch.ID }

// Program returns the number, from 0, of this rank's program on the job's command line.
func (c *Comm) Program() int { return c.boot.Info().Program }

// OneClock reports whether all ranks of the job read the same monotonic clock.
func (c *Comm) OneClock() bool { return c.oneClock }

// CannotLeave stores the reason why this rank has not left the job, for the launcher.
func (c *Comm) CannotLeave(why string) { c.boot.Info().Flight().CannotLeave(why) }

// Abort ends the whole job, and returns when the launcher has been notified.
func (c *Comm) Abort(code int, reason string) error {
	if code &= 0xff; code == 0 {
		code = 1
	}
	return c.fault("abort", -1, c.boot.Abort(code, reason))
}

// Close closes c on this rank. Closing the last communicator leaves the job.
func (c *Comm) Close(ctx context.Context) error {
	if c.ops.Closed.Swap(true) {
		return nil
	}
	c.maker.Close()
	alone := c.ops.Begin() // until the Channel is closed: nothing begins in between
	if alone {
		c.round.Recall()
	}
	broken := c.part(ctx, alone)
	c.ch.Close()
	if alone {
		c.ops.End()
	}
	safe := broken == nil && alone // no peer writes to memory of c: queued collectives find c closed
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

// partTime bounds Close's wait for other ranks to make the same calls as this rank.
var partTime = time.Second

// part compares this rank's last collective with the last collectives of the other ranks, if no
// other collective runs on this rank (alone). The result is the reason why c is broken, nil while c
// works.
func (c *Comm) part(ctx context.Context, alone bool) error {
	if err := c.ch.Err(); err != nil || c.Size() == 1 || !alone {
		return err
	}
	in, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	return c.round.Part(progress.Alike(ctx, in))
}

// abandon waits, at most until ctx ends, until the collectives under way have noticed that c is
// closed. After that they touch neither their callers' buffers nor c's shared block, and the block
// is freed.
func (c *Comm) abandon(ctx context.Context, broken error) {
	over := make(chan struct{})
	c.ops.WhenOver(func() {
		c.memory.Give(c.block)
		c.ch.ReleaseMemory()
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

// CloseWhenIdle closes c when all operations started on c are complete, without a wait for other
// ranks. The caller starts no more operations on c. closed delivers the error of Close, once. The
// last closed communicator leaves the job: to leave in order, wait for closed of all others, then
// Close the last. If Close may block, it runs in a goroutine of its own.
func (c *Comm) CloseWhenIdle() (closed <-chan error) {
	ended := make(chan error, 1)
	if c.closesAtOnce() {
		ended <- c.Close(context.Background())
		return ended
	}
	go func() { // ends as operations do: when their peers have done their part, or when c breaks
		over := make(chan struct{})
		c.ops.WhenOver(func() { close(over) })
		<-over
		c.ch.Drain()
		ended <- c.Close(progress.InBackground(context.Background()))
	}()
	return ended
}

// closesAtOnce reports whether nothing is under way and Close waits for no rank. Nothing is started
// any more.
func (c *Comm) closesAtOnce() bool {
	return c.ops.Idle() && !c.ch.Busy() && c.exec.NCCL == nil && !c.round.PartWaits()
}

// newComm returns the communicator with a Channel of p.
func (p *process) newComm(name string, ch *message.Channel, rules *path.Rules) *Comm {
	p.open.Add(1)
	c := &Comm{process: p, ch: ch, name: name, stats: p.stats, base: name, rules: rules, round: round.Of(ch)}
	c.maker.Parent = ch
	ch.HoldMemory()
	c.ops.Engine, c.ops.Ch, c.ops.Round, c.ops.Exec, c.ops.Suspect = p.e, ch, c.round, &c.exec, &p.suspect
	c.exec = exec.Exec{Rank: c.Rank(), Size: c.Size(), Round: c.round, Staging: &p.staging}
	c.onHost = c.firstWith(true) < 0
	if c.wantsNCCL && c.Size() > 1 && c.firstWith(false) < 0 {
		c.exec.NCCL = exec.NewNCCL(&c.exec, c.boot.Info().Node, c.ch.Host, c.warn)
	}
	return c
}
