package boot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"gompi/internal/accept"
	"gompi/internal/boot/wire"
	"gompi/internal/challenge"
	"gompi/internal/forked"
	"gompi/internal/seal"
	"gompi/internal/world"
)

// A hub is what rank 0 has when no agent is there: it stands in for one. Every
// rank has a connection to it, which brings the cards together at the start, and
// later the news that no connection between two other ranks can bring.
type hub struct {
	size      int
	secret    [32]byte
	job       string
	ln        net.Listener
	allJoined func() // called once, when all ranks have come

	mu       sync.Mutex
	guests   []*guest // by rank, nil until it has come
	came     int
	cards    [][]byte
	gathered int
	past     []byte // messages for ranks that join later
	revoked  map[uint64]bool
	inquired map[world.Rank]bool // ranks whose leaving is news
	trouble  error               // why no connection could be accepted once
}

// A guest is one rank at the hub.
type guest struct {
	rank                world.Rank
	conn                net.Conn
	host, machine, door string
	hasCard             bool
	left                bool // it has said goodbye
	out                 outbox
}

// howLost says what became of a rank whose connection to the hub failed.
func howLost(err error) string {
	switch {
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "is out of reach: " + err.Error()
	case errors.Is(err, wire.ErrFrame), errors.Is(err, seal.ErrForged):
		return "said what nobody understands: " + err.Error()
	}
	return "ended without closing its communicators"
}

const (
	// proofTime bounds how long a connection may take to prove itself.
	proofTime = 10 * time.Second
	// ownDelay bounds how long a message to rank 0 waits until the others are sent theirs,
	// closeTime how long rank 0's goodbye does.
	ownDelay  = 200 * time.Millisecond
	closeTime = 2 * time.Second
	// moreStrangers than there are ranks may be proving themselves at once.
	moreStrangers = 256
)

// keepAlive finds out within half a minute that a host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// hubDoor is where a rank and rank 0 make sure of each other. The rank says which
// it is. All that they say then is sealed.
func hubDoor(secret *[32]byte) challenge.Door {
	return challenge.Door{Greeting: "gompihub4", Secret: secret, Says: 4}
}

// newHub starts a hub for size ranks, and returns rank 0's own connection to it.
func newHub(size int, secret [32]byte, ln net.Listener, met func()) (*hub, net.Conn) {
	job, _ := NewJob()
	h := &hub{size: size, secret: secret, job: job, ln: ln, allJoined: met, guests: make([]*guest, size), cards: make([][]byte, size), revoked: map[uint64]bool{}, inquired: map[world.Rank]bool{}}
	near, far := net.Pipe()
	go h.converse(&guest{rank: 0, conn: far}) // until rank 0 leaves
	go h.accept()
	return h, near
}

// accept lets the ranks of the job in until all have come, or the hub is closed.
func (h *hub) accept() {
	d := accept.Door{Strangers: h.size + moreStrangers, Time: proofTime, Greet: h.greet, Trouble: func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.trouble = err
	}}
	d.Serve(h.ln)
}

// greet finds out which rank of the job has come.
func (h *hub) greet(conn net.Conn) func() {
	forked.NoteConn(conn)
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(keepAlive) // without it a lost host is noticed by its data connections
	}
	session, err := hubDoor(&h.secret).Answer(conn)
	if err != nil {
		return nil
	}
	rank := world.Rank(binary.LittleEndian.Uint32(session.Says))
	if rank < 1 || int(rank) >= h.size {
		return nil
	}
	sealed := seal.NewConn(conn, session.Send, session.Receive)
	return func() { h.converse(&guest{rank: rank, conn: sealed}) }
}

// converse listens to a rank until it is gone.
func (h *hub) converse(g *guest) {
	frames := wire.Frames{Limit: wire.MaxUp}
	for {
		m, err := wire.Receive(g.conn, &frames)
		if err == nil {
			err = h.heard(g, m)
		}
		if err != nil {
			h.lost(g, err)
			return
		}
	}
}

// heard follows what a rank says.
func (h *hub) heard(g *guest, m wire.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	join, first := m.(*wire.Join)
	if first != (h.guests[g.rank] != g) {
		return fmt.Errorf("%w: %T out of turn", wire.ErrFrame, m)
	}
	switch m := m.(type) {
	case *wire.Join:
		return h.join(g, join)
	case *wire.Card:
		if g.hasCard {
			return fmt.Errorf("%w: a second card", wire.ErrFrame)
		}
		g.hasCard = true
		h.cards[g.rank] = bytes.Clone(m.Data)
		if h.gathered++; h.gathered == h.size {
			h.tell(&wire.Cards{Data: h.cards})
		}
	case *wire.Revoke:
		if h.revoked[m.Comm] {
			break // another rank has said it
		}
		h.revoked[m.Comm] = true
		h.tell(&wire.Revoked{Rank: g.rank, Comm: m.Comm, Cause: m.Cause})
	case *wire.Abort:
		h.tell(&wire.Terminate{Text: fmt.Sprintf("rank %d aborted the job with status %d: %s", g.rank, m.Code, m.Reason)})
	case *wire.Leave:
		g.left = true
		if !g.hasCard {
			h.tell(&wire.Died{Rank: g.rank, Text: "left before all ranks had met"})
		}
		h.tellLeft(g.rank)
	case *wire.Inquire:
		h.inquired[m.Rank] = true
		h.tellLeft(m.Rank)
	default:
		return fmt.Errorf("%w: unexpected %T", wire.ErrFrame, m)
	}
	return nil
}

