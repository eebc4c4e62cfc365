package core

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gompi/internal/boot"
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/network"
	"gompi/internal/core/path"
	"gompi/internal/core/round"
	"gompi/internal/core/shmcoll"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// JoinBy makes a goroutine a rank.
func JoinBy(ctx context.Context, cfg Config, f network.Connection) (*Comm, error) {
	return settings{Config: cfg}.joinFabric(ctx, f)
}

// Connect is how Init connects a process, for ranks that are goroutines.
func Connect(c Config, b boot.Boot) (network.Connection, error) {
	cfg := settings{Config: c}
	if err := cfg.resolve(); err != nil {
		return network.Connection{}, err
	}
	return cfg.network().Connect(b)
}

// Launcher returns what connects this rank with its launcher.
func (c *Comm) Launcher() boot.Boot { return c.boot }

// ReduceWithout is an Allreduce without an operator that nothing has checked: a
// collective that fails on the rank that calls it.
func (c *Comm) ReduceWithout(ctx context.Context, send, recv mem.Buffer) error {
	o := new(call.Call).Allreduce(send, recv, call.Op{Kind: mem.Sum})
	o.Op.Kind = 0
	return c.fault(calls.Allreduce.String(), -1, c.ops.Run(ctx, o))
}

// SharesMemory reports whether the ranks of c do collectives through memory.
func (c *Comm) SharesMemory() bool { return c.exec.Shared != nil }

// Staged returns how many bytes of host memory have been taken for device memory.
func (c *Comm) Staged() (n int) {
	for _, size := range c.staging.Kept() {
		n += size
	}
	return n
}

// Ringed returns how many bytes have gone around the L2 and L3 buffers of c.
func (c *Comm) Ringed() int {
	shared := reflect.ValueOf(c.exec.Shared).Elem()
	bytes := func(ring string) uint64 { return shared.FieldByName(ring).FieldByName("next").Uint() }
	return int(bytes("l2") + bytes("l3"))
}

// LongestStaged returns the bytes of the longest chunk of it.
func (c *Comm) LongestStaged() int { return slices.Max(append(c.staging.Kept(), 0)) }

// IsHierarchical reports whether the ranks of c do collectives in each host first.
func (c *Comm) IsHierarchical() bool { return c.exec.Hier != nil }

// LimitMemory makes this rank's Alloc believe that so much memory is left.
func (c *Comm) LimitMemory(l seg.Limit) { c.memory.Host.Limit = func() seg.Limit { return l } }

// Lent returns how many allocations this rank has in its heap, of all communicators.
func (c *Comm) Lent() int {
	h := c.memory.Host
	if h == nil {
		return 0
	}
	h.Sweep(c.e)
	return h.Heap.Len()
}

// Mirrored makes c's rank see itself in the place of every other member: its
// collectives, but those in which something is read twice, then wait for no rank,
// and take only what their instructions take.
func (c *Comm) Mirrored() {
	own, claim := c.memory.Host.Pool.Own(c.block)
	parts := make([]shmsync.Part, c.Size())
	for r := range parts {
		parts[r] = own
	}
	t := path.Topology{Ranks: c.Size(), Shared: true, LargeBuffer: path.LargeBuffer(c.Size())}
	c.exec.Paths = path.New(t, &path.Rules{})
	ranks := make([]int, c.Size())
	for r := range ranks {
		ranks[r] = r
	}
	p := &round.Port{Round: c.round, Ranks: ranks, Waker: func(int) {}}
	team := shmsync.New(c.Rank(), parts, claim, t.LargeBuffer, shmsync.Gate{}, p)
	c.exec.Shared = shmcoll.New(team, make([][]byte, c.Size()), nil, c.exec.Paths)
	p.SetTeam(&c.exec.Shared.Team, true)
}

// UntuneMachine makes ranks ignore the settings of this machine's processor.
func UntuneMachine() { tuning = func() string { return "" } }

// Share makes members carry shares of vectors from this many bytes on.
func (c *Comm) Share(from int) {
	rules := *c.rules
	if rules.Oversubscribed = false; rules.Tune(fmt.Sprintf("hier.shares=%[1]d;hier.vector=%[1]d",
		min(from, 1<<40))) != nil {
		panic(from)
	}
	c.exec.Paths = path.New(c.exec.Paths.Topology, &rules)
}

// AttendForever is a collective of messages that asks for what never comes.
func (c *Comm) AttendForever(ctx context.Context) error {
	if err := c.round.Begin(ctx, &call.Fingerprint{Kind: calls.Barrier}, 0, false); err != nil {
		return err
	}
	return c.round.End(c.round.PollUntil(func() (bool, error) { return false, nil }))
}

// PartWithin sets how long Close waits for what other ranks have called, until what it
// returns is called.
func PartWithin(d time.Duration) (restore func()) {
	before := partTime
	partTime = d
	return func() { partTime = before }
}

// JudgeEvery makes ranks look at their processors oftener, until what it returns is called.
func JudgeEvery(d time.Duration) (restore func()) {
	before := loadEvery
	loadEvery = d
	return func() { loadEvery = before }
}

// Spins reports whether this rank spins when it waits.
func (c *Comm) Spins() bool {
	return c.e.Progress.Spins()
}

// ForgetDevices makes this rank unable to tell which ranks may have devices.
func (c *Comm) ForgetDevices() { c.withDevices = nil }

// Steps returns how many steps in shared memory c has taken.
func (c *Comm) Steps() uint64 { return c.exec.Shared.Last() }
