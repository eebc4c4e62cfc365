package network

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/env"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx"
)

// rdma is the transport over UCX, or the reason why there is none. Either all ranks use it or none.
// Its part of a card is an rdmaCard.
type rdma struct {
	*network
	t   *ucx.Transport
	err error
}

var (
	errOnlyTCP = fmt.Errorf("%s is tcp there", env.Transport)
	errMACs    = fmt.Errorf("UCX's messages have no MACs, which %s asks for", env.FrameMAC)
	errOneHost = errors.New("all ranks are on one host")
	errSpares  = errors.New("UCX cannot reach ranks that join later, as with -spares")
)

// AsksUCX reports whether s asks for UCX, and which of UCX's transports s names: "ucx" leaves the
// choice to UCX, "ucx:tcp" is for tests.
func (s Settings) AsksUCX() (transports string, asked bool) {
	name, transports, _ := strings.Cut(s.Transport, ":")
	return transports, name == "ucx"
}

// open opens the transport, unless the settings exclude UCX or do not ask for it on a single host.
func (w *rdma) open(sink transport.Sink) (transport.Transport, error) {
	transports, asked := w.AsksUCX()
	switch {
	case w.Transport == "tcp":
		w.err = errOnlyTCP
	case w.tcp.config.FrameMAC:
		w.err = errMACs
	case w.info.Spares > 0:
		w.err = errSpares
	case !asked && w.info.Nodes == 1:
		w.err = errOneHost
	default:
		w.t, w.err = ucx.New(ucx.Config{
			Rank: w.info.Rank, Size: w.info.Size, JobID: w.info.JobID, Secret: w.info.Secret, Transports: transports,
			Logger: w.Logger.With(env.LogPart, env.LogUCX),
		}, sink, w.set)
	}
	if w.err != nil {
		return nil, nil
	}
	return w.t, nil
}

// An rdmaCard holds a rank's UCX address and fabrics, or the reason why UCX does not reach the
// rank.
type rdmaCard struct {
	address []byte
	fabrics []string
	why     []byte
}

func (w *rdma) card() []byte {
	if w.err != nil {
		return (&rdmaCard{why: []byte(w.err.Error())}).encode()
	}
	return (&rdmaCard{address: w.t.Card(), fabrics: w.t.Fabrics()}).encode()
}

func (c *rdmaCard) encode() []byte {
	return appendField(appendField(appendField(nil, c.address), []byte(strings.Join(c.fabrics, ","))), c.why)
}

// decode decodes the result of encode.
func (c *rdmaCard) decode(b []byte) error {
	var fields [3][]byte
	for i := range fields {
		var err error
		if fields[i], b, err = cutField(b); err != nil {
			return err
		}
	}
	c.address, c.why = fields[0], fields[2]
	c.fabrics = strings.FieldsFunc(string(fields[1]), func(r rune) bool { return r == ',' })
	return nil
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
			common = slices.DeleteFunc(slices.Clone(before),
				func(f string) bool { return !slices.Contains(c.fabrics, f) })
		}
		if len(common) == 0 {
			return rank, fmt.Errorf("its ports are on %s, those of ranks before it on %s",
				strings.Join(c.fabrics, " and "), strings.Join(before, " and "))
		}
	}
	return -1, nil
}

// setCards closes the transport if any rank cannot use RDMA. Rank 0 logs which rank and why, if
// some rank has RDMA or the settings ask for it.
func (w *rdma) setCards(parts [][]byte) error {
	cards, addresses, some := make([]rdmaCard, w.info.Size), make([][]byte, w.info.Size), false
	for rank := range cards {
		if err := cards[rank].decode(parts[rank]); err != nil {
			return err
		}
		addresses[rank] = cards[rank].address
		some = some || len(cards[rank].why) == 0
	}
	without, err := lacking(cards)
	if without < 0 {
		return w.t.SetCards(addresses)
	}
	if _, asked := w.AsksUCX(); w.info.Rank == 0 && (some || asked) {
		w.Logger.Warn("no RDMA: all ranks use TCP", "rank", without, "host", w.info.Host(world.Rank(without)),
			"err", err)
	}
	if w.err != nil {
		return nil
	}
	w.t.Close(true)
	return w.t.SetCards(make([][]byte, len(cards)))
}

// admit has nothing to do: with spares no rank uses UCX.
func (w *rdma) admit(world.Rank, []byte) error { return nil }
