package ctl

import (
	"math"
	"net/netip"
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/internal/stats"
)

// Hello is an agent's first message, the description of its host.
type Hello struct {
	Version string
	Host    string  // the host's own name
	Machine string  // the same for all agents on one machine, under any name
	Network string  // the same for all agents with one loopback interface: sockets.Network
	Port    int     // held for MASTER_PORT, 0 for none
	Cores   [][]int // hardware threads of each usable core
	Numa    [][]int // hardware threads of each memory domain

	L3       [][]int // hardware threads of each level 3 cache
	Packages [][]int // hardware threads of each processor package
	Quota    int     // processors' worth of time for all ranks, rounded up; 0: no limit

	// The ends of the connection by which the launcher reached the host: the host's address, and the
	// launcher's as the host sees it. Empty if unknown.
	Address, Launcher string

	// Addresses are the addresses by which other hosts may reach the host, with their subnets.
	Addresses []netip.Prefix
}

func (m *Hello) fields(c *wire.Codec) {
	c.String(&m.Version, MaxText)
	c.String(&m.Host, MaxText)
	c.String(&m.Machine, MaxText)
	c.String(&m.Network, MaxText)
	wire.Int(c, &m.Port, 0, math.MaxUint16)
	sets(c, &m.Cores)
	sets(c, &m.Numa)
	sets(c, &m.L3)
	sets(c, &m.Packages)
	wire.Int(c, &m.Quota, 0, maxCPU)
	c.String(&m.Address, MaxText)
	c.String(&m.Launcher, MaxText)
	prefixes(c, &m.Addresses)
}

func prefixes(c *wire.Codec, v *[]netip.Prefix) {
	wire.List(c, v, maxList, func(p *netip.Prefix) { c.Text(p, MaxText) })
}

// sets encodes or decodes lists of CPU numbers.
func sets(c *wire.Codec, v *[][]int) {
	wire.List(c, v, maxCPU, func(set *[]int) { ints(c, set, maxCPU) })
}

// ints encodes or decodes a list of numbers from 0 to limit.
func ints(c *wire.Codec, v *[]int, limit int64) {
	wire.List(c, v, maxList, func(n *int) { wire.Int(c, n, 0, limit) })
}

// Started reports that all ranks of a host have been started.
type Started struct {
	PIDs []int   // in the order of Launch.Ranks
	CPUs [][]int // the kernel's binding of each rank, if Launch asked
}

func (m *Started) fields(c *wire.Codec) {
	ints(c, &m.PIDs, math.MaxInt32)
	sets(c, &m.CPUs)
}

// Failed reports that a rank could not be started.
type Failed struct {
	Rank int
	Code int // exit status for this failure
	Text string
}

func (m *Failed) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.Int(c, &m.Code, 0, 255)
	c.Prose(&m.Text, MaxText)
}

// A Stream is one of a rank's standard streams.
type Stream byte

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// String returns the users' name of the stream.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Output is a piece of a rank's output: whole lines or, without a newline at its end, also the
// beginning of a line that has waited too long for its end.
type Output struct {
	Rank   int
	Stream Stream
	Data   []byte
}

func (m *Output) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.Uint(c, &m.Stream, uint64(Stderr))
	c.Bytes(&m.Data, MaxOutput)
}

// Cost is the credit that Output of n bytes takes: small pieces are not free.
func Cost(n int) int { return n + 64 }

// Consumed reports that this many bytes of Input have been passed on, or dropped.
type Consumed struct{ Bytes int }

func (m *Consumed) fields(c *wire.Codec) { wire.Int(c, &m.Bytes, 0, math.MaxInt32) }

// Cards holds the cards of all ranks of the host, in the order of Launch.Ranks.
type Cards struct{ Data [][]byte }

func (m *Cards) fields(c *wire.Codec) { c.Cards(&m.Data) }

// FromRank passes on a rank's message: a wire.Revoke, Inquire, Leave, Vote or Abort, or the Card of
// a replacement.
type FromRank struct {
	Rank  int
	Time  int64 // of its arrival at the agent, nanoseconds since 1970
	Frame []byte
}

