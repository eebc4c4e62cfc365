package rendezvous

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

const limit = time.Minute

var token = []byte("0123456789abcdef")

// logLines collects lines for the user.
type logLines struct {
	mu    sync.Mutex
	lines []string
	news  chan struct{} // has one when a line came since it was last empty
}

func (s *logLines) add(line string) {
	s.mu.Lock()
	s.lines = append(s.lines, line)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// awaits reports whether lines before ctx's end contain text. One goroutine may wait.
func (s *logLines) awaits(ctx context.Context, text string) bool {
	for !strings.Contains(s.text(), text) {
		select {
		case <-s.news:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (s *logLines) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func offer(node, least, most int) *Offer {
	return &Offer{Version: "1", JobName: "job", Least: least, Most: most, Node: node, Host: fmt.Sprintf("h%d", node),
		Ranks: "2", Program: ctl.Program{Argv: []string{"prog", ""}, Env: []string{"A=1"}, Wdir: "/w"},
		Environ: []string{"PATH=/bin"}}
}

func host(t *testing.T, least, most int) (*Server, *logLines) {
	t.Helper()
	s := &logLines{news: make(chan struct{}, 1)}
	h := &Server{Own: offer(0, least, most), Token: token, Log: s.add, LastCall: limit}
	if err := h.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.listener.Close() })
	return h, s
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// upper starts an agent that writes each line of its input in capitals.
func upper() (*remote.Process, error) {
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			fmt.Fprintln(out, strings.ToUpper(lines.Text()))
		}
		out.Close()
	}()
	return remote.Connected(stdin, stdout, well{in}), nil
}

// well is the Conn of an agent that is always well.
type well struct{ in io.Closer }

func (w well) Kill()        { w.in.Close() }
func (w well) Wait() string { return "is\x1bwell" }

type ending struct {
	end *End
	err error
}

// joinNode brings a node to h; how it ends comes through the channel.
func joinNode(ctx context.Context, h *Server, own *Offer, token []byte) (*Client, <-chan ending) {
	g := &Client{Own: own, Token: token, Log: func(string) {}, Run: upper}
	ended := make(chan ending, 1)
	go func() {
		if err := g.Join(ctx, h.listener.Addr().String()); err != nil {
			ended <- ending{nil, err}
			return
		}
		end, err := g.Serve()
		ended <- ending{end, err}
	}()
	return g, ended
}

// gather has h gather its nodes, which come through the channel.
func gather(ctx context.Context, h *Server) <-chan []*Node {
	gathered := make(chan []*Node, 1)
	go func() {
		nodes, _ := h.Gather(ctx)
		gathered <- nodes
	}()
	return gathered
}

// wellEnded finishes a node, which must say then that all is well.
func wellEnded(t *testing.T, n *Node, ended <-chan ending) {
	t.Helper()
	n.Finish(End{})
	if e := <-ended; e.err != nil {
		t.Error(e.err)
	}
}

func TestNodesMeetAndRunAgentAfterAgent(t *testing.T) {
	ctx := deadline(t)
	h, _ := host(t, 3, 3)
	_, second := joinNode(ctx, h, offer(2, 3, 3), token)
	_, any := joinNode(ctx, h, offer(-1, 3, 3), token)
	nodes, err := h.Gather(ctx)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%d nodes, %v; want 2", len(nodes), err)
	}
	if nodes[0].Offer.Node != 1 || nodes[1].Offer.Node != 2 || nodes[0].Address() != "127.0.0.1" {
		t.Errorf("nodes %+v and %+v, reached from %s; want 1 and 2 in order", nodes[0].Offer, nodes[1].Offer,
			nodes[0].Address())
	}
	for range 2 {
		for _, n := range nodes {
			a, err := n.Start()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(a.In, "hello %d\n", n.Offer.Node)
			a.In.Close()
			if out, err := io.ReadAll(a.Out); err != nil || string(out) != fmt.Sprintf("HELLO %d\n", n.Offer.Node) {
				t.Errorf("the agent of node %d said %q, %v", n.Offer.Node, out, err)
			}
			if how := a.Wait(); how != "is?well" {
				t.Errorf("the agent of node %d %s", n.Offer.Node, how)
			}
			a.Kill() // changes nothing
		}
	}
	for _, n := range nodes {
		n.Finish(End{7, "the end"})
	}
	for number, c := range map[int]<-chan ending{1: any, 2: second} {
		if e := <-c; e.err != nil || *e.end != (End{7, "the end"}) {
			t.Errorf("node %d ended as %+v, want status 7", number, e)
		}
	}
}

