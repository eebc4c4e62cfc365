// Package message is the rules of MPI for messages: which receive a message matches, whether the
// message is sent eagerly or by rendezvous, unexpected messages, probes, and when a Request is
// complete. Packages above decide what to send. Package payload moves the bytes, package peers
// finds the transport, and package liveness knows which ranks still take part.
//
// A rank has one Engine. A Channel is the traffic of a communicator: the state of its members
// (liveness.Comm), and its queues of posted receives and unexpected messages (package match). A
// Request is a send or a receive. The messages of a Channel's collectives have an order and a
// credit of their own: see package round.
//
// # Point-to-point messages
//
// A message up to the eager limit is sent at once, envelope and payload in the same frame. Without
// a posted receive, the receiver keeps it as unexpected. Credit bounds the memory for these: a
// sender has at most 4 MiB of eager messages at a peer, less in a large job. The peer returns
// credit as receives take messages, or as messages come, if it has memory for more (unexpected.go).
//
// A message goes by rendezvous if it is longer than the eager limit, synchronous, or in device
// memory, if credit has run out, or if the receiver reads it sooner in the sender's memory
// (isRead). The sender sends a request to send (RTS) with the envelope only. When a receive has
// matched, the receiver answers that the payload may come (CTS), and the sender sends it. Where one
// side can read or write the other's buffer, it copies the payload itself. Payloads in device
// memory are copied through pinned host memory, in a pipeline (package payload).
//
// # Progress and failure
//
// There is no engine thread: the goroutine that called Recv polls the sockets itself (see package
// progress). One lock guards everything. The lock is held while polling and never while sleeping.
//
// A Channel fails as a whole: when a member fails in a call, or gives up a message that others
// count on, it revokes the Channel, and all operations on the Channel end with the reason, on all
// members (package liveness).
package message

import (
	"context"
	"log/slog"
	"math"

	"gompi/internal/boot"
	"gompi/internal/core/lease"
	"gompi/internal/core/liveness"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/core/progress"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// DefaultEager is the largest point-to-point payload that is sent eagerly, as in Open MPI over TCP.
const DefaultEager = 64 << 10

// Config configures an Engine: the rank's identity and how the rank waits.
type Config struct {
	Rank   world.Rank
	Size   int
	Host   func(rank world.Rank) string // name of a rank's host, for errors
	Boot   boot.Boot
	Parker transport.Parker
	Yield  func() // gives the processor to other goroutines and processes
	Eager  int    // largest eager point-to-point payload in bytes
	// ReadsSooner turns off eager sends to peers that copy a message faster from the sender's
	// memory.
	ReadsSooner bool
	Left        func(rank world.Rank) bool // reports whether a rank is known to have left; may be nil
	// Unexpected returns the memory for all unexpected messages beyond the peers' credit; nil if
	// only the bound for each peer applies.
	Unexpected func() int
	Lender     payload.Lender // for Buffers of devices; nil if there are none
	// Collectives makes the Collectives of a Channel.
	Collectives func(ch *Channel) Collectives
	Sleeps      progress.Sleeps // learns of waits that sleep; may be nil
	Log         *slog.Logger
}

// An Engine carries the messages of a rank. Its methods may be called from any goroutine, except
// the methods of transport.Sink and progress.Source, which its transports and its progress engine
// call. Packages above call the exported parts where the Engine has nothing to add. Comments of
// methods state which of them take the lock.
type Engine struct {
	Mover    payload.Mover   // of the payloads
	Live     liveness.Ranks  // which ranks and communicators there still are
	Progress progress.Engine // has the lock
	Peers    peers.Table

	cfg    Config
	flight *seg.Recorder // nil without a host segment

	channels map[uint64]*Channel
	latest   *Channel // the last Channel looked up, nil after its Close
	early    map[uint64][]*Kept
	tokens   payload.Tokens[Request, Kept]
	room     peers.Room   // for unexpected messages
	refused  int          // messages, for want of memory
	messages []*Kept      // free
	requests []*Request   // free
	waiters  []*waiter    // free
	lease    *lease.Lease // to C, nil without
	h        transport.Header
	packed   [roomBytes]byte // for short messages of scattered memory, packed
	looks    int             // polls of Test, Iprobe and Advance
	pause    int             // receives that are not to look for their messages
}

// New returns an Engine without transports; Use adds them.
func New(cfg Config) *Engine {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		cfg:      cfg,
		room:     peers.NewRoom(cfg.Size, cfg.Unexpected),
		channels: map[uint64]*Channel{},
		early:    map[uint64][]*Kept{},
	}
	e.Peers.Init(cfg.Size)
	e.Mover.Init(&e.Progress, cfg.Lender)
	e.Progress.Init(progress.Config{Source: e, Parker: cfg.Parker, Yield: cfg.Yield,
		Watch: cfg.Left != nil, Sleeps: cfg.Sleeps})
	e.Live.Init(liveness.Config{
		Rank: cfg.Rank, Size: cfg.Size, Host: cfg.Host, Boot: cfg.Boot, Peers: &e.Peers, Messages: e,
		Progress: &e.Progress, Left: cfg.Left, Log: cfg.Log,
	})
	if cfg.Boot != nil {
		e.flight = cfg.Boot.Info().Flight()
	}
	return e
}

// Use adds a transport. Transports added earlier are preferred.
func (e *Engine) Use(t transport.Transport) {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	e.Peers.Use(t)
	e.Mover.Use(t)
}

// Carried returns the traffic of each transport, by name, without idle transports.
func (e *Engine) Carried() map[string]peers.Carried {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	return e.Peers.Carried()
}

// Admit calls set, which lets transports reach a rank that they have not reached so far.
func (e *Engine) Admit(rank world.Rank, set func() error) error {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	if err := set(); err != nil {
		return err
	}
	e.Peers.Peer(rank)
	return nil
}

// Shutdown closes all transports, after delivering the frames that were sent. If ctx ends first,
// Shutdown drops the rest and returns the cause. No Channel may be used any more.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	e.Live.EndJob()
	err := e.Progress.Close(ctx, func() bool {
		if e.Live.Pending() {
			e.Live.HandleEvents() // of a rank for which a transport waits
		}
		return e.Peers.Close(false)
	})
	if err != nil {
		e.Peers.Close(true)
	}
	return err
}

var _ liveness.Messages = (*Engine)(nil)

// Forget implements liveness.Messages.
func (e *Engine) Forget(comm uint64) {
	for _, m := range e.early[comm] {
		e.Drop(m)
	}
	delete(e.early, comm)
}

// Ended implements liveness.Messages.
func (e *Engine) Ended(rank world.Rank) { e.Mover.Flushed(rank, math.MaxUint64) }

// credited handles a Credit frame.
func (e *Engine) credited(p *peers.Peer, h *transport.Header) {
	p.Credit.Regain(h.A)
	if h.Tag > 0 {
		p.Unexpected.AtPeer = int(h.Tag)
	}
	ch := e.channels[h.Comm]
	if h.B > 0 && ch != nil && ch.Broken() == nil && ch.Member(p.Rank) >= 0 {
		e.deliver(ch, p, h)
	}
}
