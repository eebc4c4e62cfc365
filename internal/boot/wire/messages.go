package wire

import (
	"fmt"
	"math"
)

// Bounds of what a rank and its agent say to each other, in bytes or entries.
const (
	MaxCard  = 64 << 10 // a rank's card in the allgather
	MaxText  = 8 << 10  // a cause or reason
	MaxRanks = 1 << 24
	maxName  = 1 << 10

	// FDBatch is the largest number of descriptors in one control message.
	FDBatch = 200

	// MaxUp bounds the frames of ranks, MaxDown those of agents.
	MaxUp   = MaxCard + 64
	MaxDown = 1 << 30
)

// A Message is one of the pointers below.
type Message interface {
	kind() byte
	append(b []byte) []byte
	parse(d *Decoder)
}

// The kinds of frames between a rank and its agent.
const (
	kindAttach = iota + 1
	kindCard
	kindRevoke
	kindAbort
	kindWelcome
	kindCards
	kindDied
	kindRevoked
	kindTerminate
	kindJoin
	kindLeave
	kindClosing
	kindDescribe
	kindStacks
)

// Append appends m's frame.
func Append(b []byte, m Message) []byte { return AppendFrame(b, m.kind(), m.append) }

// Parse returns the message of a frame. It may alias body.
func Parse(kind byte, body []byte) (Message, error) {
	m := blank(kind)
	if m == nil {
		return nil, fmt.Errorf("%w: unknown kind %d", ErrFrame, kind)
	}
	d := NewDecoder(body)
	m.parse(d)
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("%w: %T: %w", ErrFrame, m, err)
	}
	return m, nil
}

func blank(kind byte) Message {
	switch kind {
	case kindAttach:
		return new(Attach)
	case kindCard:
		return new(Card)
	case kindRevoke:
		return new(Revoke)
	case kindAbort:
		return new(Abort)
	case kindWelcome:
		return new(Welcome)
	case kindCards:
		return new(Cards)
	case kindDied:
		return new(Died)
	case kindRevoked:
		return new(Revoked)
	case kindTerminate:
		return new(Terminate)
	case kindJoin:
		return new(Join)
	case kindLeave:
		return new(Leave)
	case kindClosing:
		return new(Closing)
	case kindDescribe:
		return new(Describe)
	case kindStacks:
		return new(Stacks)
	}
	return nil
}

// Attach is how a rank whose descriptors were closed introduces itself on a new
// connection. The agent answers with one byte per descriptor passed (the
// segment, then the doorbells) in control messages, and then Welcome.
type Attach struct{ Local int }

func (*Attach) kind() byte               { return kindAttach }
func (m *Attach) append(b []byte) []byte { return AppendInt(b, m.Local) }
func (m *Attach) parse(d *Decoder)       { m.Local = int(d.Int(0, MaxRanks)) }

// Card is a rank's part of the allgather.
type Card struct{ Data []byte }

func (*Card) kind() byte               { return kindCard }
func (m *Card) append(b []byte) []byte { return AppendBytes(b, m.Data) }
func (m *Card) parse(d *Decoder)       { m.Data = d.Bytes(MaxCard) }

// Revoke breaks a communicator on all ranks.
type Revoke struct {
	Comm  uint64
	Cause []byte
}

func (*Revoke) kind() byte               { return kindRevoke }
func (m *Revoke) append(b []byte) []byte { return AppendBytes(AppendUint(b, m.Comm), m.Cause) }
func (m *Revoke) parse(d *Decoder) {
	m.Comm = d.Uint(math.MaxUint64)
	m.Cause = d.Bytes(MaxText)
}

// Abort ends the job.
type Abort struct {
	Code   int
	Reason string
}

func (*Abort) kind() byte               { return kindAbort }
func (m *Abort) append(b []byte) []byte { return AppendBytes(AppendInt(b, m.Code), m.Reason) }
func (m *Abort) parse(d *Decoder) {
	m.Code = int(d.Int(math.MinInt32, math.MaxInt32))
	m.Reason = d.String(MaxText)
}

// A Run is a number of consecutive ranks on one node.
type Run struct{ Node, Count int }

// Welcome tells a rank who it is. The agent sends it before the rank starts.
type Welcome struct {
	Rank, Size           int
	LocalRank, LocalSize int
	Node                 int
	JobID                string
	Secret               [32]byte
	Placement            []Run // of all ranks, in rank order
	Hosts                []string
	Watch                bool   // be ready to answer Describe at any time
	Door                 string // where ranks without an agent get their host's segment, "" nowhere
}

func (*Welcome) kind() byte { return kindWelcome }
func (m *Welcome) append(b []byte) []byte {
	for _, v := range []int{m.Rank, m.Size, m.LocalRank, m.LocalSize, m.Node} {
		b = AppendInt(b, v)
	}
	b = AppendBytes(b, m.JobID)
	b = append(b, m.Secret[:]...)
	b = AppendBool(AppendStrings(AppendPlacement(b, m.Placement), m.Hosts), m.Watch)
	return AppendBytes(b, m.Door)
}

