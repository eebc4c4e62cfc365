// Package ucx carries frames between processes over UCX: InfiniBand and RoCE.
//
// A frame is one or more active messages of UCX. UCX matches nothing: a small frame is copied into
// a message, a larger payload chunk by chunk into registered memory, both of package ucp. So a
// caller may take a buffer back at any time, although UCX cannot cancel a transfer that it has
// begun. Only memory that was registered for it, from comm.Alloc, is read and written in place
// (put.go), and accessed by peers with a key (onesided.go).
//
// An active message does not name its sender. Two ranks prove to each other that they know the
// job's secret before either accepts frames of the other, and frames carry a token that only these
// two know (hello.go). UCX's own TCP stores data of any sender at any address, so New refuses it
// unless it is asked for by name, and then uses it on the loopback device only.
//
// UCX reports the death of a peer late or never: Ended passes on what the launcher reports.
package ucx

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/rdma"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/internal/arrival"
	"gompi/transport/ucx/internal/ucp"
)

// defaultTLS is the default of UCX_TLS: InfiniBand and RoCE.
const defaultTLS = "ib"

// Config configures a Transport. Rank, Size, JobID and Secret must be given.
type Config struct {
	Rank   world.Rank
	Size   int
	JobID  string
	Secret [32]byte

	// Transports names the transports of UCX to use, as UCX_TLS does. Empty: those of UCX_TLS, or
	// all of InfiniBand and RoCE if that is empty, too. "tcp", which is for tests, can be chosen
	// only here. It then uses the loopback device, whatever UCX_NET_DEVICES says.
	Transports string

	// Logger gets refused messages and transfers that UCX does not end at level warn, and peers
	// connected and lost at level debug. nil discards.
	Logger *slog.Logger
}

// A Transport is the UCX transport of one rank. It implements transport.Transport and
// transport.Progresser.
type Transport struct {
	cfg     Config
	sink    transport.Sink
	eager   transport.EagerSink   // sink, if it is one
	silence transport.SilenceSink // sink, if it is one
	set     *poll.Set
	log     *slog.Logger
	ucp     *ucp.Worker
	cards   [][]byte // nil until SetCards
	fabrics []string

	peers      []*peer          // by rank; nil until first needed
	used       []*peer          // those that are not nil
	queued     int              // frames in all out queues
	waiting    int              // those of them for which no Sent is due
	failing    int              // peers that the next Poll reports as lost
	unanswered fifo.Queue[call] // in the order in which they are due
	forged     uint             // hellos that were refused
	head       transport.Header
	regions    []region        // by their ids
	unsent     int             // puts of which parts are to be sent
	accessed   uint64          // the number of the latest access
	lanes      map[string]bool // used by connections that have ended, if they are logged

	closing    bool
	flushBegan time.Time // when UCX was asked to flush all that was sent; zero: not yet
	closed     bool
	leaked     bool // UCX may use memory although it is closed
}

// A peer is the state of the connection to another rank.
type peer struct {
	rank      world.Rank
	handshake *handshake // nil once it is open, or for a peer that died before
	open      bool       // frames may be sent
	failure   error      // with which the next Poll reports it as lost
	lost      bool
	bye       bool // our goodbye is queued or sent
	acked     bool // and the peer has acknowledged it
	out       outbox
	in        arrival.Frame
	puts      puts
	accesses  accesses
	served    bool // there is no Remote
}

var (
	_ transport.Transport     = (*Transport)(nil)
	_ transport.Progresser    = (*Transport)(nil)
	_ transport.Direct        = (*Transport)(nil)
	_ transport.DeathObserver = (*Transport)(nil)
	_ transport.OneSided      = (*Transport)(nil)
)

