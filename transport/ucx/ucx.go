// Package ucx carries frames between processes over UCX: InfiniBand and RoCE.
//
// A frame is one or more active messages of UCX. UCX matches nothing: a small frame is copied into
// a message, a larger payload chunk by chunk into registered memory, both of package ucp. So a
// caller may take a buffer back at any time, although UCX cannot cancel a transfer. Only registered
// memory, from comm.Alloc, is read and written in place (put.go), and accessed by peers with a key
// (onesided.go).
//
// An active message does not name its sender. Two ranks prove to each other that they know the
// job's secret before either accepts frames of the other, and frames carry a token that only these
// two know (hello.go). UCX's own TCP stores data of any sender at any address, so New refuses it
// unless named explicitly, and then uses it on the loopback device only.
//
// UCX reports the death of a peer late or never: Ended passes on the launcher's report.
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
	"gompi/internal/machine"
	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
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

	// Transports names the transports of UCX to use, in the syntax of UCX_TLS. Empty means UCX_TLS,
	// or all of InfiniBand and RoCE if that is empty, too. "tcp", which is for tests, can be chosen
	// only here. "tcp" uses the loopback device, whatever UCX_NET_DEVICES says.
	Transports string

	// Logger gets refused messages and transfers that UCX does not end at level warn, and connected
	// and lost peers at level debug. nil discards.
	Logger *slog.Logger
}

// A Transport is the UCX transport of one rank.
type Transport struct {
	cfg     Config
	sink    transport.Sink
	eager   transport.EagerSink   // sink, if it implements this
	silence transport.SilenceSink // sink, if it implements this
	set     *poll.Set
	log     *slog.Logger
	ucp     *ucp.Worker
	cards   [][]byte // nil until SetCards
	fabrics []string

	peers      []*peer          // by rank; nil until first needed
	used       []*peer          // the non-nil peers
	queued     int              // frames in all out queues
	waiting    int              // frames among these without a due Sent
	failing    int              // peers that the next Poll reports as lost
	unanswered fifo.Queue[call] // in the order of their deadlines
	forged     uint             // refused hellos
	head       transport.Header
	regions    []region        // by their ids
	unsent     int             // puts with unsent parts
	accessed   uint64          // the number of the latest access
	lanes      map[string]bool // used by ended connections, if they are logged

	closing    bool
	flushBegan time.Time // begin of UCX's flush; zero: not yet
	closed     bool
	leaked     bool // UCX may use memory after its close
}

// A peer is the state of the connection to another rank.
type peer struct {
	rank      world.Rank
	handshake *handshake // nil for an open peer, or a peer that died before
	open      bool       // frames may be sent
	failure   error      // with which the next Poll reports the peer as lost
	lost      bool
	bye       bool // this rank's goodbye is queued or sent
	acked     bool // and the peer has acknowledged
	out       outbox
	in        transport.Arrival
	puts      puts
	accesses  accesses
	served    bool // no Remote is possible
}

// Capabilities implements transport.Transport.
func (t *Transport) Capabilities() transport.Capabilities {
	return transport.Capabilities{Progresser: t, DeathObserver: t, Direct: t, Registrar: t, OneSided: t}
}

// New opens UCX for a rank. The Transport delivers to sink, and set watches its descriptor; both
// must outlive the Transport.
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
	var ports []machine.Port
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
	t := &Transport{cfg: cfg, sink: sink, set: set, log: cfg.Logger, ucp: w, fabrics: fabrics(ports),
		peers: make([]*peer, cfg.Size), lanes: map[string]bool{}}
	t.eager, _ = sink.(transport.EagerSink)
	t.silence, _ = sink.(transport.SilenceSink)
	return t, nil
}

var errTCP = errors.New("UCX's tcp is refused: it stores data of any sender at any address; name others, as UCX_TLS=rc,ud")

// choose returns UCX's options for the transports asked for by the caller, or else by the
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

// names reports whether a list of UCX_TLS has one of some transports.
func names(list string, transports ...string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if slices.Contains(transports, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}

// Card returns the address of this rank, for SetCards of the other ranks.
func (t *Transport) Card() []byte { return t.ucp.Address() }

// Fabrics names the networks of this rank's RDMA ports. Ranks without a common network cannot reach
// each other. The result is empty if the networks are unknown, or if Config.Transports was given.
func (t *Transport) Fabrics() []string { return t.fabrics }

// SetCards sets the cards of all ranks, by rank. They must not change any more. Frames sent before
// are queued. A rank with an empty card is unreachable.
func (t *Transport) SetCards(cards [][]byte) error {
	if len(cards) != t.cfg.Size {
		return fmt.Errorf("%d cards for %d ranks", len(cards), t.cfg.Size)
	}
	t.cards = cards
	if t.closed { // a hello may have added peers before
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

// peer returns the connection to a rank, and begins one if necessary.
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
	if p == nil { // connecting to a dead process may make UCX abort this process
		p = t.add(&peer{rank: rank})
	}
	if p.lost { // after its goodbye
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

// noteLanes notes the devices of the connection to p, for the log.
func (t *Transport) noteLanes(p *peer) {
	if !p.open || p.lost || !t.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	for _, name := range t.ucp.Lanes(int(p.rank)) {
		t.lanes[name] = true
	}
}

// lose ends the connection to p and reports the loss to the sink, once.
func (t *Transport) lose(p *peer, err error) {
	if p.lost {
		return
	}
	t.noteLanes(p)
	p.lost = true
	p.in = transport.Arrival{}
	if p.failure != nil {
		t.failing--
	}
	if !errors.Is(err, transport.ErrGone) { // else this rank's acknowledgement is under way
		t.ucp.Disconnect(int(p.rank))
	}
	t.discard(p, err)
	t.log.Debug("lost", "rank", t.cfg.Rank, "peer", p.rank, "err", err)
	t.sink.Lost(p.rank, err)
}
