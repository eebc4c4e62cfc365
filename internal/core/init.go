package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core/exec"
	"gompi/internal/core/liveness"
	"gompi/internal/core/memory"
	"gompi/internal/core/message"
	"gompi/internal/core/network"
	"gompi/internal/core/path"
	"gompi/internal/core/payload"
	"gompi/internal/core/round"
	"gompi/internal/core/shmsync"
	"gompi/internal/env"
	"gompi/internal/machine"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Config specifies how a rank takes part. Package comm explains the fields; the zero value of
// each stands for its environment variable, or else the default.
type Config struct {
	Logger         *slog.Logger
	Deterministic  bool
	EagerLimit     int
	Tuning         string
	CUDA           string
	Transport      string
	KeepScheduling bool
}

// settings are a Config and further facts.
type settings struct {
	Config
	silent      bool // no log was asked for
	readsSooner bool // EagerLimit was not set
	mpi         *MPI // a program of MPI, nil for others
}

// An MPI is a program of MPI, as the engine sees it: the launcher reports calls by the names of
// MPI's functions, and communicators by their names.
type MPI struct {
	// Names returns the name of the communicator with an ID, "" if unknown, and whether that
	// communicator is a persistent collective's own. Names must not wait for a lock of this
	// package's.
	Names func(id uint64) (name string, persistent bool)
	// Count counts bytes that a call has moved, at this thread's current call of MPI, and, if
	// peer is not negative, the rank of the job and the tag of a message.
	Count func(bytes, peer, tag int)
}

// Init joins the job of this process and returns the communicator of all its ranks. Init is
// collective, and called once per process. program is nil outside MPI's programs.
func Init(ctx context.Context, c Config, program *MPI) (*Comm, error) {
	cfg := settings{Config: c, mpi: program}
	b, err := boot.Open(ctx)
	if err != nil {
		return nil, initError(world.None, err)
	}
	if err := cfg.resolve(); err != nil {
		return nil, initError(b.Info().Rank, err)
	}
	f, err := cfg.network().Connect(b)
	if err != nil {
		return nil, initError(b.Info().Rank, err)
	}
	return cfg.joinFabric(ctx, f)
}

// Join makes a goroutine a rank of the job to which f connects.
func Join(ctx context.Context, cfg Config, f network.Fabric) (*Comm, error) {
	return settings{Config: cfg}.joinFabric(ctx, network.Connection{Fabric: f})
}

// network returns the settings of the rank's transports.
func (cfg settings) network() network.Settings {
	return network.Settings{Transport: cfg.Transport, KeepScheduling: cfg.KeepScheduling, Logger: cfg.Logger}
}

// joinFabric makes this process or goroutine a rank of the job to which f connects.
func (cfg settings) joinFabric(ctx context.Context, f network.Connection) (*Comm, error) {
	c, err := cfg.join(ctx, f)
	if err != nil {
		return nil, initError(f.Boot.Info().Rank, err)
	}
	return c, nil
}

func (cfg settings) join(ctx context.Context, f network.Connection) (c *Comm, err error) {
	if err := cfg.resolve(); err != nil {
		return nil, err
	}
	info := f.Boot.Info()
	p := &process{boot: f.Boot, rec: info.Flight(), log: cfg.Logger}
	if cfg.mpi != nil {
		p.rec.CallsMPI(func(comm uint64) seg.CommName {
			name, isPersistent := cfg.mpi.Names(comm)
			return seg.CommName{Text: name, Persistent: isPersistent}
		})
	}
	if p.stats, err = p.counts(info, cfg.mpi); err != nil {
		return nil, err
	}
	e := message.New(message.Config{
		Rank: info.Rank, Size: info.Places(), Host: info.Host, Boot: f.Boot, Parker: f.Parker,
		Yield: f.Yield, Eager: max(cfg.EagerLimit, 0), ReadsSooner: cfg.readsSooner, Log: cfg.Logger,
		Left: leftOf(info), Collectives: round.New, Sleeps: sleepsOf(p.stats), Lender: &p.staging,
		Unexpected: sync.OnceValue(func() int { return unexpected(info) }),
	})
	p.e = e
	p.memory.Engine, p.memory.Log = e, cfg.Logger
	f.Boot.SetWake(f.Parker.Wake)
	trs, err := f.Connect(e, func() { e.Live.HandleEvents() })
	if err != nil {
		return nil, errors.Join(err, closed(f))
	}
	for _, t := range trs {
		e.Use(t)
	}
	p.leave = func(ctx context.Context) error {
		p.stats.Left()
		err := leave(ctx, f, e)
		p.logCarried(info.Rank)
		return err
	}
	p.memory.Aside = sync.OnceValue(func() *memory.Host { return memory.NewMapped(info) })
	if f.Shared != nil && f.Shared() != nil {
		p.memory.Host = memory.NewHost(info, f.Shared())
	}
	all, err := cfg.exchangeCards(ctx, f, p)
	if err != nil {
		p.leave(canceled())
		return nil, err
	}
	from, below := all.rules.Reads()
	e.Mover.SetLengths(payload.Lengths{From: from, Below: below, TriesFrom: all.rules.TriesFrom()})
	if f.SetRules != nil {
		f.SetRules(all.rules)
	}
	p.withDevices, p.wantsNCCL, p.oneClock = all.devices, all.nccl, all.oneClock
	p.admits = f.Admit
	p.stats.Begun()
	if info.Invite != nil {
		return p.replace(ctx, info.Invite, all)
	}
	c = p.newComm(firstName, e.Open(liveness.NextID(0, 0), worldMembers(info)), all.rules)
	c.setUp(all.block, all.blocks)
	if r := c.firstWith(false); p.wantsNCCL && r >= 0 {
		c.warn(exec.WithoutNCCL, fmt.Errorf("rank %d (host %s) has no devices", r, c.ch.Host(r)))
	}
	if info.Rank == 0 {
		c.logWays(ctx)
	}
	return c, nil
}