// TestTheManInTheMiddleGetsNowhere puts a relay between the two that speaks TLS with both and
// forwards their messages.
func TestTheManInTheMiddleGetsNowhere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	go func() {
		victim, err := relay.Accept()
		if err != nil {
			return
		}
		cert, err := certificate()
		if err != nil {
			return
		}
		from := tls.Server(victim, &tls.Config{Certificates: []tls.Certificate{cert}})
		to, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		go func() {
			io.Copy(from, to)
			from.Close()
		}()
		io.Copy(to, from)
		to.Close()
	}()
	refused := make(chan error, 1)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			_, err = secure(c, token, true)
		}
		refused <- err
	}()
	c, err := net.Dial("tcp", relay.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secure(c, token, false); err == nil {
		t.Error("the client believes the man in the middle")
	}
	if err := <-refused; !errors.Is(err, errToken) {
		t.Errorf("the server says %v, want that the token is another", err)
	}
}

func TestWhatDoesNotFitIsRefusedWithTheReason(t *testing.T) {
	ctx := deadline(t)
	h, output := host(t, 2, 3)
	gathered := gather(ctx, h)
	for want, change := range map[string]func(*Offer){
		"version 2?[2J":         func(o *Offer) { o.Version = "2\x1b[2J" },
		`-rdzv-id is "other"`:   func(o *Offer) { o.JobName = "other" },
		"-nnodes is 2:2 here":   func(o *Offer) { o.Most = 2 },
		"-node-rank 3: want":    func(o *Offer) { o.Node = 3 },
		"-node-rank 0: want on": func(o *Offer) { o.Node = 0 },
	} {
		o := offer(1, 2, 3)
		o.Host = "\x1bh"
		change(o)
		_, refused := joinNode(ctx, h, o, token)
		if e := <-refused; !errors.Is(e.err, errRefused) || !strings.Contains(e.err.Error(), want) {
			t.Errorf("refused with %v, want %s", e.err, want)
		}
		if !output.awaits(ctx, "was refused (?h): ") {
			t.Errorf("%q: want the refusal of host ?h", output.text())
		}
	}
	_, first := joinNode(ctx, h, offer(1, 2, 3), token)
	_, second := joinNode(ctx, h, offer(1, 2, 3), token)
	var e ending
	select {
	case e = <-first:
	case e = <-second:
	}
	if !errors.Is(e.err, errRefused) || !strings.Contains(e.err.Error(), "node 1 is h1 already") {
		t.Errorf("of two nodes 1 one is told %v", e.err)
	}
	_, last := joinNode(ctx, h, offer(2, 2, 3), token)
	nodes := <-gathered
	if len(nodes) != 2 {
		t.Fatalf("%d nodes, want 2", len(nodes))
	}
	nodes[1].Finish(End{})
	if e := <-last; e.err != nil || nodes[1].Offer.Node != 2 {
		t.Errorf("node 2: %+v", e)
	}
	nodes[0].Finish(End{})
}

func TestWaitingInVainNamesWhoIsMissing(t *testing.T) {
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 200*time.Millisecond, late)
	defer cancel()
	h, _ := host(t, 4, 4)
	_, waiting := joinNode(deadline(t), h, offer(2, 4, 4), token)
	_, err := h.Gather(ctx)
	if !errors.Is(err, late) || !strings.Contains(err.Error(), "node 1, ") {
		t.Errorf("waited in vain: %v, want too late and node 1 among the missing", err)
	}
	if strings.Contains(err.Error(), "1, 3") {
		if e := <-waiting; !errors.Is(e.err, errRefused) {
			t.Errorf("the node that was there is told %+v", e)
		}
	}
	h.Close()
	g := &Client{Own: offer(1, 2, 2), Token: token, Log: func(string) {}, Run: upper}
	ctx, cancel = context.WithTimeoutCause(context.Background(), 100*time.Millisecond, late)
	defer cancel()
	if err := g.Join(ctx, h.listener.Addr().String()); !errors.Is(err, late) {
		t.Errorf("a node without node 0: %v", err)
	}
}

func TestANodeThatIsLostEndsItsAgent(t *testing.T) {
	ctx := deadline(t)
	h, _ := host(t, 2, 2)
	g, ended := joinNode(ctx, h, offer(1, 2, 2), token)
	nodes, err := h.Gather(ctx)
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	nodes[0].NotifySignals(signals)
	a, err := nodes[0].Start()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(a.In, "a")
	if line, err := bufio.NewReader(a.Out).ReadString('\n'); err != nil || line != "A\n" {
		t.Fatalf("the agent said %q, %v", line, err)
	}
	g.Signal(syscall.SIGUSR1)
	if s := <-signals; s != syscall.SIGUSR1 {
		t.Errorf("signal %v has come, want USR1", s)
	}
	g.conn.close()
	if how := a.Wait(); !strings.HasPrefix(how, "is lost: ") {
		t.Errorf("the agent of a lost node %s", how)
	}
	if e := <-ended; e.err == nil {
		t.Errorf("the node has not noticed: %+v", e)
	}
	if _, err := nodes[0].Start(); err == nil {
		t.Error("an agent was started on a lost node")
	}
}

