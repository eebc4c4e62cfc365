// Package startsim simulates the start of jobs on more hosts and ranks than anyone has at hand.
// gompirun, the login processes, relays, agents and ranks are processes of package sim, in
// virtual time. The tree of agents has the shape of package link, messages have the lengths of
// package ctl's encoding, and the first barrier and allreduce use the algorithms of comm. The
// processor time of processes is measured (Costs).
//
// The model simplifies: hosts come up level by level of the tree, not each as soon as possible;
// messages are forwarded whole; nothing fails, and no login is refused.
package startsim

import (
	"fmt"

	"gompi/comm/sim"
	"gompi/mpirun/internal/link"
)

// A Site is the place of a job's start: links and processors of hosts, and the costs of processes
// there. If its Machine has room for all ranks on one host, they start on gompirun's own, by one
// agent. Otherwise gompirun has a host of its own, like the others.
type Site struct {
	Machine sim.Machine
	Costs   Costs
}

// Costs are seconds of a processor.
type Costs struct {
	Launcher float64 // gompirun, until it starts agents
	Greet    float64 // for each agent: read its hello, and make its part of the launch
	Fork     float64 // start a login process
	Client   float64 // the client's end of a login
	Server   float64 // the server's end of a login
	Crypt    float64 // a byte through a login's channel, at either end
	Agent    float64 // an agent, until it says hello
	Spawn    float64 // for each rank
	Process  float64 // a rank until it sends its card: start of a Go process, beginning of Init
	Bell     float64 // a rank, for each doorbell of its host's ranks
	Card     float64 // a rank, for the card of each rank of the job
	Touch    float64 // a rank, for each rank whose shared memory it touches, where ranks share memory
	Connect  float64 // a connection of a rank, at either end
	Close    float64 // a rank to end
	Look     float64 // an agent, for each process of its machine
}

// A Result is the outcome of a simulated start. Times are seconds since gompirun was called.
type Result struct {
	Agents   float64 // gompirun has the hellos of all agents
	Met      float64 // gompirun has the cards of all ranks
	Ready    float64 // all ranks have read the cards
	Used     float64 // all ranks have made a barrier and an allreduce of 8 B
	Ended    float64 // all have ended, and gompirun knows
	Launcher float64 // processor time of gompirun and of the logins from its host
	Sent     int64   // bytes that gompirun has sent
	Logins   int     // from gompirun's host
	Depth    int     // of the tree; a star has 1
	Needs    Needs
}

// Run simulates the start of a job of a number of ranks. A fan-out is gompirun's -fanout: more
// hosts form a tree of agents, and 0 is a star of any size. A job of 100,000 ranks takes half a
// minute of a processor and some GB.
func (s *Site) Run(ranks, fanout int) (Result, error) {
	b, err := s.build(ranks, fanout)
	if err != nil {
		return Result{}, err
	}
	run, err := sim.Run(&b.machine, ranks+len(b.machine.Beside), b.process)
	if err != nil {
		return Result{}, fmt.Errorf("start of %d ranks: %w", ranks, err)
	}
	b.found.Ended = run.Time
	return b.found, nil
}

// A build is the construction of a simulation. Hosts have the numbers of package link. Processes
// are numbered: the job's ranks first, then the processes of the hosts, at last gompirun.
type build struct {
	*Site
	ranks   int
	perHost int
	local   bool // no login is needed
	machine sim.Machine
	sizes   sizes
	hosts   []host
	root    host // gompirun's
	found   Result
	barrier func(*sim.Rank) error
	reduce  func(*sim.Rank) error
	bodies  []func(p *process) // of processes beside the ranks
}

// A host has an agent, and a relay if agents are started from it.
type host struct {
	number int
	below  []*host
	level  int
	size   []int // hosts below and this one, by level
	up     int   // process by which its agent or relay is reached
	entry  int   // its agent or relay
	agent  int
	ranks  int
}

func (h *host) all() (n int) {
	for _, k := range h.size {
		n += k
	}
	return n
}

// reachedBy returns the process by which a process on p's host reaches h.
func (h *host) reachedBy(p *host) int {
	if h.up == p.entry { // without a login
		return h.entry
	}
	return h.up
}

// at returns the number of hosts of a level that are started through this host.
func (h *host) at(level int) int {
	if level < len(h.size) {
		return h.size[level]
	}
	return 0
}

