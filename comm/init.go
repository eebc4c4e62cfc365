package comm

import (
	"context"
	"log/slog"

	"gompi/internal/core"
	"gompi/internal/version"
)

// Config specifies how a rank takes part. Init uses the zero value: every field then has the value
// of its environment variable, or else the default.
type Config struct {
	// Logger gets notable events that are no errors. Its handler runs in the midst of operations,
	// so it must not call this package. Default: GOMPI_LOG.
	Logger *slog.Logger
	// Deterministic makes reductions give the same bits with any algorithm, transport and length,
	// at the cost of speed. Equal on all ranks. Default: GOMPI_DETERMINISTIC.
	Deterministic bool
	// EagerLimit is the largest message, in bytes, that Send sends before its receive is posted.
	// Default: GOMPI_EAGER, or 64 KiB, and less inside a host whose processors copy faster from the
	// sender's memory (shm.read in docs/tuning.md: from 32 KiB on): such a message waits until its
	// receiver makes a call. Negative: every message with elements waits for its receive.
	EagerLimit int
	// Tuning overrides the choice of collective algorithms; rank 0's counts. Calls that match one
	// of its rules then use messages, within a host too; all other calls are unaffected. Default:
	// GOMPI_TUNE.
	Tuning string
	// CUDA may be "nccl": then NCCL does the collectives of 32 KiB and more for which every rank,
	// on any host, has its buffers on a device of its own, except scans, in-place alltoalls and
	// reductions that NCCL does not have. The first such collective of a Comm takes some seconds.
	// Rounding and NaN are those of NCCL. Rank 0's value counts. Default: GOMPI_CUDA, or none.
	CUDA string
	// Transport is "tcp": TCP only, also within a host. "ucx": as the default, and Logger reports
	// why there is no RDMA. Default: GOMPI_TRANSPORT, or shared memory within a host, and between
	// hosts RDMA if all ranks have it, else TCP.
	Transport string
	// KeepScheduling leaves GOMAXPROCS and the time slices of this process's threads unchanged.
	// Default: GOMPI_KEEP_SCHEDULING.
	KeepScheduling bool
}

// Init joins the job that this process belongs to and returns its world: the communicator of all
// ranks (MPI_Init). It is collective, and called once per process. A process without a launcher is
// a world of one. If another launcher started the process as one of several that gompi cannot join,
// Init fails.
//
// In a job of several ranks Init changes two settings, unless Config.KeepScheduling is set. Init
// raises GOMAXPROCS from 1 to 2, since messages move while the program computes only if Go has a
// processor to spare. And Init asks the scheduler of Linux (6.12 or newer) for shorter time slices
// for the threads of this process that wait for messages: they get the same processor time in all,
// but more often. Processes that this one starts are not affected. Init installs no signal handler.
func Init(ctx context.Context) (*Comm, error) { return Config{}.Init(ctx) }

// Init is the function Init with cfg.
func (cfg Config) Init(ctx context.Context) (*Comm, error) {
	return made(core.Init(ctx, core.Config(cfg), nil))
}

// Version returns the version of the library, with its commit, for people
// (MPI_Get_library_version).
func Version() string { return version.Build() }
