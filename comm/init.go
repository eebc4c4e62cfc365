package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"gompi/comm/internal/card"
	"gompi/comm/internal/engine"
	"gompi/comm/internal/exec"
	"gompi/comm/internal/logging"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmsync"
	"gompi/internal/boot"
	"gompi/internal/env"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Config says how a rank takes part. The zero value is what Init uses: every
// field then has the value of its environment variable, or else the default.
type Config struct {
	// Logger gets what is worth knowing but no error. Its handler runs in the midst of
	// operations, so it must not call this package. Default: GOMPI_LOG.
	Logger *slog.Logger
	// Deterministic makes reductions give the same bits whatever the algorithm,
	// the transport and the length, in exchange for speed. Equal on all ranks.
	// Default: GOMPI_DETERMINISTIC.
	Deterministic bool
	// EagerLimit is the largest message, in bytes, that Send sends before its
	// receive is posted. Default: GOMPI_EAGER, or 64 KiB. Negative: none.
	EagerLimit int
	// Tuning overrides the choice of collective algorithms; rank 0's counts. Calls
	// that one of its rules fits go by messages then, within a host too; all others
	// go as they do without. Default: GOMPI_TUNE.
	Tuning string
	// DeviceArena is how many bytes of device memory a rank takes for each Comm whose
	// collectives are done on devices: those of 32 KiB and more among ranks of one host, whose
	// buffers are all on devices that reach each other. They are taken at the first such
	// collective. Reductions with functions, or with Deterministic, go through host memory.
	// Negative: all do. The least of all ranks counts. Default: GOMPI_DEVICE_ARENA, or 32 MiB.
	DeviceArena int
	// CUDA may be "nccl": NVIDIA's library does collectives of 32 KiB and more whose buffers all
	// ranks, on one host or several, have on devices of their own. Scans, exchanges in place and
	// reductions that NCCL does not know go as without it. The first one of a Comm takes some
	// seconds. Rounding and NaN are as NCCL has them. Rank 0's counts. Default: GOMPI_CUDA, or none.
	CUDA string
	// Transport is the only transport to use: "tcp". Default: GOMPI_TRANSPORT, or
	// shared memory within a host and TCP between hosts.
	Transport string
	// KeepScheduling leaves GOMAXPROCS and the slices of time of this process's threads
	// as they are. Default: GOMPI_KEEP_SCHEDULING.
	KeepScheduling bool
}

// Init joins the job that this process belongs to and returns its world: the
// communicator of all ranks. It is collective, and called once per process. A
// process that no launcher started is a world of one. If another launcher
// started it as one of several that gompi cannot join, Init fails.
//
// Init installs no signal handler. If the job has several ranks, it raises
// GOMAXPROCS to 2 if it is 1: messages move while the program computes only if Go
// has a processor to spare. And it asks the scheduler of Linux (6.12) for short
// slices of time, for the threads of this process and those started later that wait for
// messages, but not for other processes that they start: they have the processor as
// long in all, and oftener. Config.KeepScheduling refuses both.
func Init(ctx context.Context) (*Comm, error) { return Config{}.Init(ctx) }

// Init is the function Init with cfg.
func (cfg Config) Init(ctx context.Context) (*Comm, error) {
	b, err := boot.Open(ctx)
	if err != nil {
		return nil, initError(world.None, err)
	}
	if err := cfg.resolve(); err != nil {
		return nil, initError(b.Info().Rank, err)
	}
	f, err := cfg.fabric(b)
	if err != nil {
		return nil, initError(b.Info().Rank, err)
	}
	return cfg.Join(ctx, f)
}

// Join makes this process or goroutine a rank of the job that f connects it to.
func (cfg Config) Join(ctx context.Context, f Fabric) (*Comm, error) {
	c, err := cfg.join(ctx, f)
	if err != nil {
		return nil, initError(f.Boot.Info().Rank, err)
	}
	return c, nil
}

