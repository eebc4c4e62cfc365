package ctl

import (
	"math"
	"net/netip"
	"time"

	"gompi/internal/boot/wire"
)

// Hello is an agent's first message: what there is on its host.
type Hello struct {
	Version string
	Host    string  // the host's own name
	Machine string  // the same for agents on one machine, however it is called
	Now     int64   // the host's clock, nanoseconds since 1970
	Port    int     // held for MASTER_PORT, 0 for none
	Cores   [][]int // hardware threads of each core that may be used
	Numa    [][]int // hardware threads of each memory domain

	Packages [][]int // hardware threads of each processor package
	Quota    int     // processors' worth of time that all ranks get, rounded up; 0: no limit

	// The ends of the connection by which the launcher reached the host: the
	// host's address, and the launcher's as the host sees it. Empty if not known.
	Address, Launcher string

	// Addresses are those by which other hosts may reach the host, with their
	// subnets.
	Addresses []netip.Prefix
}

func (*Hello) kind() byte { return kindHello }
func (m *Hello) append(b []byte) []byte {
	b = wire.AppendBytes(b, m.Version)
	b = wire.AppendBytes(b, m.Host)
	b = wire.AppendBytes(b, m.Machine)
	b = wire.AppendInt(b, m.Now)
	b = wire.AppendInt(b, m.Port)
	b = appendSets(appendSets(b, m.Cores), m.Numa)
	b = wire.AppendInt(appendSets(b, m.Packages), m.Quota)
	b = wire.AppendBytes(wire.AppendBytes(b, m.Address), m.Launcher)
	b = wire.AppendInt(b, len(m.Addresses))
	for _, a := range m.Addresses {
		b = wire.AppendBytes(b, a.String())
	}
	return b
}
func (m *Hello) parse(d *wire.Decoder) {
	m.Version = d.String(MaxText)
	m.Host = d.String(MaxText)
	m.Machine = d.String(MaxText)
	m.Now = d.Int(math.MinInt64, math.MaxInt64)
	m.Port = int(d.Int(0, math.MaxUint16))
	m.Cores = parseSets(d)
	m.Numa = parseSets(d)
	m.Packages, m.Quota = parseSets(d), int(d.Int(0, maxCPU))
	m.Address, m.Launcher = d.String(MaxText), d.String(MaxText)
	for range d.List(maxList) {
		if a, err := netip.ParsePrefix(d.String(MaxText)); err == nil {
			m.Addresses = append(m.Addresses, a)
		}
	}
}

// appendSets appends lists of CPU numbers.
func appendSets(b []byte, sets [][]int) []byte {
	b = wire.AppendInt(b, len(sets))
	for _, set := range sets {
		b = appendInts(b, set)
	}
	return b
}

func parseSets(d *wire.Decoder) [][]int {
	var sets [][]int
	for range d.List(maxCPU) {
		sets = append(sets, parseInts(d, maxCPU))
	}
	return sets
}

func appendInts(b []byte, vs []int) []byte {
	b = wire.AppendInt(b, len(vs))
	for _, v := range vs {
		b = wire.AppendInt(b, v)
	}
	return b
}

// parseInts reads a list of numbers from 0 to limit. An empty one is nil.
func parseInts(d *wire.Decoder, limit int) []int {
	var vs []int
	for range d.List(maxList) {
		vs = append(vs, int(d.Int(0, int64(limit))))
	}
	return vs
}

// Started tells that all ranks of a host have been started.
type Started struct {
	PIDs []int   // in the order of Launch.Ranks
	CPUs [][]int // what the kernel says each is bound to, if Launch asked
}

func (*Started) kind() byte { return kindStarted }
func (m *Started) append(b []byte) []byte {
	return appendSets(appendInts(b, m.PIDs), m.CPUs)
}
func (m *Started) parse(d *wire.Decoder) {
	m.PIDs = parseInts(d, math.MaxInt32)
	m.CPUs = parseSets(d)
}

// Failed tells that a rank could not be started.
type Failed struct {
	Rank int
	Code int // the exit status that stands for it
	Text string
}

func (*Failed) kind() byte { return kindFailed }
func (m *Failed) append(b []byte) []byte {
	return wire.AppendBytes(wire.AppendInt(wire.AppendInt(b, m.Rank), m.Code), m.Text)
}
func (m *Failed) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.Code = int(d.Int(0, 255))
	m.Text = d.String(MaxText)
}

// A Stream is one of a rank's standard streams.
type Stream byte

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// String returns the name under which users know the stream.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Output is a piece of a rank's output: whole lines, or, if it does not end
// with a newline, also the beginning of one that has waited too long for its end.
type Output struct {
	Rank   int
	Stream Stream
	Data   []byte
}

