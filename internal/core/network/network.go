// Package network connects a rank to the other ranks of its job. Ranks exchange Cards in Init
// through the launcher, and draw common conclusions (card.go): whether ranks outnumber their
// processors, which ranks may have buffers on devices, and which rules choose Paths. Each transport
// has a file here, which opens it and encodes its part of the Card, and is an entry of ways. A
// message takes the first transport that reaches its receiver.
package network

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"

	"gompi/internal/boot"
	"gompi/internal/core/progress"
	"gompi/internal/env"
	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/shm"
)

const launcherKey = 1 // the launcher's descriptor in the poll set

// Settings are the user's choices for a rank's transports.
type Settings struct {
	Transport      string // GOMPI_TRANSPORT
	KeepScheduling bool   // Go's scheduler stays as it is
	Logger         *slog.Logger
}

// Check returns an error if there is no such Transport.
func (s Settings) Check() error {
	if _, ucx := s.AsksUCX(); !ucx && s.Transport != "" && s.Transport != "tcp" {
		return fmt.Errorf("%s=%q: want tcp or ucx", env.Transport, s.Transport)
	}
	return nil
}

// A way is a transport as a rank has it, or lacks it.
type way interface {
	// open makes the transport, nil if this rank lacks it.
	open(sink transport.Sink) (transport.Transport, error)
	// card returns the way's part of the rank's card, which may be empty.
	card() []byte
	// setCards takes and keeps the parts of all ranks, by rank, nil for a rank to come.
	setCards(parts [][]byte) error
	// admit takes the part of a rank that comes later.
	admit(rank world.Rank, part []byte) error
}

// A network is a rank's transports, and the settings from which they are made.
type network struct {
	Settings
	boot   boot.Boot
	info   *boot.Info
	set    *poll.Set
	shared sharedMemory
	rdma   rdma
	tcp    overTCP
}

// ways are the transports in the order of preference.
func (n *network) ways() []way { return []way{&n.shared, &n.rdma, &n.tcp} }

// Connect connects this process to the job that b belongs to.
func (s Settings) Connect(b boot.Boot) (Connection, error) {
	info := b.Info()
	if info.Size == 1 {
		return solo(b), nil
	}
	yield := progress.Yield
	if !s.KeepScheduling {
		if runtime.GOMAXPROCS(0) < 2 { // the same again would end Go's own updates
			runtime.GOMAXPROCS(2)
		}
		progress.ShortenSlices()
		yield = progress.YieldShort
	}
	bell := -1
	if int(info.LocalRank) < len(info.Bells) {
		bell = info.Bells[info.LocalRank]
	}
	set, err := poll.New(bell)
	if err != nil {
		return Connection{}, err
	}
	n := &network{Settings: s, boot: b, info: info, set: set}
	n.shared.network, n.rdma.network, n.tcp.network = n, n, n
	if err := n.tcp.configure(); err != nil {
		return Connection{}, err
	}
	return Connection{
		Fabric: Fabric{Boot: b, Parker: set, Connect: n.connect, Yield: yield, Close: set.Close},
		Spin:   spin, Card: n.card, SetCards: n.setCards, Admit: n.admit, SetRules: n.shared.setRules,
		Shared: func() *shm.Transport { return n.shared.t },
	}, nil
}

// connect is the Connect of a Connection.
func (n *network) connect(sink transport.Sink, launcherReady func()) (all []transport.Transport, err error) {
	if fd := n.boot.FD(); fd >= 0 {
		if err := n.set.Add(fd, launcherKey, poll.Read); err != nil {
			return nil, err
		}
	}
	n.tcp.config.Foreign = func(key uint64) {
		if key == launcherKey {
			launcherReady()
		}
	}
	for _, w := range n.ways() {
		t, err := w.open(sink)
		if err != nil {
			return nil, err
		}
		if t != nil {
			all = append(all, t)
		}
	}
	return all, nil
}

// card is the Card of a Connection: each way's part behind its length.
func (n *network) card() (b []byte) {
	for _, w := range n.ways() {
		b = appendField(b, w.card())
	}
	return b
}

// setCards is the SetCards of a Connection.
func (n *network) setCards(cards [][]byte) error {
	for _, w := range n.ways() {
		parts := make([][]byte, len(cards))
		for r, c := range cards {
			if r >= n.info.Size && len(c) == 0 {
				continue // no rank has this place yet
			}
			var err error
			if parts[r], cards[r], err = cutField(c); err != nil {
				return err
			}
		}
		if err := w.setCards(parts); err != nil {
			return err
		}
	}
	return nil
}

// admit is the Admit of a Connection.
func (n *network) admit(rank world.Rank, c []byte) error {
	for _, w := range n.ways() {
		part, rest, err := cutField(c)
		if err != nil {
			return err
		}
		if err := w.admit(rank, part); err != nil {
			return err
		}
		c = rest
	}
	return nil
}

// appendField appends a field behind its length.
func appendField(b, field []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(field))), field...)
}

// cutField returns the field that b begins with, nil if empty, and the rest of b.
func cutField(b []byte) (field, rest []byte, err error) {
	if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
		return nil, nil, ErrCard
	}
	n := 2 + int(binary.LittleEndian.Uint16(b))
	if n > 2 {
		field = b[2:n:n]
	}
	return field, b[n:], nil
}