func (s *Site) build(ranks, fanout int) (*build, error) {
	if ranks < 1 || fanout < 0 {
		return nil, fmt.Errorf("start of %d ranks, -fanout %d: want at least one rank, and no negative fan-out",
			ranks, fanout)
	}
	b := &build{Site: s, ranks: ranks, machine: s.Machine, perHost: max(s.Machine.RanksPerHost, 1)}
	b.local = b.perHost >= ranks
	b.perHost = min(b.perHost, ranks)
	b.machine.RanksPerHost, b.machine.Eager = b.perHost, 0 // long messages go through pipes, too
	b.hosts = make([]host, (ranks+b.perHost-1)/b.perHost)
	b.sizes = sizesOf(ranks, b.perHost, len(b.hosts))
	b.grow(link.Shape(len(b.hosts), fanout))
	b.start()
	b.found.Needs = b.needs()
	for op, do := range map[string]*func(*sim.Rank) error{"barrier": &b.barrier, "allreduce": &b.reduce} {
		c := sim.Call{Op: op, Ranks: ranks, Bytes: 8}
		if ranks > mostHierarchical {
			names, err := sim.Algorithms(op)
			if err != nil {
				return nil, err
			}
			c.Algorithm = names[0]
		}
		var err error
		if *do, err = b.machine.Do(c); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// mostHierarchical is the most ranks for which the first calls may be hierarchical: each rank of
// a hierarchical call lists all hosts. Larger jobs make them by messages alone, which takes
// little longer.
const mostHierarchical = 1 << 14

// grow makes the tree of the hosts. Children have larger numbers than their parents.
func (b *build) grow(from []int) {
	parent := func(n int) *host {
		if from[n] < 0 {
			return &b.root
		}
		return &b.hosts[from[n]]
	}
	for n := range b.hosts {
		h, p := &b.hosts[n], parent(n)
		h.number, h.level, h.ranks = n, p.level+1, min(b.perHost, b.ranks-n*b.perHost)
		p.below = append(p.below, h)
		b.found.Depth = max(b.found.Depth, h.level)
	}
	b.root.size = make([]int, b.found.Depth+1)
	for n := len(b.hosts) - 1; n >= 0; n-- {
		h := &b.hosts[n]
		if h.size == nil {
			h.size = make([]int, b.found.Depth+1)
		}
		h.size[h.level]++
		p := parent(n)
		if p.size == nil {
			p.size = make([]int, b.found.Depth+1)
		}
		for l, k := range h.size {
			p.size[l] += k
		}
	}
}

// start makes the processes.
func (b *build) start() {
	here := len(b.hosts)
	if b.local {
		here = 0
	}
	on := func(h *host) int {
		if h == &b.root {
			return here
		}
		return h.number
	}
	var begin func(h *host)
	begin = func(h *host) {
		if h != &b.root {
			h.agent = b.add(h.number, func(p *process) { p.agent(h) })
			if h.entry = h.agent; len(h.below) > 0 {
				h.entry = b.add(h.number, func(p *process) { p.relay(h) })
			}
		}
		for _, c := range h.below {
			if !b.local {
				c.up = b.add(on(h), nil) // the login process; its body needs the processes below
			}
			begin(c)
		}
	}
	begin(&b.root)
	b.root.entry = b.add(here, func(p *process) { p.launcher() })
	b.connect(&b.root)
	if !b.local {
		b.found.Logins = len(b.root.below)
	}
}

// connect connects the hosts below h to the processes by which they are reached.
func (b *build) connect(h *host) {
	for _, c := range h.below {
		if b.local {
			c.up = h.entry
		} else {
			b.bodies[c.up-b.ranks] = func(p *process) { p.login(h.entry, c) }
		}
		b.connect(c)
	}
}

// add adds a process of a host, and returns its number.
func (b *build) add(host int, body func(p *process)) int {
	b.machine.Beside = append(b.machine.Beside, host)
	b.bodies = append(b.bodies, body)
	return b.ranks + len(b.bodies) - 1
}

func (b *build) process(r *sim.Rank) error {
	p := &process{r, b, nil}
	if n := r.Rank() - b.ranks; n >= 0 {
		b.bodies[n](p)
	} else {
		p.rank(&b.hosts[r.Rank()/b.perHost])
	}
	return p.err
}
