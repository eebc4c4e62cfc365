package mpirun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gompi/hostfile"
	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

const doctorUsage = `usage: gompirun doctor [-hostfile F] [-H LIST] [flags]

Examines hosts and what is between them: logs in to each as a job would, looks at
what it grants and what it has, and lets each connect to each on the ports that
ranks would use. Prints tables, and below what to mend and how. The exit status is
0 if jobs can run on all hosts, 1 if not.

  -hostfile F, -machinefile the hosts
  -H LIST, -host LIST       hosts on the command line, or which of the hostfile's
  -port-range LO-HI         ports that ranks are to listen on (default: any)
  -iface LIST               interfaces and subnets for them to use (default: all)
  -rsh CMD, -launch-agent CMD, -start-timeout T
                            how hosts are logged in to, as for a job
`

const (
	// answerTime is how long a host may take to examine itself.
	answerTime = 15 * time.Second
	// reachTime is how long connecting to another host may take. A firewall that
	// drops packets makes it that long.
	reachTime = 3 * time.Second
	// floodTime is how long each host sends to each other.
	floodTime = 100 * time.Millisecond
	// maxRounds bounds how many others each host reaches.
	maxRounds = 32
)

// A checkup is one run of gompirun doctor.
type checkup struct {
	hosts      []hostfile.Host
	notes      []string // how the lists of hosts were understood
	ports      [2]int   // LO and HI of -port-range, or 0
	interfaces string
	starter    remote.Starter
	limit      time.Duration // of logging in
	secret     [32]byte
	patients   []*patient
}

// doctor runs gompirun doctor with the arguments after that word.
func doctor(args []string, stdout, stderr io.Writer) int {
	c, err := parseDoctor(args)
	if errors.Is(err, cli.ErrHelp) {
		fmt.Fprint(stdout, doctorUsage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "gompirun doctor: %v\n", err)
		return statusFailed
	}
	for _, line := range c.notes {
		fmt.Fprintf(stderr, "gompirun doctor: %s\n", line)
	}
	c.examine()
	defer c.dismiss()
	c.connect()
	advice := advise(c.patients, c.ports)
	writeFindings(stdout, c.patients, advice)
	for _, a := range advice {
		if a.bad {
			return 1
		}
	}
	return 0
}

// parseDoctor reads the command line.
func parseDoctor(args []string) (*checkup, error) {
	set := cli.New("gompirun doctor")
	var list, ports string
	var o options
	c := new(checkup)
	set.StringVar(&o.hostfile, "hostfile", "", "")
	set.Alias("hostfile", "machinefile")
	set.StringVarP(&list, "host", "H", "", "")
	set.StringVar(&ports, "port-range", "", "")
	set.StringVar(&c.interfaces, "iface", "", "")
	o.reachFlags(set)
	rest, err := set.Parse(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("argument %q: want flags only (gompirun doctor -h lists them)", rest[0])
	}
	if ports != "" {
		if c.ports[0], c.ports[1], err = env.ParsePorts(ports); err != nil {
			return nil, fmt.Errorf("-port-range %w", err)
		}
	}
	c.limit = o.limit()
	rand.Read(c.secret[:]) // never fails
	return c, c.choose(&o, list)
}

// choose finds the hosts, as for a job, and what starts their agents.
func (c *checkup) choose(o *options, list string) error {
	o.programs = []program{{hosts: list}}
	source, hosts, programs, err := planInput(o, here(), func(line string) { c.notes = append(c.notes, line) })
	if err != nil {
		return err
	}
	if c.starter, err = o.starter(source); err != nil {
		return err
	}
	c.hosts = hosts
	if list != "" {
		c.hosts = nil
		for _, share := range programs[0].Hosts {
			c.hosts = append(c.hosts, hosts[share.Host])
		}
	}
	return nil
}

// examine starts an agent on every host and has it look around.
func (c *checkup) examine() {
	order := &ctl.Examine{Secret: c.secret, PortLow: c.ports[0], PortHigh: c.ports[1], Interfaces: c.interfaces}
	var all sync.WaitGroup
	for _, h := range c.hosts {
		p := &patient{host: h}
		c.patients = append(c.patients, p)
		all.Go(func() { p.examine(c.starter, c.limit, order) })
	}
	all.Wait()
	for _, p := range c.patients {
		p.reached = make([]*ctl.Reached, len(c.patients))
	}
}