func (m *FromRank) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.Int(c, &m.Time, math.MinInt64, math.MaxInt64)
	c.Bytes(&m.Frame, maxFrame)
}

// Alone reports that a rank runs an MPI program as a job of one, because its ranks cannot meet.
type Alone struct {
	Rank int
	PID  int    // of that program
	Why  string // "it uses Open MPI ..."
	Sure bool   // the program cannot have met the other ranks in another way
}

func (m *Alone) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.Int(c, &m.PID, 0, math.MaxInt32)
	c.Prose(&m.Why, MaxText)
	c.Bools(&m.Sure)
}

// Exited reports the end of a rank's process. All its output has been sent, as far as there was
// credit.
type Exited struct {
	Rank   int
	PID    int
	Code   int   // exit status, if Signal is 0
	Signal int   // the signal that killed it
	Time   int64 // nanoseconds since 1970
	Joined bool  // it called Init
	Closed bool  // it closed its communicators
	PMI    bool  // it is a rank of another MPI library: it called MPI_Init, or MPI_Finalize
	MPI    bool  // its program calls MPI functions, of any library
	Core   bool  // it left a core dump
	// CoreFile is the core's file, or "|" and the program that got it; "" if unknown.
	CoreFile string
	// NoMemory reports that the kernel killed processes for lack of memory meanwhile.
	NoMemory bool
	// Unaware states that the launcher had notified this host of no failure, and of no end of the
	// job.
	Unaware bool
	RSS     int64 // largest resident set, in bytes
	Tail    []byte
	// Recorded is the rank's own record of its failure, at Time, or, after status 0, the reason why
	// it could not leave the job: one line, "" for nothing.
	Recorded string
}

func (m *Exited) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	wire.Int(c, &m.PID, 0, math.MaxInt32)
	wire.Int(c, &m.Code, 0, 255)
	wire.Int(c, &m.Signal, 0, 255)
	wire.Int(c, &m.Time, math.MinInt64, math.MaxInt64)
	c.Bools(&m.Joined, &m.Closed, &m.Core, &m.PMI, &m.MPI, &m.NoMemory, &m.Unaware)
	wire.Int(c, &m.RSS, 0, math.MaxInt64)
	c.Bytes(&m.Tail, MaxText)
	c.Prose(&m.Recorded, MaxText)
	c.Prose(&m.CoreFile, MaxText)
}

// Doing answers Ask with the calls of a host's ranks that have not ended.
type Doing struct {
	Ranks  []RankDoing
	Counts bool   // as in Ask
	GPUs   []byte // as GPUs.Found, with their use; nil without NVML
}

// RankDoing is the activity of a rank.
type RankDoing struct {
	Rank  int
	PID   int           // of the joined process, or else the started process
	Text  string        // "is in allreduce(1024 float32, sum) number 17"
	Site  string        // place in the program, "" if unknown
	Since time.Duration // time in the call, 0 if unknown
	In    Mark          // the current collective; Seq is 0 for none
	Marks []Mark        // the last collective begun on each known communicator

	Kept string // obstacle to its process's running, "" for none

	Details string // lines about a program without gompi, "" for none
	Counts  Counts // zero unless asked for
}

// Counts are a rank's usage and counters since its beginning.
type Counts struct {
	Recorded uint64        // calls in its flight recorder: collectives, and messages that waited long
	CPU      time.Duration // of its process
	RSS      int64         // resident bytes of its process

	Stats bool         // it counts its calls (gompirun -stats)
	Total stats.Counts // of all its calls
}

func (m *Counts) fields(c *wire.Codec) {
	wire.Uint(c, &m.Recorded, math.MaxUint64)
	wire.Int(c, &m.CPU, 0, math.MaxInt64)
	wire.Int(c, &m.RSS, 0, math.MaxInt64)
	c.Bools(&m.Stats)
	counts(c, &m.Total)
}

// A Mark is a collective: the communicator's id, and its number there, from 1.
type Mark struct {
	Comm uint64
	Seq  int64
}

