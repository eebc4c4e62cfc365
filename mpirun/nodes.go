package mpirun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/job"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/rendezvous"
	"gompi/mpirun/internal/stdio"
)

// joinTime bounds the nodes' wait for each other without -start-timeout: users may start them by
// hand, in turn.
const joinTime = 10 * time.Minute

// errNoToken explains how to make a token.
var errNoToken = errors.New("nodes that are started one by one know each other by a token, and there is none: make one with\n" +
	"    head -c 32 /dev/urandom | base64 > token; chmod 600 token\n" +
	"copy it to each node, and start each gompirun with " + env.Token + "=$(cat token)")

// readToken returns the token in the environment.
func readToken() ([]byte, error) {
	value := os.Getenv(env.Token)
	if value == "" {
		return nil, errNoToken
	}
	token, err := rendezvous.CheckToken([]byte(value))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", env.Token, err)
	}
	return token, nil
}

// ownOffer returns this node's offer: its resources and its program.
func ownOffer(spec *cmdline.Spec) *rendezvous.Offer {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	count := spec.PerHost
	if !count.Given() {
		count.N = spec.Policy.PerNode
	}
	ranks := ""
	if count.Given() {
		ranks = count.String()
	}
	isToken := func(kv string) bool { return strings.HasPrefix(kv, env.Token+"=") }
	return &rendezvous.Offer{
		Version: ctl.Version, JobName: spec.RunID, Least: spec.Nodes.Least, Most: spec.Nodes.Most,
		Node: spec.Rendezvous.NodeRank, Host: host,
		Ranks: ranks, Program: job.WireProgram(spec.Programs[0]), Environ: slices.DeleteFunc(os.Environ(), isToken),
	}
}

// runRendezvous joins this node with the others. Node 0 runs the job, the others run agents for
// node 0. The result is the exit status.
func runRendezvous(spec *cmdline.Spec) int {
	status, err := tryToMeet(spec)
	if err != nil {
		fmt.Fprintf(stdio.Stderr, "gompirun: %v\n", err)
	}
	return status
}

func tryToMeet(spec *cmdline.Spec) (int, error) {
	token, err := readToken()
	if err != nil {
		return statusFailed, err
	}
	status, limit := statusFailed, joinTime
	if t := spec.Reach.StartTimeout; t > 0 {
		limit = t
	}
	if spec.Timeout > 0 && spec.Timeout < limit {
		status, limit = statusTimeout, spec.Timeout
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), limit,
		fmt.Errorf("not all nodes are there after %v", limit))
	defer stop()
	log := func(line string) {
		if !spec.Quiet {
			fmt.Fprintf(stdio.Stderr, "gompirun: %s\n", line)
		}
	}
	own, place := ownOffer(spec), spec.RendezvousEndpoint()
	host := &rendezvous.Server{Own: own, Token: token, Log: log, LastCall: spec.Rendezvous.LastCall,
		Beat: spec.Heartbeat}
	isHost, err := listen(host, place)
	if err != nil {
		return statusFailed, err
	}
	if !isHost {
		return visit(ctx, spec, &rendezvous.Client{Own: own, Token: token, Log: log}, status)
	}
	defer host.Close()
	nodes, err := host.Gather(ctx)
	if err != nil {
		return status, err
	}
	return newJoinedNodes(own, nodes).launch(*spec, place), nil
}

// listen reports whether this is node 0, and then listens. Without -node-rank, node 0 is the
// first node on the host of the endpoint.
func listen(h *rendezvous.Server, place string) (bool, error) {
	name, port, err := net.SplitHostPort(place)
	if err != nil {
		return false, fmt.Errorf("-rdzv-endpoint %q: want host:port", place)
	}
	if h.Own.Node > 0 || h.Own.Node < 0 && !livesHere(name) {
		return false, nil
	}
	address := ":" + port // on all addresses: other nodes may use another name or address
	if ip, err := netip.ParseAddr(name); name == "localhost" || err == nil && ip.IsLoopback() {
		address = place
	}
	err = h.Listen(address)
	if h.Own.Node < 0 && errors.Is(err, syscall.EADDRINUSE) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("node 0 cannot listen: %w", err)
	}
	return true, nil
}

// livesHere reports whether a name means this machine, by its own files or a name server.
func livesHere(name string) bool {
	if remote.IsLocal(name) {
		return true
	}
	addrs, err := net.LookupHost(name)
	return err == nil && slices.ContainsFunc(addrs, remote.IsLocal)
}

// joinedNodes are the nodes of a job that were started one by one, by name. The first is this
// node.
type joinedNodes struct {
	names  []string
	nodes  map[string]*rendezvous.Node // without node 0
	offers map[string]*rendezvous.Offer
}

