package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gompi/mpirun/internal/remote"
)

const (
	// maxBacklog bounds the bytes queued for an agent or a relay that does not read. Agents'
	// requests bound the launcher's messages, except for the cards of a large job.
	maxBacklog = 256 << 20
	// endTime bounds the time of a relay to end after its last host's end.
	endTime = 10 * time.Second
)

// A hub is the meeting point of channels to hosts, in the launcher and in each relay. It has the
// processes started from here, agents and relays, and passes on orders for hosts behind a relay.
type hub struct {
	self    int // the host of this hub
	ssh     *remote.SSH
	deliver func(message) // takes messages from below, valid during the call; concurrent, may block

	mu       sync.Mutex
	channels map[int]*channel // by host: the channel that leads there
	running  int              // channels with a process that runs or is being started
	changed  *sync.Cond       // signalled when running changes
}

// A channel is a process started from here and its input.
type channel struct {
	host    int  // at the other end
	relay   bool // the process is a relay
	stop    context.CancelCauseFunc
	process *remote.Process // nil until it runs
	out     *remote.Outbox
}

var errKilled = errors.New("it was not needed any more")

func newHub(self int, ssh *remote.SSH, deliver func(message)) *hub {
	h := &hub{self: self, ssh: ssh, deliver: deliver, channels: map[int]*channel{}}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// follow obeys m. It does not block.
func (h *hub) follow(m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m := m.(type) {
	case *start:
		h.begin(m)
	case *orders:
		h.send(m)
	case *hangUp:
		if c := h.channels[m.host]; c != nil && !c.pass(m) {
			c.close()
		}
	case *kill:
		if c := h.channels[m.host]; c != nil && !c.pass(m) {
			c.end()
		}
	}
}

// leader returns the local process that leads to a host, nil after its end.
func (h *hub) leader(host int) *remote.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[host]; c != nil {
		return c.process
	}
	return nil
}

// flush waits until all orders for a host have left this host, at most for limit.
func (h *hub) flush(host int, limit time.Duration) {
	h.mu.Lock()
	var out *remote.Outbox
	if c := h.channels[host]; c != nil {
		out = c.out
	}
	h.mu.Unlock()
	if out != nil {
		out.Flush(limit)
	}
}

// begin starts an agent or relay, or passes the order on.
func (h *hub) begin(m *start) {
	c := h.channels[m.from]
	if m.from == h.self {
		c = &channel{host: m.host, relay: m.relay}
		var ctx context.Context
		ctx, c.stop = context.WithCancelCause(context.Background())
		h.count(+1)
		go h.serve(ctx, c, *m) // until the process has ended
	} else if c == nil || !c.pass(m) {
		go h.deliver(&ended{host: m.host, how: errNoRelay.Error()})
		return
	}
	h.channels[m.host] = c
}

// send sends orders, once to each relay.
func (h *hub) send(m *orders) {
	behind := map[*channel][]int{}
	for _, n := range m.hosts {
		if c := h.channels[n]; c != nil {
			behind[c] = append(behind[c], n)
		}
	}
	var data []byte // the next message may be read into m's place
	for c, hosts := range behind {
		if !c.pass(&orders{hosts, m.data}) && c.out != nil {
			if data == nil {
				data = bytes.Clone(m.data)
			}
			c.post(data)
		}
	}
}

// pass passes m on if c leads to a running relay.
func (c *channel) pass(m message) bool {
	passed := c.relay && c.process != nil
	if passed {
		c.post(protocol.Append(nil, m))
	}
	return passed
}

func (c *channel) post(b []byte) {
	if c.out.Post(b) > maxBacklog {
		c.process.Kill()
	}
}

// close ends the input of c's process, which ends an agent, or stops its start.
func (c *channel) close() {
	if c.process == nil {
		c.stop(errKilled)
		return
	}
	c.out.Close()
}

