package wire

import (
	"fmt"
	"io"
	"math"

	"gompi/internal/world"
)

// Bounds of the messages between a rank and its agent, in bytes or entries.
const (
	MaxCard  = 64 << 10 // a rank's card in the allgather
	MaxText  = 8 << 10  // a cause or reason
	MaxRanks = 1 << 24
	maxName  = 1 << 10

	// MaxUp bounds the frames of ranks, MaxDown those of agents.
	MaxUp   = MaxCard + 64
	MaxDown = 1 << 30
)

// A Message is a pointer to one of the structs below.
type Message interface{ fields(*Codec) }

var protocol = NewProtocol[Message](Message.fields, &Attach{}, &Card{}, &Revoke{}, &Abort{}, &Welcome{}, &Cards{},
	&Died{}, &Revoked{}, &Terminate{},
	&Join{}, &Leave{}, &Closing{}, &Describe{}, &Stacks{}, &Inquire{}, &Left{}, &Vote{}, &Outcome{}, &Detached{})

// Append appends m's frame.
func Append(b []byte, m Message) []byte { return protocol.Append(b, m) }

// Next takes the next message from f. ok is false if the message is incomplete. Its byte slices are
// valid until f.ReadBuffer is called.
func Next(f *Frames) (m Message, ok bool, err error) { return protocol.Next(f) }

// Parse returns the message of a whole frame. Byte slices in it alias frame.
func Parse(frame []byte) (Message, error) {
	f := Frames{Limit: MaxDown, buf: frame, end: len(frame)}
	m, ok, err := protocol.Next(&f)
	if err == nil && (!ok || f.Partial()) {
		err = fmt.Errorf("%w: %d bytes, want one frame", ErrFrame, len(frame))
	}
	return m, err
}

// Receive returns the next message of f. It reads missing bytes from r and blocks until the message
// is whole. Its byte slices are valid until the next call.
func Receive(r io.Reader, f *Frames) (Message, error) { return protocol.Receive(r, f) }

// Attach introduces a rank whose descriptors were closed, on a new connection. The agent answers
// with one byte per descriptor passed (the segment, then the doorbells) in control messages, and
// then Welcome.
type Attach struct{ Local world.LocalRank }

func (m *Attach) fields(c *Codec) { rank(c, &m.Local) }

// Card is a rank's part of the allgather.
type Card struct{ Data []byte }

func (m *Card) fields(c *Codec) { c.Bytes(&m.Data, MaxCard) }

// Revoke breaks a communicator on all ranks.
type Revoke struct {
	Comm  uint64
	Cause []byte
}

func (m *Revoke) fields(c *Codec) {
	Uint(c, &m.Comm, math.MaxUint64)
	c.Bytes(&m.Cause, MaxText)
}

// Abort ends the job.
type Abort struct {
	Code   int
	Reason string
}

func (m *Abort) fields(c *Codec) {
	Int(c, &m.Code, math.MinInt32, math.MaxInt32)
	c.Prose(&m.Reason, MaxText)
}

// A Run is a number of consecutive ranks on one node.
type Run struct{ Node, Count int }

// Welcome sends a rank its number and the layout of its job. The agent sends it before the rank
// starts.
type Welcome struct {
	Rank            world.Rank
	Size            int
	LocalRank       world.LocalRank
	LocalSize, Node int
	Program         int // index in the job's command line; ranks without an agent know it themselves
	JobID           string
	Secret          [32]byte
	Placement       []Run // of all ranks, in rank order
	Hosts           []string
	Watch           bool // be ready to answer Describe at any time
	Recover         bool // the job continues when a rank dies
	Spares          int  // places on each node for replacements; their ranks follow the ranks of the job, by node
	Invited         bool // this rank is a replacement, see Invite
	Invite          Invite
	SegmentSocket   string // address of the host's segmentSocket, for ranks without an agent; "" if there is none
}

func (m *Welcome) fields(c *Codec) {
	rank(c, &m.Rank)
	c.Rank(&m.Size)
	rank(c, &m.LocalRank)
	c.Rank(&m.LocalSize)
	c.Rank(&m.Node)
	c.Rank(&m.Program)
	c.String(&m.JobID, maxName)
	c.Fixed(m.Secret[:])
	c.Placement(&m.Placement)
	c.Strings(&m.Hosts, MaxRanks, maxName)
	c.Bools(&m.Watch, &m.Recover, &m.Invited)
	c.Rank(&m.Spares)
	m.Invite.Fields(c)
	c.String(&m.SegmentSocket, maxName)
}

// rank is Codec.Rank for a rank of the job, or of a host.
func rank[T world.Rank | world.LocalRank](c *Codec, v *T) { Int(c, v, 0, MaxRanks) }

// Placement codes a list of runs.
func (c *Codec) Placement(v *[]Run) {
	List(c, v, MaxRanks, func(r *Run) {
		c.Rank(&r.Node)
		Int(c, &r.Count, 1, MaxRanks)
	})
}

// Runs returns the runs of nodeOf, the node of each rank.
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

func (m *Cards) fields(c *Codec) { c.Cards(&m.Data) }

// Cards codes a list of cards.
func (c *Codec) Cards(v *[][]byte) {
	List(c, v, MaxRanks, func(card *[]byte) { c.Bytes(card, MaxCard) })
}

// Died reports that a rank ended without goodbye, and how.
type Died struct {
	Rank world.Rank
	Text string
}

func (m *Died) fields(c *Codec) {
	rank(c, &m.Rank)
	c.Prose(&m.Text, MaxText)
}

// Revoked reports that a rank broke a communicator.
type Revoked struct {
	Rank  world.Rank
	Comm  uint64
	Cause []byte
}

func (m *Revoked) fields(c *Codec) {
	rank(c, &m.Rank)
	Uint(c, &m.Comm, math.MaxUint64)
	c.Bytes(&m.Cause, MaxText)
}

// Inquire asks for Left, when a rank has left.
type Inquire struct{ Rank world.Rank }

func (m *Inquire) fields(c *Codec) { rank(c, &m.Rank) }

// Left reports that a rank ended after its goodbye.
type Left struct{ Rank world.Rank }

func (m *Left) fields(c *Codec) { rank(c, &m.Rank) }

// Detached reports that a rank will not touch the shared memory of a dead rank of its host again.
type Detached struct{ Rank world.Rank }

func (m *Detached) fields(c *Codec) { rank(c, &m.Rank) }

// Terminate announces that the job ends, and why.
type Terminate struct{ Text string }

func (m *Terminate) fields(c *Codec) { c.Prose(&m.Text, MaxText) }

// Join introduces a rank without an agent to rank 0, whose server replaces the agent. Machine
// distinguishes hosts of the same name. The first rank of a host passes the segment on at
// SegmentSocket.
type Join struct{ Host, Machine, SegmentSocket string }

func (m *Join) fields(c *Codec) {
	c.String(&m.Host, maxName)
	c.String(&m.Machine, maxName)
	c.String(&m.SegmentSocket, maxName)
}

// Leave is a rank's goodbye.
type Leave struct{}

func (*Leave) fields(*Codec) {}

// Closing notifies ranks without an agent that rank 0 leaves: no more news will come.
type Closing struct{}

func (*Closing) fields(*Codec) {}

// Describe asks a rank for the stacks of its goroutines; Stacks is the answer.
type Describe struct{}

func (*Describe) fields(*Codec) {}

// Stacks holds the stacks of a rank's goroutines, as Go prints them.
type Stacks struct{ Text []byte }

func (m *Stacks) fields(c *Codec) { c.Bytes(&m.Text, MaxCard) }