// join takes a rank in; the last has everybody welcomed.
func (h *hub) join(g *guest, m *wire.Join) error {
	if h.guests[g.rank] != nil {
		return fmt.Errorf("%w: a second rank %d", wire.ErrFrame, g.rank)
	}
	g.host, g.machine, g.door = m.Host, m.Machine, m.Door
	h.guests[g.rank] = g
	g.out.conn = g.conn
	if g.rank == 0 {
		// A message may make rank 0 exit, and the hub with it: send the others theirs first.
		g.out.before = func() { h.flush(ownDelay) }
	}
	g.out.send(h.past)
	if h.came++; h.came == h.size {
		h.ln.Close()
		h.welcome()
		h.allJoined()
	}
	return nil
}

// welcome tells every rank who it is, and who shares its host.
func (h *hub) welcome() {
	nodes := map[[2]string]int{}
	nodeOf := make([]int, h.size)
	var hosts, doors []string // by node
	var locals []int          // ranks by node
	for r, g := range h.guests {
		id := [2]string{g.host, g.machine}
		if _, ok := nodes[id]; !ok {
			nodes[id] = len(hosts)
			hosts, doors, locals = append(hosts, g.host), append(doors, g.door), append(locals, 0)
		}
		nodeOf[r] = nodes[id]
		locals[nodeOf[r]]++
	}
	placement, seen := wire.Runs(nodeOf), make([]world.LocalRank, len(hosts))
	for r, g := range h.guests {
		n := nodeOf[r]
		g.out.send(wire.Append(nil, &wire.Welcome{
			Rank: world.Rank(r), Size: h.size, LocalRank: seen[n], LocalSize: locals[n], Node: n,
			JobID: h.job, Placement: placement, Hosts: hosts, Door: doors[n],
		}))
		seen[n]++
	}
}

// pass forwards a message of rank 0. It returns when it has been sent to the others, or after
// ownDelay: rank 0 may exit next, and the hub with it.
func (h *hub) pass(m wire.Message) error {
	h.mu.Lock()
	own := h.guests[0]
	h.mu.Unlock()
	err := h.heard(own, m)
	h.flush(ownDelay)
	return err
}

// tellLeft tells that a rank has left, if it has and somebody inquired.
func (h *hub) tellLeft(rank world.Rank) {
	if int(rank) < h.size && h.inquired[rank] && h.guests[rank] != nil && h.guests[rank].left {
		delete(h.inquired, rank)
		h.tell(&wire.Left{Rank: rank})
	}
}

// tell sends news to all ranks, also those that are still to come.
func (h *hub) tell(m wire.Message) {
	frame := wire.Append(nil, m)
	if h.came < h.size {
		h.past = append(h.past, frame...)
	}
	for _, g := range h.guests {
		if g != nil && !g.left {
			g.out.send(frame)
		}
	}
}

// lost handles the end of a connection.
func (h *hub) lost(g *guest, err error) {
	g.conn.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.guests[g.rank] == g && !g.left {
		g.left = true
		h.tell(&wire.Died{Rank: g.rank, Text: howLost(err)})
	}
}

// giveUp ends the wait for ranks that have not come, and tells those that have.
func (h *hub) giveUp(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var missing []int
	for r, g := range h.guests {
		if g == nil {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d ranks have not come within %v, the first is rank %d", len(missing), h.size, after.Round(time.Second), missing[0])
	if h.trouble != nil {
		text += fmt.Sprintf("; rank 0 could not accept connections: %v", h.trouble)
	}
	h.tell(&wire.Terminate{Text: text})
}

// close closes the hub when rank 0 leaves. It first sends the others Closing, so that they do not
// report the lost connection.
func (h *hub) close() {
	h.ln.Close()
	h.mu.Lock()
	if g := h.guests[0]; g != nil {
		g.left = true
	}
	h.tell(&wire.Closing{})
	h.mu.Unlock()
	h.flush(closeTime)
}

// flush waits until all ranks but rank 0 have been sent what there is for them,
// at most for limit.
func (h *hub) flush(limit time.Duration) {
	h.mu.Lock()
	guests := slices.Clone(h.guests[1:])
	h.mu.Unlock()
	deadline := time.Now().Add(limit)
	for _, g := range guests {
		if g != nil {
			g.out.flush(time.Until(deadline))
		}
	}
}

// An outbox sends frames to one connection, without making anybody wait.
type outbox struct {
	conn    net.Conn
	before  func() // called before each write; may be nil
	mu      sync.Mutex
	queue   []byte
	writing bool
	done    chan struct{} // closed when nothing is queued or being written any more
}

// maxQueued bounds what waits for a rank that does not read.
const maxQueued = 256 << 20

func (o *outbox) send(frame []byte) {
	if len(frame) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > maxQueued {
		o.conn.Close()
		return
	}
	o.queue = append(o.queue, frame...)
	if !o.writing {
		o.writing, o.done = true, make(chan struct{})
		go o.write() // until nothing is queued
	}
}

func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		queue := o.queue
		o.queue = nil
		o.mu.Unlock()
		if o.before != nil {
			o.before()
		}
		o.conn.Write(queue) // an error shows when the connection is read
		o.mu.Lock()
	}
	o.writing = false
	close(o.done)
}

// flush waits until everything has been written, at most for limit.
func (o *outbox) flush(limit time.Duration) {
	o.mu.Lock()
	writing, done := o.writing, o.done
	o.mu.Unlock()
	if !writing {
		return
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
