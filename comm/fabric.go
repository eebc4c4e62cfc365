package comm

import (
	"runtime"

	"gompi/comm/internal/card"
	"gompi/comm/internal/logging"
	"gompi/comm/internal/path"
	"gompi/comm/internal/sched"
	"gompi/comm/internal/symheap"
	"gompi/internal/boot"
	"gompi/internal/env"
	"gompi/internal/poll"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/shm"
	"gompi/transport/tcp"
)

// A Fabric connects a rank: to its launcher, to other ranks by transports, and to what wakes it
// when it sleeps. Init makes one for a process; tests make others.
type Fabric struct {
	Boot   boot.Boot
	Parker transport.Parker
	// Connect makes the transports, which deliver to sink. heard is to be called,
	// from inside a Poll, when the launcher's descriptor is readable.
	Connect func(sink transport.Sink, heard func()) ([]transport.Transport, error)
	// Card returns what the other ranks need in order to reach this one.
	// SetCards takes the cards of all. Both may be nil.
	Card     func() []byte
	SetCards func(cards [][]byte) error
	// Yield gives the processor to another thread that can run.
	Yield func()
	// Spin is how often to poll before the first yield, if ranks do not outnumber
	// processors.
	Spin int
	// Close releases what Parker holds. It may be nil.
	Close func() error

	memory   func() *hostMemory // nil, or what Connect found to share
	setRules func(*path.Rules)  // nil, or takes the rules that all ranks agree on
	// admit takes the card of a rank that comes later; nil if none can.
	admit func(rank world.Rank, card []byte) error
}

// How a rank waits before it sleeps.
const (
	// spin is how often a rank with a processor of its own polls before it
	// yields: some hundred microseconds, several times what a wake-up costs.
	spin = 1000
	// yields is how often it then polls, each time after a yield: that hands the
	// processor to another rank in 1-2 us, a wake-up costs 20-30. Ranks that share processors
	// wait so while the others copy (on two, yielding 64 and 1024 times: np=4, allreduce of 64 KiB
	// 23 and 15 us, of 1 MiB 204 and 129; np=8, 60 and 44 us, reduce of 1 MiB 318 and 234; np=64,
	// barrier 0.36 and 0.25 ms, 18 where they sleep at once).
	yields = 1024
)

// fabric connects this process to the job that b belongs to.
func (cfg Config) fabric(b boot.Boot) (Fabric, error) {
	info := b.Info()
	if info.Size == 1 {
		return solo(b), nil
	}
	if !cfg.KeepScheduling {
		if runtime.GOMAXPROCS(0) < 2 { // the same again would end Go's own updates
			runtime.GOMAXPROCS(2)
		}
		sched.ShortenSlices()
	}
	bell := -1
	if int(info.LocalRank) < len(info.Bells) {
		bell = info.Bells[info.LocalRank]
	}
	set, err := poll.New(bell)
	if err != nil {
		return Fabric{}, err
	}
	return cfg.network(b, set)
}

// yield returns what gives the processor away.
func (cfg Config) yield() func() {
	if cfg.KeepScheduling {
		return sched.Yield
	}
	return sched.YieldShort
}

// solo is the fabric of a world of one.
func solo(b boot.Boot) Fabric {
	return Fabric{
		Boot:    b,
		Parker:  inproc.NewParker(),
		Connect: func(transport.Sink, func()) ([]transport.Transport, error) { return nil, nil },
		Yield:   sched.Yield,
		Spin:    spin,
	}
}

// launcherKey is the launcher's descriptor in the poll set.
const launcherKey = 1