func TestANodeThatLeavesEarlyIsNotCounted(t *testing.T) {
	ctx := deadline(t)
	h, output := host(t, 3, 3)
	gathered := gather(ctx, h)
	leaving, leave := context.WithCancel(ctx)
	_, first := joinNode(leaving, h, offer(1, 3, 3), token)
	_, second := joinNode(leaving, h, offer(1, 3, 3), token)
	select { // the other is counted now
	case <-first:
	case <-second:
	}
	leave()
	if !output.awaits(ctx, "h1 has left the rendezvous") {
		t.Fatalf("node 0 said %q, nothing of the node that has left", output.text())
	}
	_, one := joinNode(ctx, h, offer(1, 3, 3), token)
	_, two := joinNode(ctx, h, offer(2, 3, 3), token)
	nodes := <-gathered
	if len(nodes) != 2 {
		t.Fatalf("%d nodes, want 2; said %s", len(nodes), output.text())
	}
	for _, n := range nodes {
		n.Finish(End{})
	}
	for _, c := range []<-chan ending{one, two} {
		if e := <-c; e.err != nil {
			t.Error(e.err)
		}
	}
}

// TestANodeGivesUpASilentNode0 has node 0 live, pause, and then fall silent
// without a word. An order that was under way when it paused is no sign of life.
func TestANodeGivesUpASilentNode0(t *testing.T) {
	ctx := deadline(t)
	h, _ := host(t, 2, 2)
	h.Beat = 100 * time.Millisecond
	_, ended := joinNode(ctx, h, offer(1, 2, 2), token)
	nodes, err := h.Gather(ctx)
	if err != nil {
		t.Fatal(err)
	}
	resume := nodes[0].Pause()
	a, err := nodes[0].Start()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-ended:
		t.Fatalf("a node gave up node 0, which had paused: %+v", e)
	case <-time.After(2 * missedBeats * h.Beat):
	}
	resume()
	nodes[0].beating.Lock()
	defer nodes[0].beating.Unlock()
	if e := <-ended; e.err == nil || !strings.Contains(e.err.Error(), "nothing heard from it for 300ms") {
		t.Errorf("the node ended with %v, want that nothing was heard", e.err)
	}
	a.Wait() // the node has ended it
}

func TestTokensAreLong(t *testing.T) {
	for text, want := range map[string]bool{"": false, "short\n": false, "               x": false,
		" 0123456789abcdef\n": true} {
		got, err := CheckToken([]byte(text))
		if (err == nil) != want || want && string(got) != strings.TrimSpace(text) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range []message{offer(-1, 2, 3), &welcome{time.Second}, &refused{"why"}, &agentData{[]byte("data")},
		&agentEnded{"how"}, &signalled{9}, &End{7, "end"}} {
		frame := protocol.Append(nil, m)
		f.Add(frame[4], frame[5:])
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		m, err := protocol.Parse(kind, body)
		if err != nil {
			return
		}
		frame := protocol.Append(nil, m)
		if again, err := protocol.Parse(frame[4], frame[5:]); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v reads back as %+v, %v", m, again, err)
		}
		if o, ok := m.(*Offer); ok {
			refusal(offer(0, 2, 3), o)
		}
	})
}

func TestNodesComeAfterAnAcceptError(t *testing.T) {
	ctx := deadline(t)
	h, output := host(t, 2, 2)
	flaky := &stress.Exhausted{Listener: h.listener}
	flaky.Left.Store(2)
	h.listener = flaky
	_, node := joinNode(ctx, h, offer(1, 2, 2), token)
	nodes, err := h.Gather(ctx)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v; want 1", len(nodes), err)
	}
	wellEnded(t, nodes[0], node)
	if !output.awaits(ctx, "too many open files") {
		t.Errorf("node 0 said %q, nothing about the error", output.text())
	}
}

// Strangers neither fill the screen nor keep a node out.
func TestUnprovenConnectionsAreBounded(t *testing.T) {
	ctx := deadline(t)
	h, output := host(t, 2, 2)
	gathered := gather(ctx, h)
	at := h.listener.Addr().String()
	const silent, rude = 200, 200
	for range silent {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for range rude {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
		c.SetDeadline(time.Now().Add(limit))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a stranger is kept waiting behind silent ones")
		}
		c.Close()
	}
	_, right := joinNode(ctx, h, offer(1, 2, 2), token)
	nodes := <-gathered
	if len(nodes) != 1 {
		t.Fatalf("%d nodes, want 1", len(nodes))
	}
	wellEnded(t, nodes[0], right)
	if n := strings.Count(output.text(), "came to the rendezvous"); n < 1 || n > 12 {
		t.Errorf("%d lines about %d strangers, want one each for the first and then fewer and fewer:\n%s", n,
			silent+rude, output.text())
	}
	if want := ": it was turned away, 4 so far (the next line of this kind comes at 8)"; !output.awaits(ctx, want) {
		t.Errorf("want a line with %q:\n%s", want, output.text())
	}
}