func (*Output) kind() byte { return kindOutput }
func (m *Output) append(b []byte) []byte {
	return wire.AppendBytes(append(wire.AppendInt(b, m.Rank), byte(m.Stream)), m.Data)
}
func (m *Output) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.Stream = Stream(d.Uint(uint64(Stderr)))
	m.Data = d.Bytes(MaxOutput)
}

// Cost is what Output of n bytes takes of the credit: small pieces are not free.
func Cost(n int) int { return n + 64 }

// Consumed tells that so many bytes of Input have been passed on, or dropped.
type Consumed struct{ Bytes int }

func (*Consumed) kind() byte               { return kindConsumed }
func (m *Consumed) append(b []byte) []byte { return wire.AppendInt(b, m.Bytes) }
func (m *Consumed) parse(d *wire.Decoder)  { m.Bytes = int(d.Int(0, math.MaxInt32)) }

// Cards holds the cards of all ranks of the host, in the order of Launch.Ranks.
type Cards struct{ Data [][]byte }

func (*Cards) kind() byte               { return kindCards }
func (m *Cards) append(b []byte) []byte { return wire.AppendCards(b, m.Data) }
func (m *Cards) parse(d *wire.Decoder)  { m.Data = d.Cards() }

// Revoke passes a rank's revocation on.
type Revoke struct {
	Rank  int
	Comm  uint64
	Cause []byte
}

func (*Revoke) kind() byte { return kindRevoke }
func (m *Revoke) append(b []byte) []byte {
	return wire.AppendBytes(wire.AppendUint(wire.AppendInt(b, m.Rank), m.Comm), m.Cause)
}
func (m *Revoke) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.Comm = d.Uint(math.MaxUint64)
	m.Cause = d.Bytes(wire.MaxText)
}

// Abort passes a rank's wish to end the job on.
type Abort struct {
	Rank   int
	Code   int
	Time   int64 // nanoseconds since 1970
	Reason string
}

func (*Abort) kind() byte { return kindAbort }
func (m *Abort) append(b []byte) []byte {
	b = wire.AppendInt(wire.AppendInt(b, m.Rank), m.Code)
	return wire.AppendBytes(wire.AppendInt(b, m.Time), m.Reason)
}
func (m *Abort) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.Code = int(d.Int(math.MinInt32, math.MaxInt32))
	m.Time = d.Int(math.MinInt64, math.MaxInt64)
	m.Reason = d.String(wire.MaxText)
}

// Exited tells how a rank's process ended. All it wrote before has been sent,
// unless there was no credit for it.
type Exited struct {
	Rank   int
	PID    int
	Code   int   // exit status, if Signal is 0
	Signal int   // the signal that killed it
	Time   int64 // nanoseconds since 1970
	Joined bool  // it called Init
	Closed bool  // it closed its communicators
	PMI    bool  // it is another MPI library's rank: it called MPI_Init, or MPI_Finalize
	Core   bool  // it left a core dump
	// NoMemory says that meanwhile the kernel killed for want of memory.
	NoMemory bool
	RSS      int64 // largest resident set, in bytes
	Tail     []byte
}

func (*Exited) kind() byte { return kindExited }
func (m *Exited) append(b []byte) []byte {
	for _, v := range []int{m.Rank, m.PID, m.Code, m.Signal} {
		b = wire.AppendInt(b, v)
	}
	b = wire.AppendInt(b, m.Time)
	b = appendBools(b, m.Joined, m.Closed, m.Core, m.PMI, m.NoMemory)
	return wire.AppendBytes(wire.AppendInt(b, m.RSS), m.Tail)
}
func (m *Exited) parse(d *wire.Decoder) {
	m.Rank = int(d.Int(0, wire.MaxRanks))
	m.PID = int(d.Int(0, math.MaxInt32))
	m.Code = int(d.Int(0, 255))
	m.Signal = int(d.Int(0, 255))
	m.Time = d.Int(math.MinInt64, math.MaxInt64)
	m.Joined, m.Closed, m.Core, m.PMI, m.NoMemory = d.Bool(), d.Bool(), d.Bool(), d.Bool(), d.Bool()
	m.RSS = d.Int(0, math.MaxInt64)
	m.Tail = d.Bytes(MaxText)
}

func appendBools(b []byte, vs ...bool) []byte {
	for _, v := range vs {
		b = wire.AppendBool(b, v)
	}
	return b
}

// Doing answers Ask: what the ranks of a host that have not ended are in.
type Doing struct{ Ranks []RankDoing }

