// Package tcp carries frames between processes over TCP. It has no goroutine and no lock: the
// caller polls. Sockets are non-blocking and watched by the rank's poll set. Poll reads directly
// from the peer for which its caller waits, which costs one system call, and asks the poll set
// about all others every few Polls. The first frame to a peer makes the connection. Both sides
// authenticate with the job's secret before any frame moves. Headers and small payloads are read
// ahead into one buffer. The rest of a large payload is read directly into its window, and written
// directly from the sender's memory.
//
// Files: tcp.go (this), card.go (the addresses of a rank), listen.go, handshake.go (messages),
// callee.go and caller.go (the two sides of it), peer.go (which of two simultaneous connections
// stays), send.go, receive.go, sealed.go (frames under a MAC), poll.go, close.go.
package tcp

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/sockets"
	"gompi/internal/world"
	"gompi/transport"
)

// KeyBit is set in the keys of this package's events in the poll set. Other keys must not have it.
const KeyBit = 1 << 63

// Config configures a Transport. Rank, Size, JobID and Secret must be given; the rest has useful
// zero values.
type Config struct {
	Rank   world.Rank
	Size   int
	JobID  string
	Secret [32]byte

	// SameHost reports whether a rank runs on this host: it is reached over loopback. If all ranks
	// do, the Transport listens on loopback only. nil means that no other rank does.
	SameHost func(rank world.Rank) bool

	// Interfaces chooses the addresses to publish, by names of interfaces, addresses and subnets:
	// "eth0,10.0.0.0/8" takes only these, "^docker0" all except it. Empty takes all.
	Interfaces string

	// Optional means that ranks of this host, if they are all, may do without TCP: a failure to
	// listen, as in a sandbox without Internet sockets, is no error. See Deaf.
	Optional bool

	// PortLow and PortHigh bound the port to listen on; 0 lets the system choose.
	PortLow, PortHigh int

	// FrameMAC protects each frame by a MAC, which costs much of the speed. It is the same on all
	// ranks. Without it a connection is bound to the addresses of its two ends: a connection
	// through address translation is refused.
	FrameMAC bool

	// Foreign is called, in Poll and Close, for each event of the poll set whose key lacks KeyBit.
	Foreign func(key uint64)

	// Logger gets, at level debug, new connections and connections refused before they have
	// authenticated; at level warn, silent peers, and peers with a wrong proof, address or
	// FrameMAC. nil discards.
	Logger *slog.Logger
}

// A Transport is the TCP transport of one rank.
type Transport struct {
	cfg  Config
	sink transport.Sink
	set  *poll.Set
	log  *slog.Logger

	listener int   // -1 when closed
	deaf     error // why there is no listener
	card     card
	filtered bool           // connections to addresses outside the card are refused
	own      []netip.Prefix // card's, also when all ranks are on this host
	loopback netip.Addr
	cards    [][]byte // nil until SetCards

	peers      []*peer // by rank; nil until first needed
	calls      []*peer // to connect to at the next Poll
	sentLately []*peer // to which a frame has left since the last Poll
	pending    []*sock // accepted, not authenticated yet; oldest first
	refused    [numReasons]uint
	socks      []*sock // by slot; nil if free
	free       []uint32
	lastGen    uint32

	clock     clock
	nextDue   int64 // the next time when expire has work; 0: never
	restUntil int64 // no accept before; 0: no pause
	healthDue int64 // next check for silent hosts; 0: no remote peer yet

	events    [64]poll.Event
	skipped   int    // Polls since the poll set was asked
	ahead     []byte // read-ahead; empty between calls
	head      transport.Header
	vec       sockets.Vector
	stage     [stageSize]byte // small frames being sent
	blocks    blocks
	gathering int // peers for which small frames are gathered
	waiting   int // frames in out queues without a due Sent

	closing   bool
	lingering bool // all data is written, but not all acknowledged
	closed    bool
}

// Capabilities implements transport.Transport.
func (t *Transport) Capabilities() transport.Capabilities {
	return transport.Capabilities{Progresser: t}
}

