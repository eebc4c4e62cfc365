package link

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"time"

	"gompi/hostfile"
	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/remote"
)

// magic opens a relay's output. Its number, one digit, is raised when a message changes.
const magic = "\x00gompi relay 1\n"

const (
	chunk    = 64 << 10 // most bytes of one read of an agent's reports
	maxFrame = 1<<30 + 1<<20
	maxHosts = 1 << 20
	maxText  = 64 << 10
)

// A message is a pointer to one of the structs below. begin, start, orders, hangUp and kill go
// down to relays; started, report and ended go up. Hosts have the launcher's numbers.
type message interface{ fields(*wire.Codec) }

var protocol = wire.NewProtocol[message](message.fields,
	&begin{}, &start{}, &orders{}, &hangUp{}, &kill{}, &started{}, &report{}, &ended{})

// begin is the first message to a relay: its host, and its ways to start agents elsewhere. The
// relay starts its own host's agent at once.
type begin struct {
	host int
	ways remote.Ways
}

func (m *begin) fields(c *wire.Codec) {
	host(c, &m.host)
	c.Strings(&m.ways.Command, maxHosts, maxText)
	c.String(&m.ways.Agent, maxText)
	c.String(&m.ways.Path, maxText)
	c.Bools(&m.ways.Retry)
}

// start orders an agent on a host to be started from the host from, a relay's or the launcher's.
// The answer is started or ended.
type start struct {
	host, from int
	relay      bool // start a relay, which starts the agent, because it has hosts below
	at         hostfile.Host
	limit      time.Duration
}

func (m *start) fields(c *wire.Codec) {
	host(c, &m.host)
	host(c, &m.from)
	c.Bools(&m.relay)
	c.String(&m.at.Name, maxText)
	c.String(&m.at.User, maxText)
	wire.Int(c, &m.at.Port, 0, math.MaxUint16)
	wire.Int(c, &m.limit, 0, math.MaxInt64)
}

// orders are bytes for the agents of some hosts.
type orders struct {
	hosts []int
	data  []byte
}

func (m *orders) fields(c *wire.Codec) {
	wire.List(c, &m.hosts, maxHosts, func(h *int) { host(c, h) })
	c.Bytes(&m.data, maxFrame)
}

// hangUp ends the orders to an agent.
type hangUp struct{ host int }

func (m *hangUp) fields(c *wire.Codec) { host(c, &m.host) }

// kill ends an agent, or the process that stands for it on its parent host.
type kill struct{ host int }

func (m *kill) fields(c *wire.Codec) { host(c, &m.host) }

// started announces that an agent runs.
type started struct{ host int }

func (m *started) fields(c *wire.Codec) { host(c, &m.host) }

// report is output of an agent.
type report struct {
	host int
	data []byte
}

func (m *report) fields(c *wire.Codec) {
	host(c, &m.host)
	c.Bytes(&m.data, chunk)
}

// ended announces that an agent has ended, or could not be started.
type ended struct {
	host int
	how  string
	lost bool // because of a relay's end
	with int  // that relay's host
}

func (m *ended) fields(c *wire.Codec) {
	host(c, &m.host)
	c.Prose(&m.how, maxText)
	c.Bools(&m.lost)
	host(c, &m.with)
}

// launcher is the launcher's own host among the numbers of hosts.
const launcher = -1

func host(c *wire.Codec, n *int) { wire.Int(c, n, launcher, maxHosts) }

// A reader reads messages from or to a relay.
type reader struct {
	from   io.Reader
	frames wire.Frames
}

func newReader(r io.Reader) *reader { return &reader{r, wire.Frames{Limit: maxFrame}} }

// open reads the magic.
func (r *reader) open() error {
	got := make([]byte, len(magic))
	if _, err := io.ReadFull(r.from, got); err != nil {
		return err
	}
	if !bytes.Equal(got, []byte(magic)) {
		return fmt.Errorf("it begins with %q: want %q, as relays of this version do", got, magic)
	}
	return nil
}

// next waits for the next message. Its bytes are valid until the next call.
func (r *reader) next() (message, error) { return protocol.Receive(r.from, &r.frames) }
