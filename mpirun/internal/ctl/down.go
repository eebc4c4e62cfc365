package ctl

import (
	"math"
	"time"

	"gompi/internal/boot/wire"
)

// Layout is where the ranks of the job are. It comes before Launch, and is the same for all agents:
// it goes to many at once.
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
	Remote     bool   // the host is not the launcher's: Env is added to its own
	Dir        string // the launcher's working directory
	Window     int    // bytes of output that may be on their way to the launcher
	// StallWarning is how long a rank may be in one call before the agent reports it; 0: forever.
	StallWarning time.Duration
	// KeepChildren lets what ranks have left running live on when the job ends well.
	KeepChildren bool
	// Heartbeat is how often the launcher sends a ping; 0 if it does not.
	Heartbeat time.Duration
	Stacks    bool     // ranks must be ready to send their stacks
	Stdin     int      // the rank that gets input; StdinAll, StdinNone
	Inherit   bool     // it gets the launcher's standard input itself, which the agent has inherited
	Bindings  bool     // report what the ranks are bound to
	Recover   bool     // the job continues when a rank dies
	Spares    int      // places on each node for ranks that replace others
	Merge     bool     // stderr of the ranks goes into the pipe of their stdout
	Srun      bool     // the agent is behind srun
	Virtual   bool     // LOCAL_RANK is 0 on all ranks
	Stats     bool     // ranks count their calls
	Trace     bool     // and keep the latest
	Cores     int      // of this host, to be shared by its ranks
	MPILib    string   // the user's choice, as cmdline.MPILib
	MPIFolder string   // where the launcher's host has gompi's MPI libraries, which this one may have there too
	Env       []string // of all programs
	Programs  []Program
	Files     []File
	MPI       []File // gompi's MPI libraries, their names with folders, if hosts without them may have them sent
	Ranks     []Rank // of this host, in ascending order
}

// A File is one that hosts may have sent to them.
type File struct {
	Name string // without folders
	Sum  string // SHA-256
	Size int64
	Mode int // permissions
}

// Values of Launch.Stdin that name no rank.
const (
	StdinNone = -1
	StdinAll  = -2
)

// A Program is what some ranks run.
type Program struct {
	Argv []string
	Env  []string // added to Launch.Env, taking precedence
	Sum  string   // SHA-256 of the program, if hosts without it may have it sent; or ""
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

// A Rank is one process to start.
type Rank struct {
	Rank    int
	Program int
	CPUs    []int  // nil: do not bind
	GPUs    string // CUDA_VISIBLE_DEVICES; "" leaves it as it is
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
	c.Bools(&m.Inherit, &m.Stacks, &m.Bindings, &m.Merge, &m.Recover, &m.KeepChildren, &m.Virtual, &m.Srun, &m.Stats, &m.Trace)
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

// Input is standard input for the ranks that Launch.Stdin names. Empty Data is
// its end.
type Input struct{ Data []byte }

func (m *Input) fields(c *wire.Codec) { c.Bytes(&m.Data, MaxChunk) }

// Credit reports that this many bytes of Output have been written out.
type Credit struct{ Bytes int }

func (m *Credit) fields(c *wire.Codec) { wire.Int(c, &m.Bytes, 0, math.MaxInt32) }

// Signal is to be sent to the process groups of all ranks.
type Signal struct{ Number int }

func (m *Signal) fields(c *wire.Codec) { wire.Int(c, &m.Number, 1, 64) }

// Ask asks what the ranks are in; the answer is Doing. If it names ranks, it asks
// for their stacks, and Stacks are the answers.
type Ask struct {
	Stacks []int
	Counts bool // what they have used and counted, too, and no Details, which take long
}

func (m *Ask) fields(c *wire.Codec) {
	ints(c, &m.Stacks, wire.MaxRanks)
	c.Bools(&m.Counts)
}

// Gathered holds the cards of all ranks of the job, by rank.
type Gathered struct{ Data [][]byte }

func (m *Gathered) fields(c *wire.Codec) { c.Cards(&m.Data) }

// Died notifies the ranks that one of them failed: by a signal, by its exit status, or by exiting
// with communicators still open.
type Died struct {
	Rank int
	Text string
}

func (m *Died) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Prose(&m.Text, wire.MaxText)
}

// Left notifies the ranks of a host that inquired that a rank has closed its communicators. Upwards
// it reports the same of a rank that does not wait for the end of its process.
type Left struct{ Rank int }

func (m *Left) fields(c *wire.Codec) { c.Rank(&m.Rank) }

// Absent reports that a rank exited with status 0 without joining, or as a PMI client. Others would
// wait for it in vain, in Init or in a PMI barrier.
type Absent struct{ Rank int }

func (m *Absent) fields(c *wire.Codec) { c.Rank(&m.Rank) }

// Revoked notifies the ranks that one of them broke a communicator.
type Revoked struct {
	Rank  int
	Comm  uint64
	Cause []byte
}

func (m *Revoked) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.Uint(c, &m.Comm, math.MaxUint64)
	c.Bytes(&m.Cause, wire.MaxText)
}

// Terminate ends the ranks: TERM, and KILL after Delay. A Delay of 0 kills at once. With Interrupt
// they get INT, as from a terminal, and TERM only that much later.
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
