package ctl

import (
	"math"
	"time"

	"gompi/internal/boot/wire"
)

// Launch tells an agent to start its ranks.
type Launch struct {
	JobID      string
	Secret     [32]byte
	Size       int
	Node       int
	Placement  []wire.Run // of all ranks, in rank order
	Hosts      []string   // names of the nodes
	MasterAddr string
	MasterPort int
	Remote     bool   // the host is not the launcher's: Env is added to its own
	Dir        string // the launcher's working directory
	Window     int    // bytes of output that may be on their way to the launcher
	// StallWarning is how long a rank may be in one call before the agent tells;
	// 0 for ever.
	StallWarning time.Duration
	// Heartbeat is how often the launcher sends a ping; 0 if it does not.
	Heartbeat time.Duration
	Stacks    bool     // ranks must be ready to tell their stacks
	Stdin     int      // the rank that gets input; StdinAll, StdinNone
	Bindings  bool     // report what the ranks are bound to
	Merge     bool     // stderr of the ranks goes into the pipe of their stdout
	Cores     int      // of this host, to be shared by its ranks
	Env       []string // of all programs
	Programs  []Program
	Files     []File // to be put into the ranks' working directories
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

// Append appends p in the form that ParseProgram reads.
func (p *Program) Append(b []byte) []byte {
	b = wire.AppendBytes(wire.AppendStrings(wire.AppendStrings(b, p.Argv), p.Env), p.Wdir)
	return wire.AppendInt(wire.AppendBytes(b, p.Sum), p.Size)
}

// ParseProgram reads what Append has appended. d notes what is wrong about it.
func ParseProgram(d *wire.Decoder) Program {
	p := Program{Argv: d.Strings(maxList, maxString), Env: d.Strings(maxList, maxString), Wdir: d.String(maxString)}
	p.Sum, p.Size = d.String(MaxText), d.Int(0, math.MaxInt64)
	return p
}

// A Rank is one process to start.
type Rank struct {
	Rank    int
	Program int
	CPUs    []int  // nil: do not bind
	GPUs    string // CUDA_VISIBLE_DEVICES; "" leaves it as it is
}

func (*Launch) kind() byte { return kindLaunch }
func (m *Launch) append(b []byte) []byte {
	b = wire.AppendBytes(b, m.JobID)
	b = append(b, m.Secret[:]...)
	b = wire.AppendInt(wire.AppendInt(b, m.Size), m.Node)
	b = wire.AppendStrings(wire.AppendPlacement(b, m.Placement), m.Hosts)
	b = wire.AppendInt(wire.AppendBytes(b, m.MasterAddr), m.MasterPort)
	b = wire.AppendBytes(wire.AppendBool(b, m.Remote), m.Dir)
	b = wire.AppendInt(wire.AppendInt(b, m.Window), m.Stdin)
	b = wire.AppendInt(wire.AppendInt(b, m.StallWarning), m.Heartbeat)
	b = wire.AppendInt(appendBools(b, m.Stacks, m.Bindings, m.Merge), m.Cores)
	b = wire.AppendStrings(b, m.Env)
	b = wire.AppendInt(b, len(m.Programs))
	for _, p := range m.Programs {
		b = p.Append(b)
	}
	b = wire.AppendInt(b, len(m.Files))
	for _, f := range m.Files {
		b = wire.AppendInt(wire.AppendInt(wire.AppendBytes(wire.AppendBytes(b, f.Name), f.Sum), f.Size), f.Mode)
	}
	b = wire.AppendInt(b, len(m.Ranks))
	for _, r := range m.Ranks {
		b = appendInts(wire.AppendInt(wire.AppendInt(b, r.Rank), r.Program), r.CPUs)
		b = wire.AppendBytes(b, r.GPUs)
	}
	return b
}

func (m *Launch) parse(d *wire.Decoder) {
	m.JobID = d.String(MaxText)
	d.Fixed(m.Secret[:])
	m.Size, m.Node = int(d.Int(1, wire.MaxRanks)), int(d.Int(0, wire.MaxRanks))
	m.Placement = d.Placement()
	m.Hosts = d.Strings(maxList, MaxText)
	m.MasterAddr = d.String(MaxText)
	m.MasterPort = int(d.Int(0, math.MaxUint16))
	m.Remote, m.Dir = d.Bool(), d.String(MaxText)
	m.Window = int(d.Int(0, math.MaxInt32))
	m.Stdin = int(d.Int(StdinAll, wire.MaxRanks))
	m.StallWarning, m.Heartbeat = time.Duration(d.Int(0, math.MaxInt64)), time.Duration(d.Int(0, math.MaxInt64))
	m.Stacks, m.Bindings, m.Merge, m.Cores = d.Bool(), d.Bool(), d.Bool(), int(d.Int(0, maxCPU))
	m.Env = d.Strings(maxList, maxString)
	for range d.List(maxList) {
		m.Programs = append(m.Programs, ParseProgram(d))
	}
	for range d.List(maxList) {
		m.Files = append(m.Files, File{Name: d.String(MaxText), Sum: d.String(MaxText), Size: d.Int(0, math.MaxInt64), Mode: int(d.Int(0, 0o777))})
	}
	for range d.List(maxList) {
		r := Rank{Rank: int(d.Int(0, wire.MaxRanks)), Program: int(d.Int(0, int64(max(0, len(m.Programs)-1))))}
		r.CPUs, r.GPUs = parseInts(d, maxCPU), d.String(maxString)
		m.Ranks = append(m.Ranks, r)
	}
}

// Input is standard input for the ranks that Launch.Stdin names. Empty Data is
// its end.
type Input struct{ Data []byte }

func (*Input) kind() byte               { return kindInput }
func (m *Input) append(b []byte) []byte { return wire.AppendBytes(b, m.Data) }
func (m *Input) parse(d *wire.Decoder)  { m.Data = d.Bytes(MaxChunk) }

// Credit tells that so many bytes of Output have been written out.
type Credit struct{ Bytes int }

func (*Credit) kind() byte               { return kindCredit }
func (m *Credit) append(b []byte) []byte { return wire.AppendInt(b, m.Bytes) }
func (m *Credit) parse(d *wire.Decoder)  { m.Bytes = int(d.Int(0, math.MaxInt32)) }

// Signal is to be sent to the process groups of all ranks.
type Signal struct{ Number int }

func (*Signal) kind() byte               { return kindSignal }
func (m *Signal) append(b []byte) []byte { return wire.AppendInt(b, m.Number) }
func (m *Signal) parse(d *wire.Decoder)  { m.Number = int(d.Int(1, 64)) }

// Ask asks what the ranks are in; the answer is Doing. If it names ranks, it asks
// for their stacks, and Stacks are the answers.
type Ask struct{ Stacks []int }

func (*Ask) kind() byte               { return kindAsk }
func (m *Ask) append(b []byte) []byte { return appendInts(b, m.Stacks) }
func (m *Ask) parse(d *wire.Decoder)  { m.Stacks = parseInts(d, wire.MaxRanks) }

// Gathered holds the cards of all ranks of the job, by rank.
type Gathered struct{ Data [][]byte }

func (*Gathered) kind() byte               { return kindGathered }
func (m *Gathered) append(b []byte) []byte { return wire.AppendCards(b, m.Data) }
func (m *Gathered) parse(d *wire.Decoder)  { m.Data = d.Cards() }

// Died tells the ranks that one of them ended without goodbye.
type Died struct {
	Rank int
	Text string
}

func (*Died) kind() byte               { return kindDied }
func (m *Died) append(b []byte) []byte { return wire.AppendBytes(wire.AppendInt(b, m.Rank), m.Text) }
func (m *Died) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.Text = d.String(wire.MaxText)
}