// worldMembers returns the ranks of the world, nil without spares: then the world is all ranks.
func worldMembers(info *boot.Info) []world.Rank {
	if info.Spares == 0 {
		return nil
	}
	ranks := make([]world.Rank, info.Size)
	for i := range ranks {
		ranks[i] = world.Rank(i)
	}
	return ranks
}

// leave ends this rank's part in the job.
func leave(ctx context.Context, f network.Connection, e *message.Engine) error {
	f.Boot.Info().Flight().Leaving(seg.Now())
	err := e.Shutdown(ctx)
	err = errors.Join(err, f.Boot.Goodbye(e.Peers.MissesEnds()))
	return errors.Join(err, closed(f))
}

func closed(f network.Connection) error {
	if f.Close == nil {
		return nil
	}
	return f.Close()
}

// leftOf returns a function that reports whether a rank of this host has left in good order, nil
// without a segment to read. The launcher reports ranks that died, perhaps later than the
// segment.
func leftOf(info *boot.Info) func(world.Rank) bool {
	s := info.Segment
	if s == nil {
		return nil
	}
	return func(rank world.Rank) bool {
		i, ok := s.LocalRank(rank)
		return ok && (s.State(i) == seg.Closed || s.State(i) == seg.Ended && s.LeftAt(i) != 0)
	}
}

// An agreement is a rank's knowledge after all have exchanged cards.
type agreement struct {
	rules   *path.Rules     // of rank 0, by which all ranks choose Paths
	block   shmsync.Token   // of shared memory that this rank has taken for the world
	blocks  []shmsync.Token // of all ranks
	devices []bool          // by rank: the rank may have devices
	nccl    bool            // rank 0 wants NCCL

	oneClock bool // the ranks read the same monotonic clock
}

// The number of yields, each after a poll, before a rank blocks its thread.
const (
	// A yield hands the processor to another rank of the session in 1 us, waking a thread takes 2
	// (np=2 on one processor, latency of 8 B: 2.1 and 3.3 us). Ranks that yield for longer keep
	// ranks of other sessions from running (five ranks of three hosts on two processors, thousands
	// of messages: 2.5 s with 64 yields and with 4, 3.6 with 128, 5.5 with 1024, and 22 where ranks
	// did not block their threads; without autogroups 2.5).
	yields = 64
	// If very many ranks share a processor, a yield lasts until all others have run, and the
	// awaited message has rarely arrived by then: 256 ranks on two processors do a barrier in 11 ms
	// with fewYields, in 31 with 64 yields. If 32 ranks share a processor, more yields win, as each
	// wake-up costs more (64 ranks, allreduce of 64 KiB: 1.9 ms with 8 and with 64 yields, 3.2 with
	// 1).
	fewYields, fewYieldsFrom = 4, 64
)

// yieldsOf returns the number of yields of a rank, given the number of ranks per processor.
func yieldsOf(ranks int) int {
	if ranks > fewYieldsFrom {
		return fewYields
	}
	return yields
}

// loadEvery is the least time between two readings of the processors' load. Tests change it.
var loadEvery = 30 * time.Second

// exchangeCards sends this rank's card to all ranks, and returns the conclusions from the cards
// of all.
func (cfg settings) exchangeCards(ctx context.Context, f network.Connection, p *process) (m agreement, err error) {
	info := f.Boot.Info()
	m.block = p.memory.Take()
	mine, err := cfg.card(f, m.block)
	if err != nil {
		return m, err
	}
	encoded := [][]byte{mine.Encode()}
	if info.Size > 1 {
		if encoded, err = f.Boot.Allgather(ctx, encoded[0]); err != nil {
			return m, err
		}
	}
	all, late, err := network.DecodeCards(encoded, info.Size)
	if err != nil {
		return m, err
	}
	m.devices = append(all.Devices(), late.Devices()...)
	if f.SetCards != nil {
		if err := f.SetCards(append(all.Transports(), late.Transports()...)); err != nil {
			return m, err
		}
	}
	load := all.Loads(info)[info.Node]
	p.e.Progress.Lock()
	p.e.Progress.SetSpin(f.Spin, yieldsOf(load), load <= 1, all.Monitor(info, mine), loadEvery)
	p.e.Progress.Unlock()
	for _, c := range all {
		m.blocks = append(m.blocks, shmsync.Token(c.Block))
	}
	m.nccl, m.oneClock = all[0].NCCL, all.OneClock()
	m.rules, err = all.Agreed(info)
	return m, err
}

