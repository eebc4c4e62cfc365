package ctl

import (
	"math"
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
)

// Layout is the placement of the job's ranks. Layout precedes Launch, and is the same for all
// agents, so that it is sent to many at once.
type Layout struct {
	Placement []wire.Run // of all ranks, in rank order
	Hosts     []string   // names of the nodes
}

func (m *Layout) fields(c *wire.Codec) {
	c.Placement(&m.Placement)
	c.Strings(&m.Hosts, maxList, MaxText)
}

// Launch orders an agent to start its ranks.
type Launch struct {
	JobID      string
	Secret     [32]byte
	Size       int
	Node       int
	Nodes      int // of the job
	MasterAddr string
	MasterPort int
	Remote     bool   // the host is not the launcher's: Env is added to the host's own
	Dir        string // the launcher's working directory
	Window     int    // bytes of output that may be on their way to the launcher
	// StallWarning is the time in one call after which the agent reports a rank; 0 means never.
	StallWarning time.Duration
	// KeepChildren lets processes left by ranks live on when the job ends well.
	KeepChildren bool
	// Heartbeat is the period of the launcher's pings; 0 for none.
	Heartbeat time.Duration
	Stacks    bool     // ranks must be ready to send their stacks
	Stdin     int      // the rank that gets input; StdinAll, StdinNone
	Inherit   bool     // that rank gets the launcher's standard input itself, through the agent
	Bindings  bool     // report the kernel's bindings of ranks
	Recover   bool     // the job continues when a rank dies
	Spares    int      // places on each node for replacements
	Merge     bool     // stderr of the ranks goes into the pipe of their stdout
	Srun      bool     // the agent is behind srun
	Virtual   bool     // LOCAL_RANK is 0 on all ranks
	Stats     bool     // ranks count their calls
	Trace     bool     // and keep the latest calls
	Cores     int      // of this host, to be shared by its ranks
	MPILib    string   // the user's choice, a cmdline.MPILib
	MPIFolder string   // folder of gompi's MPI libraries on the launcher's host, perhaps here, too
	Env       []string // of all programs
	Programs  []Program
	Files     []File
	MPI       []File // gompi's MPI libraries, named with folders, to send to hosts without them
	Ranks     []Rank // of this host, in ascending order
}

// A File is a file that may be sent to hosts.
type File struct {
	Name string // without folders
	Sum  string // SHA-256
	Size int64
	Mode int // permissions
}

// Values of Launch.Stdin that stand for no rank, and for all.
const (
	StdinNone = -1
	StdinAll  = -2
)

// A Program is the program of some ranks.
type Program struct {
	Argv []string
	Env  []string // added to Launch.Env, taking precedence
	Sum  string   // SHA-256 of the program, if it may be sent to hosts without it; or ""
	Size int64    // of the program, with Sum
	Wdir string   // "" for Launch.Dir, or the home directory where that is missing
}

// Fields codes the fields of p.
func (p *Program) Fields(c *wire.Codec) {
	c.Strings(&p.Argv, maxList, maxString)
	c.Strings(&p.Env, maxList, maxString)
	c.String(&p.Wdir, maxString)
	c.String(&p.Sum, MaxText)
	wire.Int(c, &p.Size, 0, math.MaxInt64)
}

// A Rank is a process to start.
type Rank struct {
	Rank    int
	Program int
	CPUs    []int  // nil: do not bind
	GPUs    string // CUDA_VISIBLE_DEVICES; "" for no change
}

func (m *Launch) fields(c *wire.Codec) {
	c.String(&m.JobID, MaxText)
	c.Fixed(m.Secret[:])
	wire.Int(c, &m.Size, 1, wire.MaxRanks)
	c.Rank(&m.Node)
	c.Rank(&m.Nodes)
	c.String(&m.MasterAddr, MaxText)
	wire.Int(c, &m.MasterPort, 0, math.MaxUint16)
	c.Bools(&m.Remote)
	c.String(&m.Dir, MaxText)
	wire.Int(c, &m.Window, 0, math.MaxInt32)
	wire.Int(c, &m.Stdin, StdinAll, wire.MaxRanks)
	wire.Int(c, &m.StallWarning, 0, math.MaxInt64)
	wire.Int(c, &m.Heartbeat, 0, math.MaxInt64)
	c.Bools(&m.Inherit, &m.Stacks, &m.Bindings, &m.Merge, &m.Recover, &m.KeepChildren, &m.Virtual, &m.Srun,
		&m.Stats, &m.Trace)
	c.Rank(&m.Spares)
	wire.Int(c, &m.Cores, 0, maxCPU)
	c.String(&m.MPILib, MaxText)
	c.String(&m.MPIFolder, MaxText)
	c.Strings(&m.Env, maxList, maxString)
	wire.List(c, &m.Programs, maxList, func(p *Program) { p.Fields(c) })
	for _, files := range []*[]File{&m.Files, &m.MPI} {
		wire.List(c, files, maxList, func(f *File) {
			c.String(&f.Name, MaxText)
			c.String(&f.Sum, MaxText)
			wire.Int(c, &f.Size, 0, math.MaxInt64)
			wire.Int(c, &f.Mode, 0, 0o777)
		})
	}
	wire.List(c, &m.Ranks, maxList, func(r *Rank) {
		c.Rank(&r.Rank)
		wire.Int(c, &r.Program, 0, int64(max(0, len(m.Programs)-1)))
		ints(c, &r.CPUs, maxCPU)
		c.String(&r.GPUs, maxString)
	})
}