// New opens UCX for a rank. The Transport delivers to sink, and set watches its descriptor; both
// must outlive it.
func New(cfg Config, sink transport.Sink, set *poll.Set) (*Transport, error) {
	if cfg.Size < 1 || cfg.Rank < 0 || int(cfg.Rank) >= cfg.Size {
		return nil, fmt.Errorf("rank %d of %d: want 0 <= rank < size", cfg.Rank, cfg.Size)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	options, err := choose(cfg.Transports, os.Getenv("UCX_TLS"))
	if err != nil {
		return nil, err
	}
	var ports []rdma.Port
	if cfg.Transports == "" {
		if ports, err = nearest(sysfs, processors()); err != nil {
			return nil, fmt.Errorf("no RDMA: %w", err)
		}
		options.Devices, options.Verbs = devices(ports), true
	}
	if err := ucp.Load(); err != nil {
		return nil, fmt.Errorf("no RDMA: %w", err)
	}
	options.Rank, options.Size = int(cfg.Rank), cfg.Size
	w, err := ucp.Open(options)
	if err != nil {
		return nil, fmt.Errorf("no RDMA: %w", explain(err, lockLimit()))
	}
	if err := set.AddWaker(w.FD()); err != nil {
		w.Close()
		return nil, fmt.Errorf("UCX's descriptor: %w", err)
	}
	t := &Transport{cfg: cfg, sink: sink, set: set, log: cfg.Logger, ucp: w, fabrics: fabrics(ports), peers: make([]*peer, cfg.Size), lanes: map[string]bool{}}
	t.eager, _ = sink.(transport.EagerSink)
	t.silence, _ = sink.(transport.SilenceSink)
	return t, nil
}

var errTCP = errors.New("UCX's tcp is refused: it stores data of any sender at any address; name others, as UCX_TLS=rc,ud")

// choose returns UCX's options for the transports that the caller asks for, or else the
// environment.
func choose(asked, environment string) (o ucp.Options, err error) {
	switch o.TLS = asked; {
	case names(asked, "tcp"):
		o.Devices = "lo"
	case asked != "":
	case environment == "":
		o.TLS = defaultTLS
	case names(environment, "tcp", "all") || strings.HasPrefix(environment, "^"):
		return o, fmt.Errorf("UCX_TLS=%s: %w", environment, errTCP)
	default:
		o.TLS = environment
	}
	o.Memory = names(o.TLS, "posix", "sysv", "mm", "sm", "shm")
	return o, nil
}

// names reports whether a list of UCX_TLS names one of some transports.
func names(list string, transports ...string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if slices.Contains(transports, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}

// Card returns the address of this rank, which the other ranks need for SetCards.
func (t *Transport) Card() []byte { return t.ucp.Address() }

// Fabrics names the networks that this rank's RDMA ports are on. Ranks without a common one do not
// reach each other. There are none if that is not known, or if Config.Transports was given.
func (t *Transport) Fabrics() []string { return t.fabrics }

// SetCards sets the cards of all ranks, by rank. They must not change any more. Frames that were
// sent before wait for it. A rank with an empty card cannot be reached.
func (t *Transport) SetCards(cards [][]byte) error {
	if len(cards) != t.cfg.Size {
		return fmt.Errorf("%d cards for %d ranks", len(cards), t.cfg.Size)
	}
	t.cards = cards
	if t.closed { // a hello may have made peers before
		return nil
	}
	for _, p := range t.used {
		t.connect(p)
	}
	return nil
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return "ucx" }

// Reaches implements transport.Transport. A rank does not reach itself.
func (t *Transport) Reaches(peer world.Rank) bool {
	return peer >= 0 && int(peer) < t.cfg.Size && peer != t.cfg.Rank && (t.cards == nil || len(t.cards[peer]) > 0)
}

// Carries implements transport.Transport.
func (t *Transport) Carries(s mem.Space) bool { return s == mem.Host }

// peer returns the connection to a rank, which it begins if there is none.
func (t *Transport) peer(rank world.Rank) *peer {
	p := t.peers[rank]
	if p == nil {
		p = t.add(&peer{rank: rank, handshake: new(handshake)})
		rand.Read(p.handshake.ours[:])
		t.connect(p)
	}
	return p
}

func (t *Transport) add(p *peer) *peer {
	t.peers[p.rank] = p
	t.used = append(t.used, p)
	return p
}

// Ended implements transport.DeathObserver.
func (t *Transport) Ended(rank world.Rank, err error) {
	if t.closed || !t.Reaches(rank) {
		return
	}
	p := t.peers[rank]
	if p == nil { // connecting to a dead process may make UCX abort this one
		p = t.add(&peer{rank: rank})
	}
	if p.lost { // with its goodbye
		t.ucp.Disconnect(int(rank))
	}
	if err != transport.ErrGone {
		err = fmt.Errorf("%w: its process has ended", err)
	}
	t.failLater(p, err)
}

// failLater makes the next Poll report p as lost.
func (t *Transport) failLater(p *peer, err error) {
	if p.failure == nil && !p.lost {
		p.failure = err
		t.failing++
	}
}

// noteLanes notes which devices the connection to p has used, for the log.
func (t *Transport) noteLanes(p *peer) {
	if !p.open || p.lost || !t.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	for _, name := range t.ucp.Lanes(int(p.rank)) {
		t.lanes[name] = true
	}
}

// lose ends the connection to p and reports it to the sink, once.
func (t *Transport) lose(p *peer, err error) {
	if p.lost {
		return
	}
	t.noteLanes(p)
	p.lost = true
	p.in = arrival.Frame{}
	if p.failure != nil {
		t.failing--
	}
	if !errors.Is(err, transport.ErrGone) { // else our acknowledgement is on its way
		t.ucp.Disconnect(int(p.rank))
	}
	t.discard(p, err)
	t.log.Debug("lost", "rank", t.cfg.Rank, "peer", p.rank, "err", err)
	t.sink.Lost(p.rank, err)
}