// network is the fabric of a rank that reaches the others of its host through shared memory, if
// there is some, and all others over UCX, if all ranks have it, or TCP.
func (cfg Config) network(b boot.Boot, set *poll.Set) (Fabric, error) {
	info := b.Info()
	lo, hi, err := env.Ports(env.PortRange)
	if err != nil {
		return Fabric{}, err
	}
	macs, err := env.Bool(env.FrameMAC)
	if err != nil {
		return Fabric{}, err
	}
	own := tcp.Config{
		Rank: info.Rank, Size: info.Places(), JobID: info.JobID, Secret: info.Secret,
		SameHost:   func(r world.Rank) bool { return info.NodeIndex(r) == info.Node },
		Interfaces: env.String(env.Iface), PortLow: lo, PortHigh: hi, FrameMAC: macs,
		Logger: cfg.Logger.With(logging.Part, logging.TCP),
	}
	var t *tcp.Transport
	var shared *shm.Transport
	rdma := new(rdmaTransport)
	var memory *hostMemory
	return Fabric{
		Boot: b, Parker: set, Yield: cfg.yield(), Spin: spin, Close: set.Close,
		Connect: func(sink transport.Sink, heard func()) ([]transport.Transport, error) {
			if fd := b.FD(); fd >= 0 {
				if err := set.Add(fd, launcherKey, poll.Read); err != nil {
					return nil, err
				}
			}
			own.Foreign = func(key uint64) {
				if key == launcherKey {
					heard()
				}
			}
			var err error
			if t, err = tcp.New(own, sink, set); err != nil {
				return nil, err
			}
			var all []transport.Transport // the first that reaches a rank carries what goes there
			if shared = cfg.shared(info, sink); shared != nil {
				memory = newHostMemory(info, shared)
				all = append(all, shared)
			}
			if rdma.open(cfg, info, macs, sink, set); rdma.err == nil {
				all = append(all, rdma)
			}
			return append(all, t), nil
		},
		Card: func() []byte {
			own := rdma.card()
			return append(own.append([]byte{sharing(shared)}), t.Card()...)
		},
		SetCards: func(cards [][]byte) error {
			rest, rdmaCards := make([][]byte, len(cards)), make([]rdmaCard, len(cards))
			for r, c := range cards {
				if r >= info.Size && len(c) == 0 {
					continue // nobody has taken this place
				}
				var err error
				if rest[r], err = cutCard(world.Rank(r), c, shared, &rdmaCards[r]); err != nil {
					return err
				}
			}
			if err := rdma.setCards(cfg, info, rdmaCards[:info.Size]); err != nil {
				return err
			}
			return t.SetCards(rest)
		},
		admit: func(rank world.Rank, b []byte) error {
			rest, err := cutCard(rank, b, shared, new(rdmaCard))
			if err != nil {
				return err
			}
			return t.SetCard(rank, rest)
		},
		memory: func() *hostMemory { return memory },
		setRules: func(r *path.Rules) {
			if shared != nil {
				chunk, bytes, nonTemporalFrom := r.Ring()
				shared.SetShape(shm.Shape{Chunk: chunk, Bytes: bytes, NonTemporalFrom: nonTemporalFrom})
			}
		},
	}, nil
}

// cutCard takes what is not TCP's from a rank's card, and returns the rest.
func cutCard(rank world.Rank, b []byte, shared *shm.Transport, rdma *rdmaCard) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, card.ErrCard
	}
	if shared != nil && b[0] == sharing(nil) {
		shared.Exclude(rank)
	}
	return rdma.cut(b[1:])
}

// sharing is the first byte of a rank's card: whether it has the transport through shared memory.
// Ranks of one host may differ in that, and must know.
func sharing(t *shm.Transport) byte {
	if t == nil {
		return 0
	}
	return 1
}

// shared returns the transport through shared memory, nil if the ranks of this
// host share none, or TCP is to be used.
func (cfg Config) shared(info *boot.Info, sink transport.Sink) *shm.Transport {
	s := info.Segment
	if info.Unshared != nil && cfg.Transport != "tcp" {
		cfg.Logger.Warn("no shared memory: TCP has to do", "err", info.Unshared)
	}
	if s == nil || s.Area() == nil || s.Ranks() > shm.MaxRanks || s.Ranks() == 1 || cfg.Transport == "tcp" {
		return nil
	}
	ranks := make([]world.Rank, s.Ranks())
	for i := range ranks {
		ranks[i] = s.WorldRank(world.LocalRank(i))
	}
	t, err := shm.New(shm.Config{
		Local: info.LocalRank, Ranks: ranks, Area: s.Area(), Claim: s.Claim, Release: s.Release,
		Heap: func(local world.LocalRank) []byte {
			_, heap := symheap.Divide(s.Arena(local))
			return heap
		},
		Ring: func(local world.LocalRank) { poll.Ring(info.Bells[local]) },
		PID:  s.PID,
		State: func(local world.LocalRank) shm.State {
			switch {
			case s.State(local) < seg.Closed:
				return shm.Alive
			case s.State(local) == seg.Closed || s.LeftAt(local) != 0:
				return shm.Left
			}
			return shm.Dead
		},
	}, sink)
	if err != nil {
		cfg.Logger.Warn("no shared memory: TCP has to do", "err", err)
		return nil
	}
	return t
}
