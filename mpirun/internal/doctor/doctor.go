// Package doctor is the launcher's part of gompirun doctor. An agent on each host examines the
// host (package hostinfo); every pair of hosts is connected; the output is findings and remedies.
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"gompi/cudaops/topo"
	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

const (
	// answerTime bounds the time of a host to examine itself.
	answerTime = 15 * time.Second
	// reachTime bounds the time of a connection to another host. A firewall that drops packets uses
	// all of that time.
	reachTime = 3 * time.Second
	// floodTime is the time for which each host sends to every other host.
	floodTime = 100 * time.Millisecond
	// maxRounds bounds the number of hosts that each host connects to.
	maxRounds = 32
)

// A Config is the hosts to examine, and the options.
type Config struct {
	Hosts      []hostfile.Host
	Ports      [2]int // range for ranks to listen on; 0 for any
	Interfaces string // for ranks to use, in the form of internal/route
	Environ    []string
	Dir        string // Environ and Dir are of ranks, as far as hosts have no others
	Starter    remote.Starter
	Limit      time.Duration              // for logging in to a host
	ByHand     func(hostfile.Host) string // command for a user to try a login

	hosts []*host
}

// Run examines the hosts, prints findings and remedies to w, in tables of a width, and reports
// whether jobs can run on all hosts. It blocks until every host has answered or timed out; its agents
// have ended when it returns.
func (c *Config) Run(w io.Writer, width int) bool {
	c.examine()
	defer c.dismiss()
	c.connect()
	advice := advise(c.hosts, c.Ports)
	writeFindings(w, width, c.hosts, advice)
	for _, a := range advice {
		if a.bad {
			return false
		}
	}
	return true
}

// examine starts an agent on every host and gets its findings.
func (c *Config) examine() {
	order := ctl.Examine{PortLow: c.Ports[0], PortHigh: c.Ports[1], Interfaces: c.Interfaces, Env: c.Environ, Dir: c.Dir}
	rand.Read(order.Secret[:]) // never fails
	var all sync.WaitGroup
	for _, h := range c.Hosts {
		p := &host{entry: h, byHand: c.ByHand(h)}
		c.hosts = append(c.hosts, p)
		all.Go(func() { p.examine(c.Starter, c.Limit, order) })
	}
	all.Wait()
	for _, p := range c.hosts {
		p.reached = make([]*ctl.Reached, len(c.hosts))
	}
}

// examined returns the hosts with findings.
func examined(ps []*host) []*host {
	return slices.DeleteFunc(slices.Clone(ps), func(p *host) bool { return p.findings == nil })
}

// connect lets each host connect to every other, or, of very many, to the next maxRounds hosts in
// the list. In each round a host sends to one host and receives from one.
func (c *Config) connect() {
	n := len(c.hosts)
	for step := 1; step < n && step <= maxRounds; step++ {
		var round sync.WaitGroup
		for i, p := range c.hosts {
			k := (i + step) % n
			if other := c.hosts[k]; p.trouble == nil && other.reachable() {
				round.Go(func() { p.reach(k, other.findings) })
			}
		}
		round.Wait()
	}
}

// reachable reports whether the host listens on an address.
func (p *host) reachable() bool {
	return p.trouble == nil && p.findings.Port != 0 && len(p.findings.Addresses) > 0
}

// dismiss ends the agents.
func (c *Config) dismiss() {
	var all sync.WaitGroup
	for _, p := range c.hosts {
		all.Go(p.dismiss)
	}
	all.Wait()
}

// A host is a host under examination. One goroutine at a time uses its agent.
type host struct {
	entry    hostfile.Host
	byHand   string          // command for a user to try a login
	agent    *remote.Process // nil if it did not start
	reader   *ctl.Reader
	login    time.Duration // until its agent sent hello
	hello    *ctl.Hello
	findings *ctl.Findings
	gpus     *topo.Host
	skew     time.Duration  // its clock minus ours
	blur     time.Duration  // bound of skew's error
	reached  []*ctl.Reached // by host; nil if not tried
	trouble  error          // why there are no findings
}

