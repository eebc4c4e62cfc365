package comm

import (
	"gompi/internal/boot"
	"gompi/internal/env"
	"gompi/internal/poll"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/tcp"
)

// A Fabric is how a rank is connected: its launcher, its transports, and how it
// sleeps. Init makes one for a process; tests make others.
type Fabric struct {
	Boot   boot.Boot
	Parker transport.Parker
	// Connect makes the transports, which deliver to sink. heard is to be called,
	// from inside a Poll, when the launcher's descriptor is readable.
	Connect func(sink transport.Sink, heard func()) ([]transport.Transport, error)
	// Card returns what the other ranks need in order to reach this one, and
	// Meet takes what they returned. Both may be nil.
	Card func() []byte
	Meet func(cards [][]byte) error
	// Yield gives the processor to whoever else can run.
	Yield func()
	// Spin is how often to poll before the first yield, if ranks do not outnumber
	// processors.
	Spin int
	// Close releases what Parker holds. It may be nil.
	Close func() error
}

// How a rank waits before it sleeps.
const (
	// spin is how often a rank with a processor of its own polls before it
	// yields: some hundred microseconds, several times what a wake-up costs.
	spin = 1000
	// yields is how often it then polls, each time after a yield: that hands the
	// processor to another rank in 1-2 us, a wake-up costs 20-30.
	yields = 16
	// manyToAProcessor ranks and more sleep at once: their yields would only
	// keep those from running that have something to do (starting 64 ranks on
	// two processors took 490 ms with 16 yields, 350 with 2 and 270 with none).
	manyToAProcessor = 8
)

// fabric connects this process to the job that b belongs to.
func (cfg Config) fabric(b boot.Boot) (Fabric, error) {
	info := b.Info()
	if info.Size == 1 {
		return solo(b), nil
	}
	bell := -1
	if info.LocalRank < len(info.Bells) {
		bell = info.Bells[info.LocalRank]
	}
	set, err := poll.New(bell)
	if err != nil {
		return Fabric{}, err
	}
	return cfg.network(b, set)
}

// solo is the fabric of a world of one.
func solo(b boot.Boot) Fabric {
	return Fabric{
		Boot:    b,
		Parker:  inproc.NewParker(),
		Connect: func(transport.Sink, func()) ([]transport.Transport, error) { return nil, nil },
		Yield:   yield,
		Spin:    spin,
	}
}

// launcherKey is the launcher's descriptor in the poll set.
const launcherKey = 1

// network is the fabric of a rank that reaches the others over TCP.
func (cfg Config) network(b boot.Boot, set *poll.Set) (Fabric, error) {
	info := b.Info()
	lo, hi, err := env.Ports(env.PortRange)
	if err != nil {
		return Fabric{}, err
	}
	own := tcp.Config{
		Rank: info.Rank, Size: info.Size, JobID: info.JobID, Secret: info.Secret,
		SameHost:   func(r int) bool { return info.NodeIndex(r) == info.Node },
		Interfaces: env.String(env.Iface), PortLow: lo, PortHigh: hi,
		Logger: cfg.Logger.With("part", partTCP),
	}
	var t *tcp.Transport
	return Fabric{
		Boot: b, Parker: set, Yield: yield, Spin: spin, Close: set.Close,
		Connect: func(sink transport.Sink, heard func()) ([]transport.Transport, error) {
			if fd := b.FD(); fd >= 0 {
				if err := set.Add(fd, launcherKey, poll.Read); err != nil {
					return nil, err
				}
			}
			own.Foreign = func(uint64) { heard() }
			var err error
			t, err = tcp.New(own, sink, set)
			return []transport.Transport{t}, err
		},
		Card: func() []byte { return t.Card() },
		Meet: func(cards [][]byte) error { return t.SetCards(cards) },
	}, nil
}