func (cfg Config) join(ctx context.Context, f Fabric) (*Comm, error) {
	if err := cfg.resolve(); err != nil {
		return nil, err
	}
	info := f.Boot.Info()
	p := &process{boot: f.Boot, rec: info.Flight(), log: cfg.Logger}
	e := engine.New(engine.Config{
		Rank: info.Rank, Size: info.Size, Host: info.Host, Boot: f.Boot, Parker: f.Parker,
		Yield: f.Yield, Eager: max(cfg.EagerLimit, 0), Log: cfg.Logger, Left: leftOf(info),
		Lender: &p.staging,
	})
	p.e = e
	f.Boot.SetWake(f.Parker.Wake)
	trs, err := f.Connect(e, e.News)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	for _, t := range trs {
		e.Use(t)
	}
	p.leave = func(ctx context.Context) error { return f.leave(ctx, e) }
	if f.memory != nil {
		p.memory = f.memory()
	}
	met, err := cfg.meet(ctx, f, p)
	if err != nil {
		p.leave(canceled())
		return nil, err
	}
	p.withDevices, p.wantsNCCL, p.arena = met.devices, met.library, max(cfg.DeviceArena, 0)
	c := p.newComm("world", e.Open(engine.NextID(0, 0), nil), met.rules)
	c.furnish(met.block, met.blocks)
	if r := c.withoutDevices(); p.wantsNCCL && r >= 0 {
		c.warn(exec.WithoutNCCL, fmt.Errorf("rank %d (host %s) has no devices", r, c.ch.Host(r)))
	}
	if info.Rank == 0 {
		c.logWays(ctx)
	}
	return c, nil
}

// leave ends this rank's part in the job.
func (f Fabric) leave(ctx context.Context, e *engine.Engine) error {
	f.Boot.Info().Flight().Leaving(seg.Now())
	err := e.Shutdown(ctx)
	err = errors.Join(err, f.Boot.Goodbye())
	return errors.Join(err, f.close())
}

func (f Fabric) close() error {
	if f.Close == nil {
		return nil
	}
	return f.Close()
}

// leftOf returns a function that tells which ranks of this host have left in good order,
// if there is a segment to read it from. Of those that died the launcher will tell, who
// may not know it yet when the segment says that they have ended.
func leftOf(info *boot.Info) func(world.Rank) bool {
	s := info.Segment
	if s == nil {
		return nil
	}
	local := localRanks(s)
	return func(rank world.Rank) bool {
		i, ok := local[rank]
		return ok && (s.State(i) == seg.Closed || s.State(i) == seg.Ended && s.LeftAt(i) != 0)
	}
}

// endedOf returns a function that tells which ranks of this host touch their memory no
// more.
func endedOf(info *boot.Info) func(world.Rank) bool {
	local := localRanks(info.Segment)
	return func(rank world.Rank) bool {
		i, ok := local[rank]
		return ok && info.Segment.State(i) >= seg.Closed
	}
}

// localRanks returns the local ranks of a host's ranks.
func localRanks(s *seg.Segment) map[world.Rank]world.LocalRank {
	local := make(map[world.Rank]world.LocalRank, s.Ranks())
	for i := range world.LocalRank(s.Ranks()) {
		local[s.WorldRank(i)] = i
	}
	return local
}

// A meeting is what a rank knows when all have met.
type meeting struct {
	rules   *path.Rules     // that all will choose by
	block   shmsync.Token   // taken for the world's room
	blocks  []shmsync.Token // by all
	devices []bool          // by rank: it may have some
	library bool            // of devices, is wanted
}

// judgeEvery is how long a judgement on processors serves at least, but in tests.
var judgeEvery = 30 * time.Second

