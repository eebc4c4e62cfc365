package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/comm/internal/card"
	"gompi/comm/internal/logging"
	"gompi/internal/boot"
	"gompi/internal/env"
	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx"
)

// An rdmaTransport is a rank's transport over UCX, or the reason why it has none. All ranks use
// theirs, or none does.
type rdmaTransport struct {
	*ucx.Transport
	err error
}

var (
	errOnlyTCP = fmt.Errorf("%s is tcp there", env.Transport)
	errMACs    = fmt.Errorf("UCX's messages have no MACs, which %s asks for", env.FrameMAC)
	errOneHost = errors.New("all ranks are on one host")
)

// rdmaAsked reports whether cfg asks for UCX, and which of its transports it names: "ucx" leaves
// that to UCX, "ucx:tcp" is for tests.
func (cfg Config) rdmaAsked() (transports string, asked bool) {
	name, transports, _ := strings.Cut(cfg.Transport, ":")
	return transports, name == "ucx"
}

// open opens the transport over UCX, unless cfg excludes it or nobody asks for it on a single host.
func (r *rdmaTransport) open(cfg Config, info *boot.Info, macs bool, sink transport.Sink, set *poll.Set) {
	transports, asked := cfg.rdmaAsked()
	switch {
	case cfg.Transport == "tcp":
		r.err = errOnlyTCP
	case macs:
		r.err = errMACs
	case !asked && info.Nodes == 1:
		r.err = errOneHost
	default:
		r.Transport, r.err = ucx.New(ucx.Config{
			Rank: info.Rank, Size: info.Size, JobID: info.JobID, Secret: info.Secret, Transports: transports,
			Logger: cfg.Logger.With(logging.Part, logging.UCX),
		}, sink, set)
	}
}

// appendCard appends r's part of the rank's card: 1 and the address, or 0 and the error, each with
// its length.
func (r *rdmaTransport) appendCard(b []byte) []byte {
	has, text := byte(1), []byte(nil)
	if r.err != nil {
		has, text = 0, []byte(r.err.Error())
	} else {
		text = r.Card()
	}
	b = binary.LittleEndian.AppendUint16(append(b, has), uint16(len(text)))
	return append(b, text...)
}

// cutCard decodes what appendCard has encoded.
func cutCard(b []byte) (address []byte, missing error, rest []byte, err error) {
	if len(b) < 3 || len(b)-3 < int(binary.LittleEndian.Uint16(b[1:])) {
		return nil, nil, nil, card.ErrCard
	}
	text, rest := b[3:][:binary.LittleEndian.Uint16(b[1:])], b[3+binary.LittleEndian.Uint16(b[1:]):]
	if b[0] == 0 {
		return nil, errors.New(string(text)), rest, nil
	}
	return text, nil, rest, nil
}

// setCards sets the addresses of all ranks. If one of them has none, it closes r instead. Rank 0
// logs which one and why, if some rank has RDMA or cfg asks for it.
func (r *rdmaTransport) setCards(cfg Config, info *boot.Info, addresses [][]byte, missing []error) error {
	without := slices.IndexFunc(missing, func(err error) bool { return err != nil })
	if without < 0 {
		return r.SetCards(addresses)
	}
	_, asked := cfg.rdmaAsked()
	if info.Rank == 0 && (asked || slices.Contains(missing, nil)) {
		cfg.Logger.Warn("no RDMA: all ranks use TCP", "rank", without, "host", info.Host(world.Rank(without)), "err", missing[without])
	}
	if r.err != nil {
		return nil
	}
	r.Close(true)
	return r.SetCards(make([][]byte, len(missing)))
}