// New opens the listening socket of a rank. The Transport delivers to sink and is woken through
// set, both of which must outlive it.
func New(cfg Config, sink transport.Sink, set *poll.Set) (*Transport, error) {
	if cfg.Size < 1 || cfg.Rank < 0 || int(cfg.Rank) >= cfg.Size {
		return nil, fmt.Errorf("rank %d of %d: want 0 <= rank < size", cfg.Rank, cfg.Size)
	}
	if cfg.SameHost == nil {
		cfg.SameHost = func(world.Rank) bool { return false }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Transport{
		cfg: cfg, sink: sink, set: set, log: cfg.Logger,
		listener: -1,
		peers:    make([]*peer, cfg.Size),
		ahead:    make([]byte, aheadSize),
		clock:    clock{epoch: time.Now()},
		loopback: sockets.Loopback(),
	}
	network := sha256.Sum256([]byte(sockets.Network()))
	copy(t.card.network[:], network[:])
	rand.Read(t.card.nonce[:])
	if err := t.findAddresses(); err != nil {
		return nil, err
	}
	if err := t.listen(); err != nil {
		if !cfg.Optional || !t.card.local {
			return nil, err
		}
		t.deaf = err
	}
	return t, nil
}

// Deaf returns why this rank does not listen, nil if it does. Ranks without another transport
// cannot reach a deaf rank.
func (t *Transport) Deaf() error { return t.deaf }

// findAddresses fills in the card, except for the port.
func (t *Transport) findAddresses() error {
	f, err := sockets.ParseFilter(t.cfg.Interfaces)
	if err != nil {
		return err
	}
	t.card.local = true
	for r := range world.Rank(t.cfg.Size) {
		t.card.local = t.card.local && (r == t.cfg.Rank || t.cfg.SameHost(r))
	}
	if t.card.local {
		return nil
	}
	if t.own, err = sockets.LocalAddresses(f); err != nil {
		return err
	}
	t.card.subnet = t.own
	t.filtered = t.cfg.Interfaces != ""
	return nil
}

// Card returns the encoded addresses of this rank, for SetCards of other ranks; nil if it is Deaf.
func (t *Transport) Card() []byte {
	if t.deaf != nil {
		return nil
	}
	return t.card.encode()
}

// SetCards sets the cards of all ranks, by rank. Frames sent before are queued. The card of an
// unreachable rank is nil.
func (t *Transport) SetCards(cards [][]byte) error {
	if len(cards) != t.cfg.Size {
		return fmt.Errorf("%d cards for %d ranks", len(cards), t.cfg.Size)
	}
	var c card
	for r, b := range cards {
		if b == nil {
			continue
		}
		err := c.decode(b)
		if err == nil && len(t.own) == 0 && !t.sharesLoopback(world.Rank(r), &c) {
			err = t.noAddress()
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	t.cards = cards
	return nil
}

// sharesLoopback reports whether the loopback address leads to a rank, which has published c: the
// rank is on this host, whatever the host's name there.
func (t *Transport) sharesLoopback(rank world.Rank, c *card) bool {
	return rank == t.cfg.Rank || t.cfg.SameHost(rank) || c.network == t.card.network
}

// noAddress returns why ranks on other hosts cannot reach this one.
func (t *Transport) noAddress() error {
	if t.filtered {
		return fmt.Errorf("it is on another host, and this one has no address that interfaces %q admits: want one that is up, or another choice", t.cfg.Interfaces)
	}
	return errors.New("it is on another host, and this one has no address but loopback and link-local ones: want an interface that is up, with an address")
}

// SetCard sets the card of one rank that had none, after SetCards.
func (t *Transport) SetCard(rank world.Rank, b []byte) error {
	if err := new(card).decode(b); err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	t.cards[rank] = b
	return nil
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return "tcp" }

// Reaches implements transport.Transport. A rank does not reach itself.
func (t *Transport) Reaches(peer world.Rank) bool {
	return peer >= 0 && int(peer) < t.cfg.Size && peer != t.cfg.Rank && (t.cards == nil || t.cards[peer] != nil)
}

// Carries implements transport.Transport.
func (t *Transport) Carries(s mem.Space) bool { return s == mem.Host }

func (t *Transport) peer(rank world.Rank) *peer {
	p := t.peers[rank]
	if p == nil {
		p = &peer{rank: rank, near: t.cfg.SameHost(rank)}
		t.peers[rank] = p
	}
	return p
}

// A sock is one TCP connection, from connect or accept until it is closed.
type sock struct {
	fd       int
	slot     uint32
	key      uint64
	interest poll.Interest
	phase    phase
	peer     *peer // nil until a caller has authenticated
	shake    *shake
	seal     *sealed // nil if frames have no MAC
}

// A phase is a connection's progress in the handshake.
type phase uint8

const (
	calling    phase = iota // caller: TCP is connecting
	helloSent               // caller: hello is sent
	proofSent               // caller: proof is sent
	accepted                // callee: nothing has come yet
	challenged              // callee: challenge is sent
	held                    // callee: the caller has authenticated, but our own call may succeed
	welcomed                // callee: welcome is sent
	open                    // frames flow
	shut                    // closed
)

// A shake is the state of a connection's handshake.
type shake struct {
	transcript
	in   [helloSize]byte
	have int
	due  int64 // by the transport's clock; 0: never
}

// adopt makes a sock of fd and adds it to the poll set. On error fd is closed.
func (t *Transport) adopt(fd int, ph phase, p *peer, want poll.Interest) (*sock, error) {
	s := &sock{fd: fd, phase: ph, peer: p, interest: want, shake: new(shake)}
	if n := len(t.free); n > 0 {
		s.slot = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		s.slot = uint32(len(t.socks))
		t.socks = append(t.socks, nil)
	}
	// The generation in the key distinguishes events of an earlier sock in this slot.
	t.lastGen = (t.lastGen + 1) & 0x7fffffff
	s.key = KeyBit | uint64(t.lastGen)<<32 | uint64(s.slot)
	t.socks[s.slot] = s
	if err := t.set.Add(fd, s.key, want); err != nil {
		t.drop(s)
		return nil, err
	}
	return s, nil
}

// watch changes the Interest in s. It fails only if the kernel has no memory; the connection is
// useless then.
func (t *Transport) watch(s *sock, want poll.Interest) {
	if s.interest == want {
		return
	}
	s.interest = want
	if err := t.set.Mod(s.fd, s.key, want); err != nil {
		t.log.Error("poll set", "err", err)
	}
}

// drop closes s and removes it. The caller updates the peer.
func (t *Transport) drop(s *sock) {
	if s.phase == shut {
		return
	}
	s.phase = shut
	t.socks[s.slot] = nil
	t.free = append(t.free, s.slot)
	_ = t.set.Del(s.fd) // fails if Add has failed
	unix.Close(s.fd)
}
