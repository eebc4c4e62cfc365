package startsim

import (
	"math/bits"

	"gompi/comm/sim"
)

// roundTrips are the round trips of an ssh login: connection, versions, keys (2), user (2),
// session, command.
const roundTrips = 8

// loginBytes is the approximate size of a login's message.
const loginBytes = 500

// A process is one process of the simulation. Its methods are the steps of a start, in order.
// After an error they do nothing.
type process struct {
	*simulated
	b   *build
	err error
}

type simulated = sim.Rank

// recv waits for messages of size bytes from some processes.
func (p *process) recv(size int, from ...int) {
	for _, f := range from {
		p.RecvBytes(f, size)
	}
	p.wait()
}

func (p *process) send(to, size int) {
	if p.err == nil {
		p.SendBytes(to, size)
	}
}

func (p *process) wait() {
	if p.err == nil {
		p.err = p.Wait()
	}
}

// pass passes a message on.
func (p *process) pass(from, to, size int) {
	p.recv(size, from)
	p.send(to, size)
}

// launcher is gompirun.
func (p *process) launcher() {
	b, h := p.b, &p.b.root
	p.Work(b.Costs.Launcher)
	for level := 1; level <= b.found.Depth; level++ {
		p.level(h, level)
	}
	p.Work(b.Costs.Greet * float64(len(b.hosts)))
	b.found.Agents = p.Now()
	p.broadcast(h, b.sizes.layout)
	p.orders(h, b.sizes.launch)
	p.gather(h, func(c *host) int { return b.sizes.cards * c.all() })
	b.found.Met = p.Now()
	p.broadcast(h, b.sizes.gathered)
	p.gather(h, func(c *host) int { return b.sizes.drained * c.all() })
	b.found.Launcher += p.Busy()
}

// relay starts agents on its host's behalf, and forwards messages.
func (p *process) relay(h *host) {
	p.welcome(h)
	p.Work(p.b.Costs.Agent)
	p.Work(p.b.Costs.Fork)
	p.send(h.agent, 0)
	p.pass(h.agent, h.up, p.b.sizes.hello)
	for level := h.level + 1; h.at(level) > 0; level++ {
		p.recv(p.b.sizes.start*h.at(level), h.up)
		p.level(h, level)
		p.send(h.up, p.b.sizes.hello*h.at(level))
	}
	p.share(h, p.b.sizes.layout)
	p.pass(h.up, h.agent, p.b.sizes.launch)
	p.orders(h, p.b.sizes.launch)
	p.recv(p.b.sizes.cards, h.agent)
	p.gather(h, func(c *host) int { return p.b.sizes.cards * c.all() })
	p.send(h.up, p.b.sizes.cards*h.all())
	p.share(h, p.b.sizes.gathered)
	p.recv(p.b.sizes.drained, h.agent)
	p.gather(h, func(c *host) int { return p.b.sizes.drained * c.all() })
	p.send(h.up, p.b.sizes.drained*h.all())
	p.wait()
}

// level starts the agents of a level below h, and waits for them.
func (p *process) level(h *host, level int) {
	for _, c := range h.below {
		switch {
		case level == c.level:
			p.Work(p.b.Costs.Fork)
			p.sendDown(h, c, 0)
			p.Yield()
		case c.at(level) > 0:
			p.sendDown(h, c, p.b.sizes.start*c.at(level))
		}
	}
	p.gather(h, func(c *host) int { return p.b.sizes.hello * c.at(level) })
}

// orders sends the hosts below h their individual orders. A relay gets its own order first, then
// all orders of each branch below it in one message.
func (p *process) orders(h *host, size int) {
	for _, c := range h.below {
		if h != &p.b.root {
			p.recv(size*c.all(), h.up)
		}
		p.sendDown(h, c, size)
		for _, d := range c.below {
			p.sendDown(h, c, size*d.all())
		}
	}
	p.wait()
}

// broadcast sends a message for all to the hosts below h, once to each relay.
func (p *process) broadcast(h *host, size int) {
	for _, c := range h.below {
		p.sendDown(h, c, p.b.forAll(c, size))
	}
	p.wait()
}

// share forwards a message for all.
func (p *process) share(h *host, size int) {
	p.recv(p.b.forAll(h, size), h.up)
	p.send(h.agent, size)
	p.broadcast(h, size)
}

// gather waits for a message from each host below h. size returns its bytes, 0 for no message.
func (p *process) gather(h *host, size func(c *host) int) {
	for _, c := range h.below {
		if n := size(c); n > 0 {
			p.RecvBytes(c.reachedBy(h), n)
		}
	}
	p.wait()
}

