package job

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"gompi/hostfile"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/stall"
)

// A host is the job's knowledge of one host and its agent.
type host struct {
	index   int // among all hosts
	name    string
	agent   Agent
	started *link.Started // nil until the agent runs
	hello   *ctl.Hello
	gpus    *hostGPUs // nil before they are found
	busy    bool      // looking for GPUs: receives no messages
	failed  error     // why the host cannot be used

	pulse  pulse
	asking []monitor.WhereIs // users' questions about its ranks

	ranks   []int // on this host
	drained bool  // its work is done
	gone    bool  // the agent has been waited for
}

// Name implements stall.Agent.
func (h *host) Name() string { return h.name }

// Send implements stall.Agent.
func (h *host) Send(m ctl.Message) { h.agent.Send(m) }

// here reports whether the agent is on this machine, and so has its clock.
func (h *host) here() bool { return h.started != nil && h.started.Here }

// network is the launcher's network, in the form of Hello.
var network = sync.OnceValue(sockets.Network)

// sharesLoopback reports whether the agent has the launcher's loopback interface. A loopback
// address of the connection is no proof, because tunnels have one, too.
func (h *host) sharesLoopback() bool { return h.started.Here || h.hello.Network == network() }

// relay returns the number of the host from which the agent was started; -1 for the launcher's.
func (h *host) relay() int {
	for i := len(h.started.Relays) - 1; i >= 0; i-- {
		if n := h.started.Relays[i]; n != h.index {
			return n
		}
	}
	return -1
}

// behind reports whether the way to the agent leads through another host, by number.
func (h *host) behind(relay int) bool {
	return h.index != relay && h.started != nil && slices.Contains(h.started.Relays, relay)
}

// via returns the way by which the agent on h was started: "ssh", or "ssh from node3".
func (j *Job) via(h *host) string {
	if n := h.relay(); n >= 0 {
		return h.started.Via + " from " + j.hosts[n].name
	}
	return h.started.Via
}

// reached describes the way to the agent for the user.
func (h *host) reached() string {
	switch {
	case h.started == nil:
		return ""
	case h.started.Here:
		return "this machine"
	}
	return "by " + h.started.Via
}

// close closes the channel, which ends the agent. A process without a hello, which may be no
// agent, and a busy agent, which may not notice, are killed.
func (h *host) close() {
	if h.started == nil {
		return
	}
	h.agent.Close()
	if h.hello == nil || h.busy {
		h.agent.Kill()
	}
}

// ended explains an unexpected end of the channel. An agent that has not ended by itself is
// killed.
func (h *host) ended(err error) string {
	h.gone = true
	h.close()
	h.agent.Kill() // no effect on a process that is ending already
	how := h.agent.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
		return how
	}
	return err.Error() + "; it " + how
}

// await waits for the end of some hosts' agents after their channels were closed, or for the
// failure of their start. The result is false after limit.
func (j *Job) await(limit time.Duration, of func(*host) bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for _, h := range j.hosts {
		for of(h) && !h.gone {
			select {
			case e := <-j.events:
				j.endedLate(e)
			case s := <-j.signals:
				j.signalled(s)
			case q := <-j.system.Questions:
				j.askedFor(q)
			case <-late.C:
				return false
			}
		}
	}
	return true
}

// endedLate handles an event of an agent after the order to end.
func (j *Job) endedLate(e link.Event) {
	from := j.hosts[e.Host]
	switch {
	case e.Started != nil:
		from.started = e.Started
		from.close()
	case e.Err != nil && from.started == nil:
		from.gone = true
	case e.Err != nil:
		from.ended(e.Err)
	}
}

// someNames names hosts, and counts those beyond the first few.
func someNames(hosts []*host) string {
	var list hostfile.List
	for _, h := range hosts {
		list.Hosts = append(list.Hosts, hostfile.Host{Name: h.name})
	}
	return list.Names()
}

// ranksText names a host's ranks.
func ranksText(ranks []int) string {
	switch len(ranks) {
	case 0:
		return "no rank"
	case 1:
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return fmt.Sprintf("%d ranks from %d to %d", len(ranks), ranks[0], ranks[len(ranks)-1])
}

// broadcast sends m to every agent that has ranks.
func (j *Job) broadcast(m ctl.Message) {
	j.sendTo(m, func(h *host) bool { return len(h.ranks) > 0 && !h.drained })
}

// sendTo sends m to the agents of some hosts, together.
func (j *Job) sendTo(m ctl.Message, to func(*host) bool) {
	var hosts []int
	for n, h := range j.hosts {
		if to(h) {
			hosts = append(hosts, n)
		}
	}
	if len(hosts) > 0 {
		j.send(hosts, m)
	}
}

// surveyed returns the hosts with ranks whose agents still answer.
func (j *Job) surveyed() []stall.Agent {
	var hosts []stall.Agent
	for _, h := range j.hosts {
		if len(h.ranks) > 0 && !h.drained {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