// Input is standard input for the ranks of Launch.Stdin. Empty Data is its end.
type Input struct{ Data []byte }

func (m *Input) fields(c *wire.Codec) { c.Bytes(&m.Data, MaxChunk) }

// Credit reports that this many bytes of Output have been written.
type Credit struct{ Bytes int }

func (m *Credit) fields(c *wire.Codec) { wire.Int(c, &m.Bytes, 0, math.MaxInt32) }

// Signal orders a signal to the process groups of all ranks.
type Signal struct{ Number int }

func (m *Signal) fields(c *wire.Codec) { wire.Int(c, &m.Number, 1, 64) }

// Ask asks for the calls of the ranks; the answer is Doing. With ranks in Stacks, it asks for
// their stacks, and the answers are Stacks.
type Ask struct {
	Stacks []int
	Counts bool // with usage and counters, and with a line of Details alone: more take long
}

func (m *Ask) fields(c *wire.Codec) {
	ints(c, &m.Stacks, wire.MaxRanks)
	c.Bools(&m.Counts)
}

// Gathered passes the ranks the cards of all ranks of the job, undecoded.
type Gathered struct{ Frame []byte } // of a wire.Cards

func (m *Gathered) fields(c *wire.Codec) { c.Bytes(&m.Frame, maxFrame) }

// ToRanks passes the ranks a message: a wire.Died, Left, Revoked or Outcome.
type ToRanks struct{ Frame []byte }

func (m *ToRanks) fields(c *wire.Codec) { c.Bytes(&m.Frame, maxFrame) }

// NewToRanks returns the message that passes m to the ranks.
func NewToRanks(m wire.Message) *ToRanks { return &ToRanks{Frame: wire.Append(nil, m)} }

// Absent reports that a rank exited with status 0 without joining, or as a PMI client. Others
// would wait for it in vain, in Init or in a PMI barrier.
type Absent struct{ Rank int }

func (m *Absent) fields(c *wire.Codec) { c.Rank(&m.Rank) }

// Terminate ends the ranks: TERM, and KILL after Delay. A Delay of 0 kills at once. With
// Interrupt they get INT, as from a terminal, and TERM that much later.
type Terminate struct {
	Interrupt, Delay time.Duration
	Text             string
}

func (m *Terminate) fields(c *wire.Codec) {
	wire.Int(c, &m.Interrupt, 0, math.MaxInt64)
	wire.Int(c, &m.Delay, 0, math.MaxInt64)
	c.Prose(&m.Text, wire.MaxText)
}

// Ping asks for a Pong at once.
type Ping struct{ Sent int64 } // the launcher's clock, nanoseconds since 1970

func (m *Ping) fields(c *wire.Codec) { wire.Int(c, &m.Sent, math.MinInt64, math.MaxInt64) }

// FindGPUs asks an agent without ranks for the GPUs of its host. The answer is GPUs, which may
// take seconds.
type FindGPUs struct{}

func (*FindGPUs) fields(*wire.Codec) {}

// Piece is the next part of a program or file. An empty Piece reports that the requested program or
// file has no further part.
type Piece struct{ Data []byte }

func (m *Piece) fields(c *wire.Codec) { c.Bytes(&m.Data, MaxPiece) }

// MaxPiece is the most bytes of a Piece.
const MaxPiece = 1 << 20

// Fenced announces that all ranks of the job are in PMI's barrier, and the values that they have
// put since the last barrier.
type Fenced struct{ Puts []string } // keys and values in turn

func (m *Fenced) fields(c *wire.Codec) { c.Strings(&m.Puts, maxPuts, pmi.MaxValue) }

// Replace orders an agent to start a process in one of its spare places, in the same way as one
// of its first ranks. The answer is its card in a FromRank, or Exited or Failed.
type Replace struct {
	Rank     int // of the next free place
	Original int // the rank of Launch that it replaces
	Invite   wire.Invite
}

func (m *Replace) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Rank(&m.Original)
	m.Invite.Fields(c)
}

// Brief passes a replacement the cards of all places, and the deaths so far, undecoded.
type Brief struct {
	Rank   int
	Frames []byte // of a wire.Cards, and of a wire.Died for each death
}

func (m *Brief) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Bytes(&m.Frames, maxFrame)
}

// NoMore notifies an agent that all ranks of the job have ended, so that none will be replaced.
// If the job has failed, Terminate has been sent earlier.
type NoMore struct{}

func (*NoMore) fields(*wire.Codec) {}

// Nudge is sent to an agent behind srun while more of its output is expected; the agent ignores
// it. Slurm's daemon there does not set TCP_NODELAY either (see remote), and its sockets are out
// of reach. Its next segment waits 40 ms for our acknowledgement, which a Nudge carries at once.
type Nudge struct{}

func (*Nudge) fields(*wire.Codec) {}