// newJoinedNodes names the nodes. Several nodes on one machine have one host name.
func newJoinedNodes(own *rendezvous.Offer, nodes []*rendezvous.Node) *joinedNodes {
	m := &joinedNodes{names: []string{own.Host}, nodes: map[string]*rendezvous.Node{},
		offers: map[string]*rendezvous.Offer{own.Host: own}}
	for _, n := range nodes {
		name := n.Offer.Host
		if m.offers[name] != nil {
			name = fmt.Sprintf("%s(%d)", name, n.Offer.Node)
		}
		m.names = append(m.names, name)
		m.nodes[name], m.offers[name] = n, n.Offer
	}
	return m
}

// launch runs the job and notifies the other nodes of its end.
func (m *joinedNodes) launch(spec cmdline.Spec, place string) int {
	spec.Policy.PerNode = 0 // each node has stated its number of ranks
	spec.Master.Port = 0    // the port was the rendezvous's
	if spec.Master.Addr == "" && len(m.names) > 1 {
		spec.Master.Addr = m.nodes[m.names[1]].Address()
	}
	w := newSystem(m.notifySignals, m.pause)
	j := job.New(&spec, w)
	j.Source = "nodes that have met at " + place
	j.Nodes = map[string]*job.Node{}
	for _, name := range m.names {
		j.Hosts = append(j.Hosts, hostfile.Host{Name: name})
		o := m.offers[name]
		j.Nodes[name] = &job.Node{Environ: o.Environ, Program: o.Program, Ranks: o.Ranks}
	}
	p := spec.Programs[0]
	j.Programs = []plan.Program{{Name: p.Name(), NP: p.NP}}
	status, last := runToTheEnd(j, w, m, 0)
	for _, n := range m.nodes {
		n.Finish(rendezvous.End{Status: status, Text: last})
	}
	return status
}

// notifySignals delivers signals to other nodes together with this process's.
func (m *joinedNodes) notifySignals(signals chan<- os.Signal) {
	for _, n := range m.nodes {
		n.NotifySignals(signals)
	}
}

// pause notifies the other nodes that this process is about to be stopped.
func (m *joinedNodes) pause() (resume func()) {
	var resumes []func()
	for _, n := range m.nodes {
		resumes = append(resumes, n.Pause())
	}
	return func() {
		for _, resume := range resumes {
			resume()
		}
	}
}

// Start implements remote.Starter.
func (m *joinedNodes) Start(ctx context.Context, h hostfile.Host) (*remote.Process, error) {
	n := m.nodes[h.Name]
	if n == nil {
		return remote.Local{Stderr: os.Stderr, Input: heritage()}.Start(ctx, h)
	}
	return n.Start()
}

// visit joins node 0 and runs its agents here until the job is over.
func visit(ctx context.Context, spec *cmdline.Spec, g *rendezvous.Client, tooLate int) (status int, err error) {
	if err := proc.Adopt(); err != nil {
		return statusFailed, err
	}
	defer proc.Reap()
	before, place := proc.Children(os.Getpid()), spec.RendezvousEndpoint()
	var last *remote.Process
	g.Run = func() (*remote.Process, error) {
		a, err := remote.Local{Stderr: os.Stderr}.Start(ctx, hostfile.Host{Name: g.Own.Host})
		if err == nil {
			last = a
		}
		return a, err
	}
	if err := g.Join(ctx, place); err != nil {
		return cmp.Or(map[bool]int{true: tooLate}[ctx.Err() != nil], statusFailed), err
	}
	caught := catch()
	defer func() { caught.release(status) }()
	go func() { // until the process ends
		interrupts := 0
		for s := range caught.signals {
			if s == syscall.SIGINT {
				interrupts++
			}
			switch sig, ok := s.(syscall.Signal); {
			case interrupts >= 3:
				g.Leave()
			case slices.Contains(endJob[:], s):
				g.Order(sig)
			case ok && sig != syscall.SIGTSTP:
				g.Signal(sig)
			}
		}
	}()
	end, err := g.Serve()
	if err != nil || end.Status != 0 || !spec.KeepChildren {
		proc.Sweep(func(pid int) bool { return slices.Contains(before, pid) || last != nil && pid == last.PID() })
	}
	if u := (*rendezvous.Unanswered)(nil); errors.As(err, &u) {
		return 128 + int(u.Signal), fmt.Errorf("node 0 at %s does not answer, and the ranks of this node are ended: %w", place, err)
	}
	if err != nil {
		return statusFailed, fmt.Errorf("node 0 at %s is lost, and the ranks of this node with it: %w", place, err)
	}
	fmt.Fprint(stdio.Stderr, end.Text)
	return end.Status, nil
}