// RankDoing is what one rank is in.
type RankDoing struct {
	Rank  int
	PID   int           // of the process that joined, or else was started
	Text  string        // "is in allreduce(1024 float32, sum) number 17"
	Site  string        // where in the program, "" if not known
	Since time.Duration // for how long, 0 if not known
	In    Mark          // the collective; Seq is 0 if it is in none
	Marks []Mark        // the last collective begun on each communicator that is known

	Details string // lines on a program that does not use gompi, "" if there are none
}

// A Mark is a collective: the communicator's id, and its number on that, from 1.
type Mark struct {
	Comm uint64
	Seq  int64
}

func (m Mark) append(b []byte) []byte { return wire.AppendInt(wire.AppendUint(b, m.Comm), m.Seq) }

func parseMark(d *wire.Decoder) Mark {
	return Mark{Comm: d.Uint(math.MaxUint64), Seq: d.Int(0, math.MaxInt64)}
}

func (*Doing) kind() byte { return kindDoing }
func (m *Doing) append(b []byte) []byte {
	b = wire.AppendInt(b, len(m.Ranks))
	for _, r := range m.Ranks {
		b = wire.AppendBytes(wire.AppendBytes(wire.AppendInt(wire.AppendInt(b, r.Rank), r.PID), r.Text), r.Site)
		b = wire.AppendInt(r.In.append(wire.AppendInt(b, r.Since)), len(r.Marks))
		for _, mark := range r.Marks {
			b = mark.append(b)
		}
		b = wire.AppendBytes(b, r.Details)
	}
	return b
}
func (m *Doing) parse(d *wire.Decoder) {
	for range d.List(maxList) {
		r := RankDoing{Rank: int(d.Int(0, wire.MaxRanks)), PID: int(d.Int(0, math.MaxInt32)), Text: d.String(MaxText), Site: d.String(MaxText)}
		r.Since, r.In = time.Duration(d.Int(0, math.MaxInt64)), parseMark(d)
		for range d.List(maxList) {
			r.Marks = append(r.Marks, parseMark(d))
		}
		r.Details = d.String(MaxText)
		m.Ranks = append(m.Ranks, r)
	}
}

// Stalled tells that a rank of the host has been in one call for longer than
// Launch.StallWarning, or that none is any more.
type Stalled struct {
	On    bool
	Since time.Duration // the longest time
}

func (*Stalled) kind() byte               { return kindStalled }
func (m *Stalled) append(b []byte) []byte { return wire.AppendInt(wire.AppendBool(b, m.On), m.Since) }
func (m *Stalled) parse(d *wire.Decoder) {
	m.On, m.Since = d.Bool(), time.Duration(d.Int(0, math.MaxInt64))
}

// Drained is an agent's last message: all its ranks have ended, all their
// output has been sent, and nothing they started is left.
type Drained struct {
	Killed int // processes that ranks had left behind
}

func (*Drained) kind() byte               { return kindDrained }
func (m *Drained) append(b []byte) []byte { return wire.AppendInt(b, m.Killed) }
func (m *Drained) parse(d *wire.Decoder)  { m.Killed = int(d.Int(0, math.MaxInt32)) }

// Note is something the user should know, in one line.
type Note struct{ Text string }

func (*Note) kind() byte               { return kindNote }
func (m *Note) append(b []byte) []byte { return wire.AppendBytes(b, m.Text) }
func (m *Note) parse(d *wire.Decoder)  { m.Text = d.String(MaxText) }

// Pong answers Ping.
type Pong struct {
	Sent int64 // as the Ping has it
	Now  int64 // the agent's clock, nanoseconds since 1970
}

func (*Pong) kind() byte               { return kindPong }
func (m *Pong) append(b []byte) []byte { return wire.AppendInt(wire.AppendInt(b, m.Sent), m.Now) }
func (m *Pong) parse(d *wire.Decoder) {
	m.Sent, m.Now = d.Int(math.MinInt64, math.MaxInt64), d.Int(math.MinInt64, math.MaxInt64)
}

// Stacks tells where in its program a rank is: the stacks of its goroutines, or
// else what the kernel knows of its threads.
type Stacks struct {
	Rank int
	Text string
}

func (*Stacks) kind() byte               { return kindStacks }
func (m *Stacks) append(b []byte) []byte { return wire.AppendBytes(wire.AppendInt(b, m.Rank), m.Text) }
func (m *Stacks) parse(d *wire.Decoder) {
	m.Rank, m.Text = int(d.Int(0, wire.MaxRanks)), d.String(MaxOutput)
}
