package ctl

import (
	"math"
	"net/netip"
	"time"

	"gompi/internal/boot/wire"
)

// The messages of gompirun doctor. An agent under examination starts no ranks.

// Examine asks an agent for its Findings. From then on other agents of this checkup, which know
// the secret, may connect to it as ranks would.
type Examine struct {
	Secret            [32]byte
	PortLow, PortHigh int    // to listen on, 0 for any
	Interfaces        string // as for ranks
	Env               []string
	Dir               string
	Remote            bool // Env, Dir and Remote are as for a Launch
}

func (m *Examine) fields(c *wire.Codec) {
	c.Fixed(m.Secret[:])
	wire.Int(c, &m.PortLow, 0, math.MaxUint16)
	wire.Int(c, &m.PortHigh, 0, math.MaxUint16)
	c.String(&m.Interfaces, MaxText)
	c.Strings(&m.Env, maxList, maxString)
	c.String(&m.Dir, MaxText)
	c.Bools(&m.Remote)
}

// Unlimited stands for the absence of a limit.
const Unlimited = -1

// Findings describe a host, beyond Hello.
type Findings struct {
	Received, Sent int64 // when Examine came and this went, by the host's clock, ns since 1970

	Port       int            // of its listener, 0 for none
	Trouble    string         // reason for not listening
	Addresses  []netip.Prefix // of ranks, with their subnets
	Interfaces []Interface

	MilliCPUs   int   // thousandths of a processor that the control group grants, or Unlimited
	Memory      int64 // bytes
	MemoryFree  int64
	MemoryLimit int64  // of the control group, or Unlimited
	Shm         int64  // size of /dev/shm, 0 if there is none
	Memlock     int64  // bytes that a rank may lock, or Unlimited
	Files       int64  // most open files, or Unlimited
	FilesHard   int64  // upper bound of Files, or Unlimited
	UCX         string // path of its library, "" for none
	MPI         string // MPI implementations whose programs gompi's MPI library serves
	RDMA        []RDMAPort
	Processor   string // its name in package machine
	Tuning      string // its settings for GOMPI_TUNE
	PtraceScope int    // Yama's, if ranks may not trace all processes; else 0
	Python      Python
}

// A Python is the python3 that ranks run, "" for each package that it lacks.
type Python struct {
	Path       string // "" if there is none
	Version    string // or why it is not known
	Torch      string
	GompiTorch string
}

// An RDMAPort is a port of an InfiniBand or RoCE device, in the kernel's words.
type RDMAPort struct {
	Name                   string // mlx5_0:1
	State, Link, Rate, GID string
	Domain                 int // memory domain of the device, -1 if that is not known
}

// An Interface is a network interface that is up.
type Interface struct {
	Name      string
	Addresses []string
	MTU       int
	Megabits  int // per second, 0 if unknown
}

func (m *Findings) fields(c *wire.Codec) {
	for _, n := range []*int64{&m.Received, &m.Sent, &m.Memory, &m.MemoryFree, &m.MemoryLimit, &m.Shm, &m.Memlock,
		&m.Files, &m.FilesHard} {
		wire.Int(c, n, math.MinInt64, math.MaxInt64)
	}
	wire.Int(c, &m.Port, 0, math.MaxUint16)
	wire.Int(c, &m.MilliCPUs, Unlimited, math.MaxInt32)
	c.Prose(&m.Trouble, MaxText)
	c.String(&m.UCX, MaxText)
	c.String(&m.MPI, MaxText)
	for _, s := range []*string{&m.Processor, &m.Tuning,
		&m.Python.Path, &m.Python.Version, &m.Python.Torch, &m.Python.GompiTorch} {
		c.String(s, MaxText)
	}
	wire.Int(c, &m.PtraceScope, 0, 9)
	prefixes(c, &m.Addresses)
	wire.List(c, &m.RDMA, maxList, func(p *RDMAPort) {
		for _, s := range []*string{&p.Name, &p.State, &p.Link, &p.Rate, &p.GID} {
			c.String(s, MaxText)
		}
		wire.Int(c, &p.Domain, -1, math.MaxInt32)
	})
	wire.List(c, &m.Interfaces, maxList, func(i *Interface) {
		c.String(&i.Name, MaxText)
		c.Strings(&i.Addresses, maxList, MaxText)
		wire.Int(c, &i.MTU, 0, math.MaxInt32)
		wire.Int(c, &i.Megabits, 0, math.MaxInt32)
	})
}

// Reach asks an agent under examination to connect to another and send it data. The answer is
// Reached.
type Reach struct {
	Peer      int            // index of the other host
	Addresses []netip.Prefix // from its Findings
	Port      int
	Limit     time.Duration // of connecting
	Send      time.Duration // how long to send
}

func (m *Reach) fields(c *wire.Codec) {
	wire.Int(c, &m.Peer, 0, maxList)
	prefixes(c, &m.Addresses)
	wire.Int(c, &m.Port, 0, math.MaxUint16)
	wire.Int(c, &m.Limit, 0, math.MaxInt64)
	wire.Int(c, &m.Send, 0, math.MaxInt64)
}

// Reached reports the connection of a host to another.
type Reached struct {
	Peer      int
	Trouble   string // "" for success
	Address   string // of the peer, with the port
	Interface string // of this host
	RoundTrip time.Duration
	Bytes     int64         // sent and received
	Took      time.Duration // duration of the transfer
}

func (m *Reached) fields(c *wire.Codec) {
	wire.Int(c, &m.Peer, 0, maxList)
	c.Prose(&m.Trouble, MaxText)
	c.String(&m.Address, MaxText)
	c.String(&m.Interface, MaxText)
	wire.Int(c, &m.RoundTrip, 0, math.MaxInt64)
	wire.Int(c, &m.Bytes, 0, math.MaxInt64)
	wire.Int(c, &m.Took, 0, math.MaxInt64)
}