// examine starts an agent and asks for its findings.
func (p *host) examine(starter remote.Starter, limit time.Duration, order ctl.Examine) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit,
		fmt.Errorf("no agent after %v (-start-timeout)", limit))
	defer cancel()
	begun := time.Now()
	if p.agent, p.trouble = starter.Start(ctx, p.entry); p.trouble != nil {
		return
	}
	p.reader = ctl.NewReader(p.agent.Out)
	if p.hello, p.trouble = await[*ctl.Hello](p, limit); p.trouble != nil {
		return
	}
	p.login = time.Since(begun)
	if p.hello.Version != ctl.Version {
		p.trouble = fmt.Errorf("its gompirun is version %q, want %s as here", p.hello.Version, ctl.Version)
		return
	}
	order.Remote = !p.agent.Here()
	asked := time.Now()
	p.send(&order)
	if p.findings, p.trouble = await[*ctl.Findings](p, answerTime); p.trouble != nil {
		return
	}
	p.skew, p.blur = skew(asked, time.Now(), p.findings.Received, p.findings.Sent)
	p.send(&ctl.FindGPUs{})
	var answer *ctl.GPUs
	if answer, p.trouble = await[*ctl.GPUs](p, answerTime); p.trouble != nil {
		return
	}
	gpus, err := topo.Parse(answer.Found)
	if err != nil {
		p.trouble = fmt.Errorf("GPUs: %w", err)
		return
	}
	p.gpus = gpus
}

// skew compares two clocks, as NTP does, by the times of departure and arrival of a question and
// its answer. The result is exact if both travelled equally long.
func skew(asked, answered time.Time, received, sent int64) (offset, blur time.Duration) {
	there := time.Duration(received-asked.UnixNano()) + time.Duration(sent-answered.UnixNano())
	travel := answered.Sub(asked) - time.Duration(sent-received)
	return there / 2, max(travel, 0) / 2
}

// reach makes the host connect to host k.
func (p *host) reach(k int, other *ctl.Findings) {
	p.send(&ctl.Reach{Peer: k, Addresses: other.Addresses, Port: other.Port, Limit: reachTime, Send: floodTime})
	r, err := await[*ctl.Reached](p, 2*reachTime+floodTime+answerTime)
	if err != nil {
		p.trouble = err
		return
	}
	p.reached[k] = r
}

// send sends m. An agent that does not read m does not answer either.
func (p *host) send(m ctl.Message) { p.agent.In.Write(ctl.Append(nil, m)) }

// await returns the agent's next message of a type. After limit without a message await kills the
// agent.
func await[M ctl.Message](p *host, limit time.Duration) (M, error) {
	late := time.AfterFunc(limit, p.agent.Kill)
	for {
		m, err := p.reader.Next()
		if wanted, ok := m.(M); ok && err == nil {
			late.Stop()
			return wanted, nil
		}
		if err != nil {
			var none M
			if !late.Stop() {
				return none, fmt.Errorf("no answer within %v", limit)
			}
			return none, p.ended(err)
		}
	}
}

// ended returns the reason for the agent's output ending with err, and ends the agent.
func (p *host) ended(err error) error {
	agent := p.agent
	p.agent = nil
	agent.In.Close()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		how := agent.Wait()
		agent.Kill() // if it still runs
		return fmt.Errorf("its agent %s", how)
	}
	agent.Kill()
	return fmt.Errorf("its agent is no gompirun of this version: %w; it %s", err, agent.Wait())
}

// dismiss ends the agent.
func (p *host) dismiss() {
	if p.agent == nil {
		return
	}
	p.agent.In.Close()
	p.agent.Wait() // not for the end of its output, which other processes may hold open
	p.agent.Kill() // if it still runs
}
