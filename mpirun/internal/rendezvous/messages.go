package rendezvous

import (
	"fmt"
	"math"
	"time"

	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/ctl"
)

// Bounds of messages, in bytes or entries.
const (
	maxString = 2 << 20
	maxList   = 1 << 20
	maxNodes  = 1 << 20
	maxFrame  = 64 << 20
	chunk     = 32 << 10
)

// A message is a pointer to one of the structs below.
type message interface{ fields(*wire.Codec) }

var protocol = wire.NewProtocol[message](message.fields, &Offer{}, &welcome{}, &refused{}, &startAgent{}, &agentData{},
	&closeAgent{}, &killAgent{}, &agentEnded{}, &signalled{}, &End{}, &beating{}, &pausing{})

// Messages of node 0 to a node, beside End; agentData goes both ways.
type (
	welcome    struct{ beat time.Duration } // longest time between messages of node 0, 0 for no limit
	refused    struct{ why string }
	startAgent struct{}
	agentData  struct{ bytes []byte } // the agent's input or output
	closeAgent struct{}               // close the agent's input, which ends it
	killAgent  struct{}
	beating    struct{} // node 0 lives
	pausing    struct{} // node 0 is stopped, and will be silent
)

// Messages of a node to node 0, beside Offer.
type (
	agentEnded struct{ how string }
	signalled  struct{ number int } // a signal to the node's gompirun
)

func (m *welcome) fields(c *wire.Codec)    { wire.Int(c, &m.beat, 0, math.MaxInt64/missedBeats) }
func (m *refused) fields(c *wire.Codec)    { c.Prose(&m.why, maxString) }
func (*startAgent) fields(*wire.Codec)     {}
func (m *agentData) fields(c *wire.Codec)  { c.Bytes(&m.bytes, chunk) }
func (*closeAgent) fields(*wire.Codec)     {}
func (*killAgent) fields(*wire.Codec)      {}
func (m *agentEnded) fields(c *wire.Codec) { c.Prose(&m.how, maxString) }
func (m *signalled) fields(c *wire.Codec)  { wire.Int(c, &m.number, 1, 64) }
func (*beating) fields(*wire.Codec)        {}
func (*pausing) fields(*wire.Codec)        {}

// An Offer is a node's description of itself, and of its ranks.
type Offer struct {
	Version string
	JobName string      // the same for all nodes of a job, by -rdzv-id; "" for any
	Least   int         // least nodes of the job
	Most    int         // most nodes of the job
	Node    int         // this node's number, -1 if node 0 may choose
	Host    string      // its own name
	Ranks   string      // -nproc-per-node
	Program ctl.Program // its program, without sum and size
	Environ []string    // of its gompirun
}

func (o *Offer) fields(c *wire.Codec) {
	c.String(&o.Version, maxString)
	c.String(&o.JobName, maxString)
	wire.Int(c, &o.Least, 1, maxNodes)
	wire.Int(c, &o.Most, 1, maxNodes)
	wire.Int(c, &o.Node, -1, maxNodes)
	c.String(&o.Host, maxString)
	c.String(&o.Ranks, maxString)
	o.Program.Fields(c)
	c.Strings(&o.Environ, maxList, maxString)
}

// refusal returns why node 0, with own, refuses a node with offer; "" to accept.
func refusal(own, offer *Offer) string {
	switch {
	case offer.Version != own.Version:
		return fmt.Sprintf("this gompirun is version %s, and that of node 0 %s", offer.Version, own.Version)
	case offer.JobName != own.JobName:
		return fmt.Sprintf("-rdzv-id is %q here and %q at node 0", offer.JobName, own.JobName)
	case offer.Least != own.Least || offer.Most != own.Most:
		return fmt.Sprintf("-nnodes is %d:%d here and %d:%d at node 0", offer.Least, offer.Most, own.Least, own.Most)
	case offer.Node == 0 || offer.Node >= own.Most:
		return fmt.Sprintf("-node-rank %d: want one from 1 to %d, or none", offer.Node, own.Most-1)
	}
	return ""
}

// End is the end of a job. Every node prints Text and exits with Status.
type End struct {
	Status int
	Text   string
}

func (e *End) fields(c *wire.Codec) {
	wire.Int(c, &e.Status, 0, 255)
	c.Prose(&e.Text, maxString)
}
