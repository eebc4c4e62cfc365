package core

import (
	"fmt"

	"gompi/internal/boot"
	"gompi/internal/core/card"
	"gompi/internal/core/logging"
	"gompi/internal/core/path"
	"gompi/internal/core/symheap"
	"gompi/internal/env"
	"gompi/internal/poll"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/shm"
	"gompi/transport/tcp"
)

// launcherKey is the launcher's descriptor in the poll set.
const launcherKey = 1

// A network is how a rank reaches the others: ranks of its host through shared memory, if there
// is some, and all others over UCX, if all ranks have it, or TCP.
type network struct {
	cfg    settings
	boot   boot.Boot
	info   *boot.Info
	set    *poll.Set
	tcpCfg tcp.Config

	// The results of connect.
	tcp    *tcp.Transport
	shared *shm.Transport // nil if there is none
	rdma   rdmaTransport
	memory *hostMemory // nil if there is no shared memory
}

// network is the fabric of a rank with a network.
func (cfg settings) network(b boot.Boot, set *poll.Set) (connection, error) {
	info := b.Info()
	lo, hi, err := env.Ports(env.PortRange)
	if err != nil {
		return connection{}, err
	}
	macs, err := env.Bool(env.FrameMAC)
	if err != nil {
		return connection{}, err
	}
	n := &network{cfg: cfg, boot: b, info: info, set: set, tcpCfg: tcp.Config{
		Rank: info.Rank, Size: info.Places(), JobID: info.JobID, Secret: info.Secret,
		SameHost:   func(r world.Rank) bool { return info.NodeIndex(r) == info.Node },
		Interfaces: env.String(env.Iface), PortLow: lo, PortHigh: hi, FrameMAC: macs,
		Logger: cfg.Logger.With(logging.Part, logging.TCP),
	}}
	return connection{
		Fabric: Fabric{Boot: b, Parker: set, Connect: n.connect, Yield: cfg.yield(), Close: set.Close},
		spin:   spin, card: n.card, setCards: n.setCards, admit: n.admit, setRules: n.setRules,
		memory: func() *hostMemory { return n.memory },
	}, nil
}

// connect is the Connect of a connection. The first transport that reaches a rank carries its
// messages.
func (n *network) connect(sink transport.Sink, launcherReady func()) ([]transport.Transport, error) {
	if fd := n.boot.FD(); fd >= 0 {
		if err := n.set.Add(fd, launcherKey, poll.Read); err != nil {
			return nil, err
		}
	}
	n.tcpCfg.Foreign = func(key uint64) {
		if key == launcherKey {
			launcherReady()
		}
	}
	var all []transport.Transport
	if n.shared = n.cfg.shared(n.info, sink); n.shared != nil {
		n.memory = newHostMemory(n.info, n.shared)
		all = append(all, n.shared)
	}
	var err error
	n.tcpCfg.Optional = n.shared != nil || n.info.Places() == 1
	if n.tcp, err = tcp.New(n.tcpCfg, sink, n.set); err != nil {
		return nil, err
	}
	if n.rdma.open(n.cfg, n.info, n.tcpCfg.FrameMAC, sink, n.set); n.rdma.err == nil {
		all = append(all, &n.rdma)
	}
	return append(all, n.tcp), nil
}

// card is the card of a connection: whether this rank shares memory, its card for RDMA, that for
// TCP.
func (n *network) card() []byte {
	own := n.rdma.card()
	return append(own.append([]byte{sharing(n.shared)}), n.tcp.Card()...)
}

// setCards is the setCards of a connection, and leaves TCP's part of cards.
func (n *network) setCards(cards [][]byte) error {
	rdmaCards := make([]rdmaCard, len(cards))
	for r, c := range cards {
		if r >= n.info.Size && len(c) == 0 {
			continue // no rank has this place yet
		}
		var err error
		if cards[r], err = cutCard(world.Rank(r), c, n.shared, &rdmaCards[r]); err != nil {
			return err
		}
		cards[r] = heard(cards[r])
		if deaf := n.tcp.Deaf(); deaf != nil && r != int(n.info.Rank) && c[0] == sharing(nil) {
			return fmt.Errorf("rank %d has no shared memory, and this rank no TCP: %w", r, deaf)
		}
	}
	if err := n.rdma.setCards(n.cfg, n.info, rdmaCards[:n.info.Size]); err != nil {
		return err
	}
	return n.tcp.SetCards(cards)
}

// admit takes the card of a rank that comes later, which UCX does not reach.
func (n *network) admit(rank world.Rank, b []byte) error {
	rest, err := cutCard(rank, b, n.shared, new(rdmaCard))
	if err != nil {
		return err
	}
	if rest = heard(rest); rest == nil {
		return nil
	}
	return n.tcp.SetCard(rank, rest)
}

// heard returns TCP's card of a rank, nil for a rank that does not listen.
func heard(card []byte) []byte {
	if len(card) == 0 {
		return nil
	}
	return card
}

// setRules takes the shape of the rings in shared memory from the rules that all ranks agree on.
func (n *network) setRules(r *path.Rules) {
	if n.shared != nil {
		chunk, bytes := r.Ring()
		n.shared.SetShape(shm.Shape{Chunk: chunk, Bytes: bytes, Reach: r.Reach()})
	}
}

// cutCard takes the other transports' parts from a rank's card, and returns TCP's.
func cutCard(rank world.Rank, b []byte, shared *shm.Transport, rdma *rdmaCard) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, card.ErrCard
	}
	if shared != nil && b[0] == sharing(nil) {
		shared.Exclude(rank)
	}
	return rdma.cut(b[1:])
}

// sharing is the first byte of a rank's card: whether the rank has the transport through shared
// memory. Ranks of a host may differ here, and must know.
func sharing(t *shm.Transport) byte {
	if t == nil {
		return 0
	}
	return 1
}

// shared returns the transport through shared memory, nil if the ranks of this
// host share none, or TCP is to be used.
func (cfg settings) shared(info *boot.Info, sink transport.Sink) *shm.Transport {
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