// card returns this rank's card for all ranks. block is the block of shared memory that it has
// taken.
func (cfg settings) card(f network.Connection, block shmsync.Token) (network.Card, error) {
	info := f.Boot.Info()
	c := network.NewCard(info.Nodes)
	c.Block, c.Devices, c.NCCL = uint64(block), mem.MayHaveDevices(), cfg.CUDA != ""
	if f.Card != nil {
		c.Transport = f.Card()
	}
	if info.Rank == 0 {
		rules := path.Rules{Deterministic: cfg.Deterministic}
		if err := rules.Tune(tuning()); err != nil {
			return c, err
		}
		if err := rules.Tune(cfg.Tuning); err != nil {
			return c, fmt.Errorf("%s: %w", env.Tune, err)
		}
		if os.Getenv(env.Profile) != "" {
			rules.Ignored = append(rules.Ignored, env.Profile)
		}
		for _, name := range rules.Ignored {
			cfg.loud().Warn(name + " has no effect any more: ranks measure which copy is fastest")
		}
		c.Rules = rules.Encode()
	}
	return c, nil
}

// tuning is this machine's.
var tuning = machine.Tuning

// loud returns a Logger for a user whose settings have no effect.
func (cfg settings) loud() *slog.Logger {
	if !cfg.silent {
		return cfg.Logger
	}
	log, _ := env.NewLogger("warn", os.Stderr)
	return log
}

// resolve fills the fields that are zero from the environment.
func (cfg *settings) resolve() error {
	if cfg.CUDA == "" {
		cfg.CUDA = env.String(env.CUDA)
	}
	if cfg.CUDA != "" && cfg.CUDA != "nccl" {
		return fmt.Errorf("%s=%q: want nccl", env.CUDA, cfg.CUDA)
	}
	if cfg.Transport == "" {
		cfg.Transport = env.String(env.Transport)
	}
	if err := cfg.network().Check(); err != nil {
		return err
	}
	if cfg.Logger == nil {
		spec := env.String(env.Log)
		if _, ucx := cfg.network().AsksUCX(); spec == "" && (ucx || cfg.CUDA != "") {
			spec = "warn" // a user who asks for UCX or NCCL must learn why they are not used
		}
		l, err := env.NewLogger(spec, os.Stderr)
		if err != nil {
			return err
		}
		cfg.Logger, cfg.silent = l, spec == ""
	}
	if cfg.EagerLimit == 0 {
		cfg.readsSooner = !env.IsSet(env.Eager)
		n, err := env.Bytes(env.Eager)
		if err != nil {
			return err
		}
		cfg.EagerLimit = int(n)
	}
	if cfg.Tuning == "" {
		cfg.Tuning = env.String(env.Tune)
	}
	d, wrong := env.Bool(env.Deterministic)
	keep, err := env.Bool(env.KeepScheduling)
	cfg.Deterministic, cfg.KeepScheduling = cfg.Deterministic || d, cfg.KeepScheduling || keep
	return errors.Join(wrong, err)
}

func initError(rank world.Rank, err error) error {
	return &Error{Op: "init", Comm: firstName, Rank: int(rank), Peer: -1, Err: err}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// logCarried logs the traffic of each transport. Shared-memory collectives use no transport.
func (p *process) logCarried(rank world.Rank) {
	if !p.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	carried := p.e.Carried()
	for _, name := range slices.Sorted(maps.Keys(carried)) {
		c := carried[name]
		p.log.Info("carried", "rank", rank, "transport", name, "messages", c.Messages, "bytes", c.Bytes)
	}
}

// logWays logs the Paths and algorithms of c's collectives, a line for each.
func (c *Comm) logWays(ctx context.Context) {
	l := c.log.With(env.LogPart, env.LogTuning)
	if !l.Enabled(ctx, slog.LevelInfo) {
		return
	}
	l.Info(fmt.Sprintf("%d ranks of %d hosts: from this many bytes, of the vector or of one rank's block, "+
		"collectives go through", c.Size(), len(c.hosts())))
	for line := range strings.Lines(c.exec.Paths.Describe()) {
		l.Info(strings.TrimSpace(line))
	}
}

// unexpected returns the memory that this rank may use for unexpected messages: an equal share of a
// sixteenth of the host's memory.
func unexpected(info *boot.Info) int {
	return int(seg.MemoryLimit().Of / 16 / int64(max(info.LocalSize, 1)))
}
