package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/remote"
)

// Many hosts are reached through some of them. Up to a number of hosts the launcher
// starts every agent itself: a star. Beyond that it starts relays on some hosts. A relay starts
// the agents of its own and of other hosts, or further relays there, and forwards the messages
// between launcher and agents. So the launcher has few login processes, and sends a message for
// all hosts only once to each of its relays.
//
//	launcher    Tree, lanes          one remote.Process for each agent, wherever it is started
//	              hub                channels to the hosts, direct or by relays
//	relay         hub                the same, between an input and an output
//	              agent, ssh ...
//
// A relay is a process beside the agent of its host. Relays know nothing of a job and do not read
// the forwarded bytes. Liveness is end to end: the launcher pings agents, through relays, and
// they answer. A relay's end closes the channels to all hosts below it, whose agents end as
// without a launcher.
//
// A relay's queue of orders is bounded because the launcher waits for requests. Reports are not
// queued: a relay reads them only as fast as the launcher does.

// killTime bounds the time of a relay to kill an agent. After that the process to the relay is
// killed.
const killTime = time.Second

// A Lost is the read error of an agent that is cut off by the loss of a relay.
type Lost struct {
	Relay int    // the relay's host
	How   string // how the relay ended, in words
}

func (l *Lost) Error() string { return fmt.Sprintf("a host through which it is reached %s", l.How) }

// Unwrap makes a Lost an io.EOF: the channel has ended.
func (l *Lost) Unwrap() error { return io.EOF }

// A tree starts the agents of some hosts, each once.
type tree struct {
	hosts  []hostfile.Host
	from   []int // by host: its parent
	starts []int // by host: number of children
	direct remote.Starter
	ssh    *remote.SSH
	hub    *hub
	lanes  []*lane // of hosts that are relays or behind one; nil for others
	once   sync.Once
}

// newTree returns a tree that starts agents by starter. If starter logs in by ssh to more than
// fanout hosts, and fanout is not 0, some of them become relays.
func newTree(starter remote.Starter, hosts []hostfile.Host, fanout int) *tree {
	t := &tree{hosts: hosts, direct: starter, starts: make([]int, len(hosts)), lanes: make([]*lane, len(hosts))}
	other := func(hostfile.Host) bool { return false }
	if s, ok := starter.(remote.LocalOrRemote); ok {
		if t.ssh, ok = s.SSH(); ok {
			other = s.MeansTheSame
		}
	}
	t.from = shape(hosts, fanout, other)
	for _, f := range t.from {
		if f != launcher {
			t.starts[f]++
		}
	}
	t.hub = newHub(launcher, t.ssh, t.deliver)
	for n := range hosts {
		if t.from[n] != launcher || t.starts[n] > 0 {
			t.lanes[n] = newLane(t, n)
		}
	}
	return t
}

// at returns the starter of host n's agent.
func (t *tree) at(n int) remote.Starter { return place{t, n} }

type place struct {
	*tree
	n int
}

// errNoRelay is the error of a host whose parent has no relay.
var errNoRelay = errors.New("there is no relay on the host from which it is to be started")

// Start implements remote.Starter. If the parent does not reach the host, this machine logs in
// there.
func (p place) Start(ctx context.Context, h hostfile.Host) (*remote.Process, error) {
	l := p.lanes[p.n]
	if l == nil {
		return p.direct.Start(ctx, h)
	}
	err := l.start(ctx)
	if err == nil {
		return l.process(), nil
	}
	if p.from[p.n] == launcher || ctx.Err() != nil {
		return nil, err
	}
	process, failed := p.direct.Start(ctx, h)
	if failed != nil {
		return nil, failed
	}
	if errors.Is(err, errNoRelay) {
		return process, nil // the parent's note has the reason
	}
	p.once.Do(func() {
		process.Note = fmt.Sprintf("it is logged in to from here, as others may be, since that did not work from %s: %v "+
			"(-fanout 0: from here at once)", p.hosts[p.from[p.n]].Name, err)
	})
	return process, nil
}

// treeOf returns the tree through which an agent is reached, nil for none.
func treeOf(p *remote.Process) *tree {
	if l, ok := p.In.(*lane); ok {
		return l.tree
	}
	return nil
}

// send sends orders to agents reached through t, like writes to their In. It does not block.
func (t *tree) send(hosts []int, data []byte) { t.hub.follow(&orders{hosts, data}) }