func (p *process) sendDown(h, c *host, size int) {
	p.send(c.reachedBy(h), size)
	if h == &p.b.root {
		p.b.found.Sent += int64(size)
	}
}

// login is the ssh process: it logs in to a host, and then is the channel to its agent or relay.
func (p *process) login(from int, h *host) {
	b := p.b
	p.recv(0, from)
	for range roundTrips {
		p.Work(b.Costs.Client / roundTrips)
		p.send(h.entry, loginBytes)
		p.recv(loginBytes, h.entry)
	}
	up := func(size int) { p.carry(h.entry, from, size) }
	down := func(size int) { p.carry(from, h.entry, size) }
	up(b.sizes.hello)
	for level := h.level + 1; h.at(level) > 0; level++ {
		down(b.sizes.start * h.at(level))
		up(b.sizes.hello * h.at(level))
	}
	down(b.forAll(h, b.sizes.layout))
	down(b.sizes.launch)
	for _, c := range h.below {
		down(b.sizes.launch * c.all())
	}
	up(b.sizes.cards * h.all())
	down(b.forAll(h, b.sizes.gathered))
	up(b.sizes.drained * h.all())
	p.wait()
	if from == b.root.entry {
		b.found.Launcher += p.Busy()
	}
}

// carry encrypts a message and passes it on. The other end of the channel decrypts it.
func (p *process) carry(from, to, size int) {
	p.recv(size, from)
	p.Work(2 * float64(size) * p.b.Costs.Crypt)
	p.send(to, size)
}

// welcome is the server's end of a login.
func (p *process) welcome(h *host) {
	if h.up == p.b.root.entry {
		p.recv(0, h.up)
		return
	}
	for range roundTrips {
		p.recv(loginBytes, h.up)
		p.Work(p.b.Costs.Server / roundTrips)
		p.send(h.up, loginBytes)
	}
}

func (p *process) agent(h *host) {
	b, up := p.b, h.up
	if h.entry != h.agent {
		up = h.entry
		p.recv(0, up)
	} else {
		p.welcome(h)
	}
	p.Work(b.Costs.Agent)
	p.send(up, b.sizes.hello)
	p.recv(b.sizes.layout, up)
	p.recv(b.sizes.launch, up)
	first := h.number * b.perHost
	for r := range h.ranks {
		p.Work(b.Costs.Spawn)
		p.send(first+r, b.sizes.welcome)
		p.Yield()
	}
	p.Work(b.Costs.Look * float64(b.neighbors()))
	p.ranks(h, b.sizes.card)
	p.send(up, b.sizes.cards)
	p.recv(b.sizes.gathered, up)
	for r := range h.ranks {
		p.send(first+r, b.sizes.gathered)
	}
	p.ranks(h, 0)
	p.send(up, b.sizes.drained)
	p.wait()
}

// ranks waits for a message of each rank of a host.
func (p *process) ranks(h *host, size int) {
	for r := range h.ranks {
		p.RecvBytes(h.number*p.b.perHost+r, size)
	}
	p.wait()
}

// neighbors returns the number of agents and ranks on an agent's machine.
func (b *build) neighbors() int {
	return min(max(b.machine.Hosts, 1), len(b.hosts)) * (1 + b.perHost)
}

// rank is a rank whose program makes a barrier and an allreduce.
func (p *process) rank(h *host) {
	b := p.b
	p.recv(b.sizes.welcome, h.agent)
	p.Work(b.Costs.Process + b.Costs.Bell*float64(h.ranks))
	p.send(h.agent, b.sizes.card)
	p.recv(b.sizes.gathered, h.agent)
	p.Work(b.Costs.Card * float64(b.ranks))
	b.found.Ready = max(b.found.Ready, p.Now())
	p.Work(b.Costs.Connect * float64(b.connections(p.Rank())))
	if h.ranks <= sharedRanks {
		p.Work(b.Costs.Touch * float64(h.ranks))
	}
	for _, call := range []func(*sim.Rank) error{b.barrier, b.reduce} {
		if p.err == nil {
			p.err = call(p.simulated)
		}
	}
	b.found.Used = max(b.found.Used, p.Now())
	p.Work(b.Costs.Close)
	p.send(h.agent, 0)
	p.wait()
}

// sharedRanks is the most ranks of a host that do collectives through shared memory.
const sharedRanks = 128

// connections returns the number of a rank's connections to other hosts. Where ranks share
// memory, only the first of each host connects.
func (b *build) connections(rank int) int {
	if perHost := b.perHost; perHost <= sharedRanks && rank%perHost > 0 {
		return 0
	}
	return 2 * bits.Len(uint(len(b.hosts)-1))
}
