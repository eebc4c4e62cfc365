// Package engine carries the messages of a rank: it polls the transports, matches messages to
// receives, and completes requests. A communicator is a Channel, and a collective over messages is a
// numbered Round of a Channel. Packages above the engine decide what to send, transports how frames
// travel.
//
// There is no engine thread: the goroutine that called Recv polls the sockets itself (see package
// progress). One lock guards everything. It is held while polling and never while sleeping.
package engine

import (
	"log/slog"

	"gompi/comm/internal/progress"
	"gompi/internal/boot"
	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// Limits of what travels without asking. They are the same on all ranks.
const (
	// DefaultEager is the largest point-to-point payload that is sent before
	// its receive is known to be posted. As Open MPI's over TCP.
	DefaultEager = 64 << 10
	// roundEager is the same for messages of collectives. Larger than the
	// point-to-point limit, because the receive is nearly always posted, so the
	// payload is read straight into place.
	roundEager = 256 << 10
	// budget bounds what a rank may have sent to one peer without asking and the
	// peer has not let go, as cost counts it: of point-to-point messages, and of
	// the collectives of each communicator. Were it one for all communicators, a peer
	// that calls their collectives in another order would wait for ever.
	budget = 4 << 20
	// recordSize is about what is kept of a message besides its payload while it
	// waits for its receive: a record and the least piece of scratch.
	recordSize = 256
	// pieceSize is how much of a message is received before it is reduced: small
	// enough to be reduced from the second-level cache.
	pieceSize = 128 << 10
)

// cost is what a message with a payload of n bytes takes where nobody receives it yet.
func cost(n int) int { return n + recordSize }

// Config says who a rank is and how it waits.
type Config struct {
	Rank   world.Rank
	Size   int
	Host   func(rank world.Rank) string // name of a rank's host, for errors
	Boot   boot.Boot
	Parker transport.Parker
	Yield  func()                     // gives the processor to whoever else can run
	Eager  int                        // largest eager point-to-point payload in bytes
	Left   func(rank world.Rank) bool // reports whether a rank is known to have left; may be nil
	Lender Lender                     // for Buffers of devices; nil if there are none
	Log    *slog.Logger
}

// An Engine is one rank's. Its methods may be called from any goroutine, except those of
// transport.Sink and progress.Source, which its transports and its progress engine call.
type Engine struct {
	cfg    Config
	flight *seg.Rank // nil without a host segment

	progress       progress.Engine // has the lock
	transports     []transport.Transport
	restless       []transport.Restless // of them
	peers          table
	recent         *peer // the one last looked up
	lost           int   // peers that are lost
	suspects       fifo.Queue[suspect]
	doomed         bool // the launcher ends the job, or is gone, or this rank leaves: nothing is waited for that it may say
	channels       map[uint64]*Channel
	latest         *Channel           // the one last looked up, nil if it is closed
	closed         ids                // of closed channels: what still arrives is dropped
	revoked        map[uint64]verdict // revoked before they were created here
	orphans        map[uint64][]*message
	next           uint32 // counter of the next context id made here
	slots          slots
	scratch        scratch
	danglingWrites []danglingWrite
	flushes        uint64
	lent           int        // pieces of ferries
	messages       []*message // free
	requests       []*Request // free
	waiters        []*waiter  // free
	vigils         []*Vigil   // collectives that wait for words
	h              transport.Header
	looks          int // calls of Progress
	pause          int // receives that are not to look for their messages
	polls          int // calls of Poll
}

// New returns an Engine without transports; Use adds them.
func New(cfg Config) *Engine {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		cfg:      cfg,
		peers:    make(table, (cfg.Size+pageSize-1)/pageSize),
		channels: map[uint64]*Channel{},
		closed:   ids{in: map[uint64]bool{}},
		revoked:  map[uint64]verdict{},
		orphans:  map[uint64][]*message{},
	}
	e.progress.Init(progress.Config{Source: e, Parker: cfg.Parker, Yield: cfg.Yield, Watch: cfg.Left != nil})
	if cfg.Boot != nil {
		e.flight = cfg.Boot.Info().Flight()
	}
	return e
}

// Use adds a transport, to be preferred less than those before it.
func (e *Engine) Use(t transport.Transport) {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.transports = append(e.transports, t)
	if r, ok := t.(transport.Restless); ok {
		e.restless = append(e.restless, r)
	}
}