func (m *Mark) fields(c *wire.Codec) {
	wire.Uint(c, &m.Comm, math.MaxUint64)
	wire.Int(c, &m.Seq, 0, math.MaxInt64)
}

func (m *Doing) fields(c *wire.Codec) {
	wire.List(c, &m.Ranks, maxList, func(r *RankDoing) {
		c.Rank(&r.Rank)
		wire.Int(c, &r.PID, 0, math.MaxInt32)
		c.Prose(&r.Text, MaxText)
		c.Prose(&r.Site, MaxText)
		c.Prose(&r.Kept, MaxText)
		wire.Int(c, &r.Since, 0, math.MaxInt64)
		r.In.fields(c)
		wire.List(c, &r.Marks, maxList, func(m *Mark) { m.fields(c) })
		c.Prose(&r.Details, MaxText)
		r.Counts.fields(c)
	})
	c.Bools(&m.Counts)
	c.Bytes(&m.GPUs, maxGPUs)
}

// Stalled reports that a rank of the host has been in one call for longer than
// Launch.StallWarning, or that no rank is any more.
type Stalled struct {
	On    bool
	Since time.Duration // the longest time
}

func (m *Stalled) fields(c *wire.Codec) {
	c.Bools(&m.On)
	wire.Int(c, &m.Since, 0, math.MaxInt64)
}

// Drained is an agent's last message: all its ranks have ended, all their output has been sent,
// and none of their children is left. With Launch.Srun the agent then waits until the channel is
// closed.
type Drained struct {
	Killed int    // processes left by ranks
	Frames string // of the first crash in C, innermost first, a line each; "" if unknown
	Rank   int    // that crashed
}

func (m *Drained) fields(c *wire.Codec) {
	wire.Int(c, &m.Killed, 0, math.MaxInt32)
	c.Prose(&m.Frames, MaxText)
	c.Rank(&m.Rank)
}

// Note is a line of news for the user.
type Note struct{ Text string }

func (m *Note) fields(c *wire.Codec) { c.Prose(&m.Text, MaxText) }

// Pong answers Ping.
type Pong struct {
	Sent int64 // from the Ping
	Now  int64 // the agent's clock, nanoseconds since 1970
}

func (m *Pong) fields(c *wire.Codec) {
	wire.Int(c, &m.Sent, math.MinInt64, math.MaxInt64)
	wire.Int(c, &m.Now, math.MinInt64, math.MaxInt64)
}

// Stacks reports a rank's place in its program: the stacks of its goroutines, or else the
// kernel's knowledge of its threads.
type Stacks struct {
	Rank int
	Text string
}

func (m *Stacks) fields(c *wire.Codec) {
	c.Rank(&m.Rank)
	c.Prose(&m.Text, MaxOutput)
}

// GPUs are the GPUs of a host.
type GPUs struct {
	Found   []byte // a topo.Host as JSON
	Visible string // the agent's own CUDA_VISIBLE_DEVICES
	Limited bool   // that variable is set
}

func (m *GPUs) fields(c *wire.Codec) {
	c.Bytes(&m.Found, maxGPUs)
	c.String(&m.Visible, maxString)
	c.Bools(&m.Limited)
}

// maxGPUs exceeds the JSON of any host, in bytes.
const maxGPUs = 2 << 20

// Want asks for a Piece of a program or file that Launch lists for preloading and that the host
// lacks.
type Want struct {
	Item   int // index into Launch.Programs, Launch.Files and Launch.MPI, one after another
	Offset int64
}

func (m *Want) fields(c *wire.Codec) {
	wire.Int(c, &m.Item, 0, maxList)
	wire.Int(c, &m.Offset, 0, math.MaxInt64)
}

// Fence reports that all ranks of the host, which are clients of PMI-1, are in its barrier, and
// the values that they have put since the last barrier.
type Fence struct{ Puts []string } // keys and values in turn

func (m *Fence) fields(c *wire.Codec) { c.Strings(&m.Puts, maxPuts, pmi.MaxValue) }

// maxPuts bounds keys and values together.
const maxPuts = 2 * wire.MaxRanks
