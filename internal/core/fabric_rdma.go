package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/boot"
	"gompi/internal/core/card"
	"gompi/internal/core/logging"
	"gompi/internal/env"
	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx"
)

// An rdmaTransport is a rank's transport over UCX, or the reason for its lack. All ranks use
// theirs, or none does.
type rdmaTransport struct {
	*ucx.Transport
	err error
}

var (
	errOnlyTCP = fmt.Errorf("%s is tcp there", env.Transport)
	errMACs    = fmt.Errorf("UCX's messages have no MACs, which %s asks for", env.FrameMAC)
	errOneHost = errors.New("all ranks are on one host")
	errSpares  = errors.New("UCX reaches no ranks that come later, as with -spares")
)

// rdmaAsked reports whether cfg asks for UCX, and which of UCX's transports cfg names: "ucx"
// leaves the choice to UCX, "ucx:tcp" is for tests.
func (cfg settings) rdmaAsked() (transports string, asked bool) {
	name, transports, _ := strings.Cut(cfg.Transport, ":")
	return transports, name == "ucx"
}

// open opens the transport over UCX, unless cfg excludes UCX or does not ask for it on a single
// host.
func (r *rdmaTransport) open(cfg settings, info *boot.Info, macs bool, sink transport.Sink, set *poll.Set) {
	transports, asked := cfg.rdmaAsked()
	switch {
	case cfg.Transport == "tcp":
		r.err = errOnlyTCP
	case macs:
		r.err = errMACs
	case info.Spares > 0:
		r.err = errSpares
	case !asked && info.Nodes == 1:
		r.err = errOneHost
	default:
		r.Transport, r.err = ucx.New(ucx.Config{
			Rank: info.Rank, Size: info.Size, JobID: info.JobID, Secret: info.Secret, Transports: transports,
			Logger: cfg.Logger.With(logging.Part, logging.UCX),
		}, sink, set)
	}
}

// An rdmaCard is a rank's part of its card: how UCX reaches the rank and over which fabrics, or
// why not.
type rdmaCard struct {
	address []byte
	fabrics []string
	why     []byte
}

func (r *rdmaTransport) card() rdmaCard {
	if r.err != nil {
		return rdmaCard{why: []byte(r.err.Error())}
	}
	return rdmaCard{address: r.Card(), fabrics: r.Fabrics()}
}

// append encodes c: each field with its length.
func (c *rdmaCard) append(b []byte) []byte {
	for _, field := range [][]byte{c.address, []byte(strings.Join(c.fabrics, ",")), c.why} {
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(field))), field...)
	}
	return b
}

// cut decodes the result of append, and returns the rest of b.
func (c *rdmaCard) cut(b []byte) (rest []byte, err error) {
	var fields [3][]byte
	for i := range fields {
		if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
			return nil, card.ErrCard
		}
		n := 2 + int(binary.LittleEndian.Uint16(b))
		fields[i], b = b[2:n], b[n:]
	}
	c.address, c.why = fields[0], fields[2]
	if len(fields[1]) > 0 {
		c.fabrics = strings.Split(string(fields[1]), ",")
	}
	return b, nil
}

// lacking returns the first rank because of which none can use RDMA, and why; -1 if all can.
func lacking(cards []rdmaCard) (rank int, err error) {
	if rank = slices.IndexFunc(cards, func(c rdmaCard) bool { return len(c.why) > 0 }); rank >= 0 {
		return rank, errors.New(string(cards[rank].why))
	}
	var common []string // of the ranks so far that know theirs
	for rank, c := range cards {
		before := common
		if len(c.fabrics) == 0 {
			continue
		}
		if common = c.fabrics; len(before) > 0 {
			common = slices.DeleteFunc(slices.Clone(before), func(f string) bool { return !slices.Contains(c.fabrics, f) })
		}
		if len(common) == 0 {
			return rank, fmt.Errorf("its ports are on %s, those of ranks before it on %s", strings.Join(c.fabrics, " and "), strings.Join(before, " and "))
		}
	}
	return -1, nil
}

// setCards sets the cards of all ranks. If any rank cannot use RDMA, setCards closes r instead.
// Rank 0 logs which rank and why, if some rank has RDMA or cfg asks for it.
func (r *rdmaTransport) setCards(cfg settings, info *boot.Info, cards []rdmaCard) error {
	addresses, some := make([][]byte, len(cards)), false
	for rank, c := range cards {
		addresses[rank] = c.address
		some = some || len(c.why) == 0
	}
	without, err := lacking(cards)
	if without < 0 {
		return r.SetCards(addresses)
	}
	_, asked := cfg.rdmaAsked()
	if info.Rank == 0 && (asked || some) {
		cfg.Logger.Warn("no RDMA: all ranks use TCP", "rank", without, "host", info.Host(world.Rank(without)), "err", err)
	}
	if r.err != nil {
		return nil
	}
	r.Close(true)
	return r.SetCards(make([][]byte, len(cards)))
}