// A peer is what the engine knows of another rank.
type peer struct {
	rank   world.Rank
	tr     transport.Transport // nil until the first use
	prompt transport.Prompt    // tr, if it is one
	direct transport.Direct    // tr, if it is one
	lost   error               // why nothing can be sent to it any more
	ended  bool                // it is lost because its process has ended, or will soon
	fate   error               // how its process ended after it had left, as the launcher says
	// The cost of eager point-to-point messages: sent and not yet let go by the peer,
	// and received from it, let go, and not yet told.
	out, free int
}

// A table holds the peers, in pages made on first use: a job of thousands of
// ranks in one process cannot afford an entry per pair.
type table [][]*peer

const pageSize = 64

func (e *Engine) peer(rank world.Rank) *peer {
	if p := e.recent; p != nil && p.rank == rank {
		return p
	}
	return e.lookUp(rank)
}

func (e *Engine) lookUp(rank world.Rank) *peer {
	page := &e.peers[rank/pageSize]
	if *page == nil {
		*page = make([]*peer, min(pageSize, e.cfg.Size-int(rank)/pageSize*pageSize))
	}
	p := (*page)[rank%pageSize]
	if p == nil {
		p = &peer{rank: rank}
		(*page)[rank%pageSize] = p
	}
	if p.tr == nil && p.lost == nil {
		p.tr = e.route(rank)
		p.prompt, _ = p.tr.(transport.Prompt)
		p.direct, _ = p.tr.(transport.Direct)
	}
	if p.tr != nil {
		e.recent = p
	}
	return p
}

// gone returns why a rank is lost, nil if it is not. Other than peer it takes no
// memory for a rank that was never talked to, nor looks for a way to it.
func (e *Engine) gone(rank world.Rank) error {
	page := e.peers[rank/pageSize]
	if page == nil || page[rank%pageSize] == nil {
		return nil
	}
	return page[rank%pageSize].lost
}

// route returns the first transport that reaches rank, nil if there is none.
func (e *Engine) route(rank world.Rank) transport.Transport {
	for _, t := range e.transports {
		if t.Reaches(rank) {
			return t
		}
	}
	return nil
}

// post sends the frame whose fields are in e.h. It reports whether the payload
// may be reused; if not, Sent(token) follows.
func (e *Engine) post(p *peer, b mem.Buffer, token uint64) bool {
	return p.tr.Send(p.rank, &e.h, b, token)
}

// letGo notes that an eager message of n bytes from p is no longer held here, and
// tells p when enough has come together.
func (e *Engine) letGo(p *peer, n int) {
	p.free += cost(n)
	if p.free < budget/4 || p.tr == nil || p.lost != nil {
		return
	}
	e.h = transport.Header{Kind: transport.Credit, A: uint64(p.free)}
	p.free = 0
	e.post(p, mem.Buffer{}, 0)
}

// credited handles a Credit frame. A peer cannot give back more than it was sent.
func (e *Engine) credited(p *peer, h *transport.Header) {
	p.out -= int(min(h.A, uint64(p.out)))
	ch := e.channels[h.Comm]
	if h.B == 0 || ch == nil || ch.err != nil || ch.member(p.rank) < 0 {
		return
	}
	l := ch.round.lane(ch.member(p.rank))
	l.owed -= int(min(h.B, uint64(l.owed)))
	l.pump()
}

// slots maps tokens, which transports and peers hold, to what they stand for.
// A token is a slot's index and its generation, so that a stale or invented one
// is recognised. Token 0 stands for nothing.
type slots struct {
	list []slot
	free []uint32
}

type slot struct {
	gen uint32
	r   *Request
	m   *message
}

func (s *slots) take(r *Request, m *message) uint64 {
	var i uint32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = uint32(len(s.list))
		s.list = append(s.list, slot{})
	}
	sl := &s.list[i]
	sl.gen++
	if sl.gen == 0 {
		sl.gen = 1
	}
	sl.r, sl.m = r, m
	return uint64(sl.gen)<<32 | uint64(i)
}

func (s *slots) get(token uint64) (r *Request, m *message) {
	i, gen := uint32(token), uint32(token>>32)
	if int(i) >= len(s.list) || gen == 0 || s.list[i].gen != gen {
		return nil, nil
	}
	return s.list[i].r, s.list[i].m
}

func (s *slots) release(token uint64) {
	i := uint32(token)
	if int(i) >= len(s.list) || s.list[i].gen != uint32(token>>32) {
		return
	}
	s.list[i].r, s.list[i].m = nil, nil
	s.list[i].gen++ // stale from now on
	s.free = append(s.free, i)
}