// end kills c's process, or stops its start, at once.
func (c *channel) end() {
	c.stop(errKilled)
	if c.process != nil {
		c.process.Kill()
		c.process.Close()
	}
}

// count adds more to the number of processes. h is locked.
func (h *hub) count(more int) {
	h.running += more
	h.changed.Broadcast()
}

// cut kills the process here that leads to a host, which may be a relay to other hosts, too.
func (h *hub) cut(host int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[host]; c != nil {
		c.end()
	}
}

// serve starts c's process and delivers its messages, until its end.
func (h *hub) serve(ctx context.Context, c *channel, m start) {
	defer func() {
		c.stop(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.count(-1)
	}()
	limited, cancel := context.WithTimeoutCause(ctx, m.limit,
		fmt.Errorf("no agent after %v (-start-timeout)", m.limit.Round(time.Second)))
	process, err := h.start(limited, &m)
	cancel()
	if err != nil {
		h.leave(c, func(n int) *ended { return &ended{host: n, how: err.Error()} })
		return
	}
	h.mu.Lock()
	c.process, c.out = process, remote.NewOutbox(process)
	if c.relay {
		c.pass(&begin{c.host, h.ssh.Ways()})
	}
	h.mu.Unlock()
	if ctx.Err() != nil {
		process.Kill()
	}
	var last *ended
	if c.relay {
		last, err = h.relayed(c)
	} else {
		h.deliver(&started{c.host})
		h.reported(c)
	}
	process.Close()
	process.Kill() // no effect if it is ending already
	how := process.Wait()
	switch {
	case last != nil:
		h.deliver(last)
	case c.relay:
		if err != nil {
			how = err.Error() + "; it " + how
		}
		h.leave(c, func(n int) *ended { return &ended{host: n, how: how, lost: true, with: c.host} })
	default:
		h.leave(c, func(n int) *ended { return &ended{host: n, how: how} })
	}
}

func (h *hub) start(ctx context.Context, m *start) (*remote.Process, error) {
	switch {
	case m.host == h.self:
		return remote.Guarded()
	case m.relay:
		return h.ssh.Relay(ctx, m.at)
	}
	return h.ssh.Start(ctx, m.at)
}

// reported delivers an agent's reports, until its end.
func (h *hub) reported(c *channel) {
	buf := make([]byte, chunk)
	for {
		n, err := c.process.Out.Read(buf)
		if n > 0 {
			h.deliver(&report{c.host, buf[:n]})
		}
		if err != nil {
			return
		}
	}
}

// relayed delivers a relay's messages, until the relay ends. After the end of its last host the
// relay is closed, and that end is returned, for delivery after the relay's. err is the reason
// for not reading until the relay's end.
func (h *hub) relayed(c *channel) (last *ended, err error) {
	r := newReader(c.process.Out)
	if err = r.open(); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	for {
		m, err := r.next()
		if err != nil {
			return last, nil
		}
		e, isEnd := m.(*ended)
		if isEnd && h.forget(e.host, c) {
			last = e
			c.out.Close()
			defer time.AfterFunc(endTime, c.process.Kill).Stop()
			continue
		}
		h.deliver(m)
	}
}

// forget forgets a host reached by c, and reports whether that was the last host.
func (h *hub) forget(host int, c *channel) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.channels[host] != c {
		return false
	}
	delete(h.channels, host)
	for _, other := range h.channels {
		if other == c {
			return false
		}
	}
	return true
}

// leave forgets all hosts reached by c, and delivers their ends.
func (h *hub) leave(c *channel, end func(host int) *ended) {
	var hosts []int
	h.mu.Lock()
	for n, by := range h.channels {
		if by == c {
			hosts = append(hosts, n)
			delete(h.channels, n)
		}
	}
	h.mu.Unlock()
	slices.Sort(hosts)
	for _, n := range hosts {
		h.deliver(end(n))
	}
}

// closeAll ends the orders to all hosts, as when the launcher has ended.
func (h *hub) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		c.close()
	}
}
