package network

import (
	"errors"
	"fmt"

	"gompi/internal/env"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/tcp"
)

// overTCP is the transport over TCP. Its part of a card holds the rank's addresses, and is empty if
// the rank does not listen.
type overTCP struct {
	*network
	t      *tcp.Transport
	config tcp.Config
}

// configure reads TCP's settings from the environment.
func (w *overTCP) configure() error {
	lo, hi, err := env.Ports(env.PortRange)
	macs, wrong := env.Bool(env.FrameMAC)
	w.config = tcp.Config{
		Rank: w.info.Rank, Size: w.info.Places(), JobID: w.info.JobID, Secret: w.info.Secret,
		SameHost:   func(r world.Rank) bool { return w.info.NodeIndex(r) == w.info.Node },
		Interfaces: env.String(env.Iface), PortLow: lo, PortHigh: hi, FrameMAC: macs,
		Logger: w.Logger.With(env.LogPart, env.LogTCP),
	}
	return errors.Join(err, wrong)
}

func (w *overTCP) open(sink transport.Sink) (_ transport.Transport, err error) {
	w.config.Optional = w.shared.t != nil || w.info.Places() == 1
	w.t, err = tcp.New(w.config, sink, w.set)
	return w.t, err
}

func (w *overTCP) card() []byte { return w.t.Card() }

func (w *overTCP) setCards(parts [][]byte) error {
	if deaf := w.t.Deaf(); deaf != nil {
		for _, r := range w.shared.without {
			if r != w.info.Rank {
				return fmt.Errorf("rank %d has no shared memory, and this rank no TCP: %w", r, deaf)
			}
		}
	}
	return w.t.SetCards(parts)
}

func (w *overTCP) admit(rank world.Rank, part []byte) error {
	if part == nil {
		return nil
	}
	return w.t.SetCard(rank, part)
}