// meet exchanges cards with all ranks.
func (cfg Config) meet(ctx context.Context, f Fabric, p *process) (m meeting, err error) {
	info := f.Boot.Info()
	m.block = p.take()
	mine := card.Mine(info.Nodes)
	mine.Block, mine.Devices, mine.NCCL = uint64(m.block), mem.MayHaveDevices(), cfg.CUDA != ""
	if f.Card != nil {
		mine.Transport = f.Card()
	}
	if info.Rank == 0 {
		rules := path.Rules{Deterministic: cfg.Deterministic}
		if err := rules.Tune(cfg.Tuning); err != nil {
			return m, fmt.Errorf("%s: %w", env.Tune, err)
		}
		mine.Rules = rules.Encode()
	}
	encoded := [][]byte{mine.Encode()}
	if info.Size > 1 {
		if encoded, err = f.Boot.Allgather(ctx, encoded[0]); err != nil {
			return m, err
		}
	}
	all, err := card.Decode(encoded)
	if err != nil {
		return m, err
	}
	if f.Meet != nil {
		if err := f.Meet(all.Transports()); err != nil {
			return m, err
		}
	}
	notOversubscribed := all.Loads(info)[info.Node] <= 1
	p.e.SetPatience(f.Spin, yields, notOversubscribed, all.Monitor(info), judgeEvery)
	for _, c := range all {
		m.blocks = append(m.blocks, shmsync.Token(c.Block))
	}
	m.devices, m.library = all.Devices(), all[0].NCCL
	m.rules, err = all.Agreed(info)
	return m, err
}

// resolve fills the fields that are zero from the environment.
func (cfg *Config) resolve() error {
	if cfg.CUDA == "" {
		cfg.CUDA = env.String(env.CUDA)
	}
	if cfg.CUDA != "" && cfg.CUDA != "nccl" {
		return fmt.Errorf("%s=%q: want nccl", env.CUDA, cfg.CUDA)
	}
	if cfg.Logger == nil {
		spec := env.String(env.Log)
		if spec == "" && cfg.CUDA != "" {
			spec = "warn" // who asks for NCCL is told why there is none
		}
		l, err := logging.New(spec, os.Stderr)
		if err != nil {
			return err
		}
		cfg.Logger = l
	}
	if cfg.EagerLimit == 0 {
		n, err := env.Bytes(env.Eager)
		if err != nil {
			return err
		}
		cfg.EagerLimit = int(n)
	}
	if cfg.DeviceArena == 0 {
		n, err := env.Bytes(env.DeviceArena)
		if err != nil {
			return err
		}
		if cfg.DeviceArena = int(n); n == 0 {
			cfg.DeviceArena = -1
		}
	}
	if cfg.Tuning == "" {
		cfg.Tuning = env.String(env.Tune)
	}
	if cfg.Transport == "" {
		cfg.Transport = env.String(env.Transport)
	}
	if cfg.Transport != "" && cfg.Transport != "tcp" {
		return fmt.Errorf("%s=%q: want tcp", env.Transport, cfg.Transport)
	}
	d, wrong := env.Bool(env.Deterministic)
	keep, err := env.Bool(env.KeepScheduling)
	cfg.Deterministic, cfg.KeepScheduling = cfg.Deterministic || d, cfg.KeepScheduling || keep
	return errors.Join(wrong, err)
}

func initError(rank world.Rank, err error) error {
	return &Error{Op: "init", Comm: "world", Rank: int(rank), Peer: -1, Err: err}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// logWays logs what the collectives of c go through, and by which algorithms, a line for
// each.
func (c *Comm) logWays(ctx context.Context) {
	l := c.log.With(logging.Part, logging.Tuning)
	if !l.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for line := range strings.Lines(c.ways()) {
		l.Info(strings.TrimSpace(line))
	}
}

// ways says how the collectives of c are done, in a line for each and the bytes from which on.
func (c *Comm) ways() string {
	return fmt.Sprintf("%d ranks of %d hosts: from so many bytes, of the vector or of one rank's block, collectives go through\n%s",
		c.Size(), len(c.hosts()), c.exec.Paths.Describe())
}