// flush waits until all orders to a host have left this machine, at most for limit.
func (t *tree) flush(host int, limit time.Duration) { t.hub.flush(host, limit) }

// deliver takes the hub's messages.
func (t *tree) deliver(m message) {
	switch m := m.(type) {
	case *started:
		if l := t.lane(m.host); l != nil {
			l.isUp(t.hub.leader(m.host))
		}
	case *report:
		if l := t.lane(m.host); l != nil {
			l.out.Write(m.data) // fails only without a reader
		}
	case *ended:
		if l := t.lane(m.host); l != nil {
			l.end(m)
		}
	}
}

// lane returns the lane of a host named by a relay, nil if there is none.
func (t *tree) lane(host int) *lane {
	if host < 0 || host >= len(t.lanes) {
		return nil
	}
	return t.lanes[host]
}

// A lane is the launcher's connection to an agent in the tree.
type lane struct {
	tree *tree
	host int
	in   *io.PipeReader // the agent's reports
	out  *io.PipeWriter

	mu    sync.Mutex
	up    chan struct{} // closed when the agent runs, or its start has failed
	over  chan struct{} // closed when the agent has ended
	how   string        // in words
	ended bool

	through *remote.Process // local process that leads to the agent; nil before it runs
}

func newLane(t *tree, host int) *lane {
	l := &lane{tree: t, host: host, up: make(chan struct{}), over: make(chan struct{})}
	l.in, l.out = io.Pipe()
	return l
}

// start starts the agent, within ctx.
func (l *lane) start(ctx context.Context) error {
	t := l.tree
	m := start{host: l.host, from: t.from[l.host], at: t.hosts[l.host], relay: t.starts[l.host] > 0}
	if m.from != launcher && !t.lanes[m.from].isRelay(ctx) {
		l.end(&ended{host: l.host, how: errNoRelay.Error()}) // its children wait for a relay
		return errNoRelay
	}
	m.limit = time.Hour
	if end, ok := ctx.Deadline(); ok {
		m.limit = max(time.Until(end), 0)
	}
	t.hub.follow(&m)
	select {
	case <-l.up:
	case <-ctx.Done():
		l.Kill()
		select {
		case <-l.up:
		case <-time.After(killTime):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.through != nil && !l.ended:
		return nil
	case l.ended:
		return errors.New(l.how)
	}
	return context.Cause(ctx)
}

// isRelay reports whether hosts may be started from l's. The call waits until that is known or
// ctx ends.
func (l *lane) isRelay(ctx context.Context) bool {
	select {
	case <-l.up:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.through != nil && !l.ended
}

// process returns the running agent.
func (l *lane) process() *remote.Process {
	t := l.tree
	p := remote.Connected(l, l.in, l)
	p.Through, p.Via, p.Login = l.through, l.through.Via, t.ssh.Login(t.hosts[l.host])
	at := l.host
	if t.starts[at] == 0 {
		at = t.from[at]
	}
	for ; at != launcher; at = t.from[at] {
		p.Relays = append([]int{at}, p.Relays...)
	}
	return p
}

// Write implements io.Writer.
func (l *lane) Write(b []byte) (int, error) {
	l.tree.send([]int{l.host}, b)
	return len(b), nil
}

// Close implements io.Closer.
func (l *lane) Close() error {
	l.tree.hub.follow(&hangUp{l.host})
	return nil
}

// Kill implements remote.Conn.
func (l *lane) Kill() {
	l.tree.hub.follow(&kill{l.host})
	time.AfterFunc(killTime, func() { l.tree.hub.cut(l.host) }) // no effect after its end
}

// Wait implements remote.Conn.
func (l *lane) Wait() string {
	<-l.over
	return l.how
}

// isUp notes that the agent runs, behind the process through.
func (l *lane) isUp(through *remote.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.through == nil && !l.ended && through != nil {
		l.through = through
		close(l.up)
	}
}

// end notes the agent's end, or the failure of its start.
func (l *lane) end(m *ended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.how, l.ended = m.how, true; l.through == nil {
		close(l.up)
	}
	var err error = io.EOF
	if m.lost {
		err = &Lost{m.with, m.how}
	}
	l.out.CloseWithError(err)
	close(l.over)
}