// Absent tells that a rank ended well and never joined: ranks that wait for it
// in Init wait in vain.
type Absent struct{ Rank int }

func (*Absent) kind() byte               { return kindAbsent }
func (m *Absent) append(b []byte) []byte { return wire.AppendInt(b, m.Rank) }
func (m *Absent) parse(d *wire.Decoder)  { m.Rank = int(d.Int(0, wire.MaxRanks)) }

// Revoked tells the ranks that one of them broke a communicator.
type Revoked struct {
	Rank  int
	Comm  uint64
	Cause []byte
}

func (*Revoked) kind() byte { return kindRevoked }
func (m *Revoked) append(b []byte) []byte {
	return wire.AppendBytes(wire.AppendUint(wire.AppendInt(b, m.Rank), m.Comm), m.Cause)
}
func (m *Revoked) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.Comm = d.Uint(math.MaxUint64)
	m.Cause = d.Bytes(wire.MaxText)
}

// Terminate ends the ranks: TERM, and KILL after Delay. A Delay of 0 kills at once.
type Terminate struct {
	Delay time.Duration
	Text  string
}

func (*Terminate) kind() byte { return kindTerminate }
func (m *Terminate) append(b []byte) []byte {
	return wire.AppendBytes(wire.AppendInt(b, m.Delay), m.Text)
}
func (m *Terminate) parse(d *wire.Decoder) {
	m.Delay = time.Duration(d.Int(0, math.MaxInt64))
	m.Text = d.String(wire.MaxText)
}

// Ping asks for a Pong at once.
type Ping struct{ Sent int64 } // the launcher's clock, nanoseconds since 1970

func (*Ping) kind() byte               { return kindPing }
func (m *Ping) append(b []byte) []byte { return wire.AppendInt(b, m.Sent) }
func (m *Ping) parse(d *wire.Decoder)  { m.Sent = d.Int(math.MinInt64, math.MaxInt64) }