// connect lets each host reach each other, or, where they are very many, those
// that follow it in the list. In one round each sends to one other and hears
// from one.
func (c *checkup) connect() {
	n := len(c.patients)
	for step := 1; step < n && step <= maxRounds; step++ {
		var round sync.WaitGroup
		for i, p := range c.patients {
			k := (i + step) % n
			if other := c.patients[k]; p.trouble == nil && other.reachable() {
				round.Go(func() { p.reach(k, other.findings) })
			}
		}
		round.Wait()
	}
}

// reachable reports whether the host listens, and somewhere.
func (p *patient) reachable() bool {
	return p.trouble == nil && p.findings.Port != 0 && len(p.findings.Addresses) > 0
}

// dismiss ends the agents.
func (c *checkup) dismiss() {
	var all sync.WaitGroup
	for _, p := range c.patients {
		all.Go(p.dismiss)
	}
	all.Wait()
}

// A patient is a host that is examined. One goroutine at a time speaks with its
// agent.
type patient struct {
	host     hostfile.Host
	agent    *remote.Agent // nil if it did not start
	reader   *ctl.Reader
	login    time.Duration // until its agent said hello
	hello    *ctl.Hello
	findings *ctl.Findings
	gpus     *hostGPUs
	skew     time.Duration  // its clock minus ours
	blur     time.Duration  // skew is known up to this
	reached  []*ctl.Reached // by host; nil where it did not try
	trouble  error          // why there are no findings
}

// examine starts an agent and asks it for its findings.
func (p *patient) examine(starter remote.Starter, limit time.Duration, order *ctl.Examine) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("no agent after %v (-start-timeout)", limit))
	defer cancel()
	begun := time.Now()
	if p.agent, p.trouble = starter.Start(ctx, p.host); p.trouble != nil {
		return
	}
	p.reader = ctl.NewReader(p.agent.Out)
	if p.hello, p.trouble = await[*ctl.Hello](p, limit); p.trouble != nil {
		return
	}
	p.login = time.Since(begun)
	if p.hello.Version != ctl.Version {
		p.trouble = fmt.Errorf("its gompirun is version %s, want %s as here", p.hello.Version, ctl.Version)
		return
	}
	asked := time.Now()
	p.say(order)
	if p.findings, p.trouble = await[*ctl.Findings](p, answerTime); p.trouble != nil {
		return
	}
	p.skew, p.blur = skew(asked, time.Now(), p.findings.Received, p.findings.Sent)
	p.say(&ctl.FindGPUs{})
	gpus, err := await[*ctl.GPUs](p, answerTime)
	if err == nil {
		p.gpus, err = readGPUs(gpus)
	}
	p.trouble = err
}

// skew compares two clocks, as NTP does, by the times at which a question and
// its answer left and came. It is exact if both took the same time on their way.
func skew(asked, answered time.Time, received, sent int64) (offset, blur time.Duration) {
	there := time.Duration(received-asked.UnixNano()) + time.Duration(sent-answered.UnixNano())
	travel := answered.Sub(asked) - time.Duration(sent-received)
	return there / 2, max(travel, 0) / 2
}

// reach has the host connect to host k.
func (p *patient) reach(k int, other *ctl.Findings) {
	p.say(&ctl.Reach{Peer: k, Addresses: other.Addresses, Port: other.Port, Limit: reachTime, Send: floodTime})
	r, err := await[*ctl.Reached](p, 2*reachTime+floodTime+answerTime)
	if err != nil {
		p.trouble = err
		return
	}
	p.reached[k] = r
}

// say sends m. An agent that does not take it does not answer either.
func (p *patient) say(m ctl.Message) { p.agent.In.Write(ctl.Append(nil, m)) }

// await returns the agent's next message of a type. If it does not come within
// limit the agent is ended.
func await[M ctl.Message](p *patient, limit time.Duration) (M, error) {
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
			p.agent.In.Close()
			how := p.agent.Wait()
			p.agent = nil
			if banner := strings.TrimSpace(string(p.reader.Banner())); banner != "" {
				how += fmt.Sprintf(", after %.200q", banner)
			}
			return none, fmt.Errorf("its agent %s", how)
		}
	}
}

// dismiss ends the agent.
func (p *patient) dismiss() {
	if p.agent == nil {
		return
	}
	p.agent.In.Close()
	late := time.AfterFunc(answerTime, p.agent.Kill)
	defer late.Stop()
	io.Copy(io.Discard, p.agent.Out) // Wait wants it at its end
	p.agent.Wait()
}