func (m *Welcome) parse(d *Decoder) {
	for _, p := range []*int{&m.Rank, &m.Size, &m.LocalRank, &m.LocalSize, &m.Node} {
		*p = int(d.Int(0, MaxRanks))
	}
	m.JobID = d.String(maxName)
	d.Fixed(m.Secret[:])
	m.Placement = d.Placement()
	m.Hosts = d.Strings(MaxRanks, maxName)
	m.Watch = d.Bool()
	m.Door = d.String(maxName)
}

// Fixed copies the next len(dst) bytes to dst.
func (d *Decoder) Fixed(dst []byte) {
	if len(d.b) < len(dst) {
		d.fail(errShort)
		return
	}
	copy(dst, d.b)
	d.b = d.b[len(dst):]
}

// AppendPlacement appends runs.
func AppendPlacement(b []byte, runs []Run) []byte {
	b = AppendInt(b, len(runs))
	for _, r := range runs {
		b = AppendInt(AppendInt(b, r.Node), r.Count)
	}
	return b
}

// Placement returns the next list of runs.
func (d *Decoder) Placement() []Run {
	var runs []Run
	for range d.List(MaxRanks) {
		runs = append(runs, Run{Node: int(d.Int(0, MaxRanks)), Count: int(d.Int(1, MaxRanks))})
	}
	return runs
}

// Runs returns the runs of a list of nodes by rank.
func Runs(nodeOf []int) []Run {
	var runs []Run
	for _, n := range nodeOf {
		if last := len(runs) - 1; last >= 0 && runs[last].Node == n {
			runs[last].Count++
		} else {
			runs = append(runs, Run{n, 1})
		}
	}
	return runs
}

// Cards is the result of the allgather: every rank's card, by rank.
type Cards struct{ Data [][]byte }

func (*Cards) kind() byte               { return kindCards }
func (m *Cards) append(b []byte) []byte { return AppendCards(b, m.Data) }
func (m *Cards) parse(d *Decoder)       { m.Data = d.Cards() }

// AppendCards appends the number of cards and each of them.
func AppendCards(b []byte, cards [][]byte) []byte {
	b = AppendInt(b, len(cards))
	for _, c := range cards {
		b = AppendBytes(b, c)
	}
	return b
}

// Cards returns the next list of cards. They alias the body.
func (d *Decoder) Cards() [][]byte {
	cards := make([][]byte, d.List(MaxRanks))
	for i := range cards {
		cards[i] = d.Bytes(MaxCard)
	}
	return cards
}

// Died tells that a rank ended without goodbye, and how.
type Died struct {
	Rank int
	Text string
}

func (*Died) kind() byte               { return kindDied }
func (m *Died) append(b []byte) []byte { return AppendBytes(AppendInt(b, m.Rank), m.Text) }
func (m *Died) parse(d *Decoder) {
	m.Rank = int(d.Int(0, MaxRanks))
	m.Text = d.String(MaxText)
}

// Revoked tells that a rank broke a communicator.
type Revoked struct {
	Rank  int
	Comm  uint64
	Cause []byte
}

func (*Revoked) kind() byte { return kindRevoked }
func (m *Revoked) append(b []byte) []byte {
	return AppendBytes(AppendUint(AppendInt(b, m.Rank), m.Comm), m.Cause)
}
func (m *Revoked) parse(d *Decoder) {
	m.Rank = int(d.Int(0, MaxRanks))
	m.Comm = d.Uint(math.MaxUint64)
	m.Cause = d.Bytes(MaxText)
}

// Terminate tells that the job ends, and why.
type Terminate struct{ Text string }

func (*Terminate) kind() byte               { return kindTerminate }
func (m *Terminate) append(b []byte) []byte { return AppendBytes(b, m.Text) }
func (m *Terminate) parse(d *Decoder)       { m.Text = d.String(MaxText) }

// Join is how a rank that has no agent introduces itself to rank 0, which then
// is to it what an agent is to others. Machine tells hosts of one name apart. At
// Door the rank would pass a segment on, if it is the first of its host.
type Join struct{ Host, Machine, Door string }

func (*Join) kind() byte { return kindJoin }
func (m *Join) append(b []byte) []byte {
	return AppendBytes(AppendBytes(AppendBytes(b, m.Host), m.Machine), m.Door)
}
func (m *Join) parse(d *Decoder) {
	m.Host, m.Machine, m.Door = d.String(maxName), d.String(maxName), d.String(maxName)
}

// Leave is the goodbye of such a rank.
type Leave struct{}

func (*Leave) kind() byte             { return kindLeave }
func (*Leave) append(b []byte) []byte { return b }
func (*Leave) parse(*Decoder)         {}

// Closing tells such ranks that rank 0 leaves: no more news will come.
type Closing struct{}

func (*Closing) kind() byte             { return kindClosing }
func (*Closing) append(b []byte) []byte { return b }
func (*Closing) parse(*Decoder)         {}

// Describe asks a rank what its goroutines are in; Stacks is the answer.
type Describe struct{}

func (*Describe) kind() byte             { return kindDescribe }
func (*Describe) append(b []byte) []byte { return b }
func (*Describe) parse(*Decoder)         {}

// Stacks holds the stacks of a rank's goroutines, as Go prints them.
type Stacks struct{ Text []byte }

func (*Stacks) kind() byte               { return kindStacks }
func (m *Stacks) append(b []byte) []byte { return AppendBytes(b, m.Text) }
func (m *Stacks) parse(d *Decoder)       { m.Text = d.Bytes(MaxCard) }
