package ctl

import (
	"math"
	"time"

	"gompi/internal/boot/wire"
)

// The messages of gompirun doctor. An agent that is examined starts no ranks.

// Examine asks an agent for its Findings. From then on it lets the other agents
// of this checkup, which know the secret, connect to it as ranks would.
type Examine struct {
	Secret            [32]byte
	PortLow, PortHigh int    // to listen on, 0 for any
	Interfaces        string // as for ranks
}

func (*Examine) kind() byte { return kindExamine }
func (m *Examine) append(b []byte) []byte {
	b = append(b, m.Secret[:]...)
	b = wire.AppendInt(wire.AppendInt(b, m.PortLow), m.PortHigh)
	return wire.AppendBytes(b, m.Interfaces)
}
func (m *Examine) parse(d *wire.Decoder) {
	d.Fixed(m.Secret[:])
	m.PortLow, m.PortHigh = int(d.Int(0, math.MaxUint16)), int(d.Int(0, math.MaxUint16))
	m.Interfaces = d.String(MaxText)
}

// Unlimited is a limit that is none.
const Unlimited = -1

// Findings are what there is on a host, beyond Hello.
type Findings struct {
	Received, Sent int64 // when Examine came and this went, by the host's clock, nanoseconds since 1970

	Port       int      // it listens on, 0 for none
	Trouble    string   // why it does not listen
	Addresses  []string // that ranks would publish, with their subnets: 10.0.0.1/24
	Interfaces []Interface

	MilliCPUs   int   // thousandths of a processor that the control group grants, or Unlimited
	Memory      int64 // bytes
	MemoryFree  int64
	MemoryLimit int64    // of the control group, or Unlimited
	Shm         int64    // size of /dev/shm, 0 if there is none
	Memlock     int64    // bytes that may be locked, or Unlimited
	Files       int64    // that may be open at once, or Unlimited
	FilesHard   int64    // what Files may be raised to, or Unlimited
	UCX         string   // path of its library, "" for none
	RDMA        []string // devices
}

// An Interface is one network interface that is up.
type Interface struct {
	Name      string
	Addresses []string
	MTU       int
	Megabits  int // per second, 0 if it does not tell
}

// numbers are the fields that are whole numbers, in their order on the wire.
func (m *Findings) numbers() []*int64 {
	return []*int64{
		&m.Received, &m.Sent, &m.Memory, &m.MemoryFree, &m.MemoryLimit,
		&m.Shm, &m.Memlock, &m.Files, &m.FilesHard,
	}
}

func (*Findings) kind() byte { return kindFindings }
func (m *Findings) append(b []byte) []byte {
	for _, n := range m.numbers() {
		b = wire.AppendInt(b, *n)
	}
	b = wire.AppendInt(wire.AppendInt(b, m.Port), m.MilliCPUs)
	b = wire.AppendBytes(wire.AppendBytes(b, m.Trouble), m.UCX)
	b = wire.AppendStrings(wire.AppendStrings(b, m.Addresses), m.RDMA)
	b = wire.AppendInt(b, len(m.Interfaces))
	for _, i := range m.Interfaces {
		b = wire.AppendStrings(wire.AppendBytes(b, i.Name), i.Addresses)
		b = wire.AppendInt(wire.AppendInt(b, i.MTU), i.Megabits)
	}
	return b
}

func (m *Findings) parse(d *wire.Decoder) {
	for _, n := range m.numbers() {
		*n = d.Int(math.MinInt64, math.MaxInt64)
	}
	m.Port, m.MilliCPUs = int(d.Int(0, math.MaxUint16)), int(d.Int(Unlimited, math.MaxInt32))
	m.Trouble, m.UCX = d.String(MaxText), d.String(MaxText)
	m.Addresses, m.RDMA = d.Strings(maxList, MaxText), d.Strings(maxList, MaxText)
	for range d.List(maxList) {
		i := Interface{Name: d.String(MaxText), Addresses: d.Strings(maxList, MaxText)}
		i.MTU, i.Megabits = int(d.Int(0, math.MaxInt32)), int(d.Int(0, math.MaxInt32))
		m.Interfaces = append(m.Interfaces, i)
	}
}

// Reach asks an examined agent to connect to another and to send it data. The
// answer is Reached.
type Reach struct {
	Peer      int      // index of the other host
	Addresses []string // as in its Findings
	Port      int
	Limit     time.Duration // of connecting
	Send      time.Duration // how long to send
}

func (*Reach) kind() byte { return kindReach }
func (m *Reach) append(b []byte) []byte {
	b = wire.AppendStrings(wire.AppendInt(b, m.Peer), m.Addresses)
	return wire.AppendInt(wire.AppendInt(wire.AppendInt(b, m.Port), m.Limit), m.Send)
}
func (m *Reach) parse(d *wire.Decoder) {
	m.Peer = int(d.Int(0, maxList))
	m.Addresses = d.Strings(maxList, MaxText)
	m.Port = int(d.Int(0, math.MaxUint16))
	m.Limit, m.Send = time.Duration(d.Int(0, math.MaxInt64)), time.Duration(d.Int(0, math.MaxInt64))
}

// Reached says how a host was reached from another.
type Reached struct {
	Peer      int
	Trouble   string // "" if it was
	Address   string // of the peer, with the port
	Interface string // of this host
	RoundTrip time.Duration
	Bytes     int64         // sent and received
	Took      time.Duration // for that
}

func (*Reached) kind() byte { return kindReached }
func (m *Reached) append(b []byte) []byte {
	b = wire.AppendBytes(wire.AppendBytes(wire.AppendBytes(wire.AppendInt(b, m.Peer), m.Trouble), m.Address), m.Interface)
	return wire.AppendInt(wire.AppendInt(wire.AppendInt(b, m.RoundTrip), m.Bytes), m.Took)
}
func (m *Reached) parse(d *wire.Decoder) {
	m.Peer = int(d.Int(0, maxList))
	m.Trouble, m.Address, m.Interface = d.String(MaxText), d.String(MaxText), d.String(MaxText)
	m.RoundTrip = time.Duration(d.Int(0, math.MaxInt64))
	m.Bytes, m.Took = d.Int(0, math.MaxInt64), time.Duration(d.Int(0, math.MaxInt64))
}
