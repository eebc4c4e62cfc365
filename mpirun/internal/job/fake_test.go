package job

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/hostfile"
	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/link"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/plan"
)

// A fakeAgent is an agent with a script, which is called with each message of the job, with nil
// first, in one goroutine.
type fakeAgent struct {
	number int
	name   string
	run    int // of the job, from 0
	script func(l *fakeAgent, m ctl.Message)
	emit   func(link.Event)
	agent  link.Started

	mu     sync.Mutex
	inbox  []ctl.Message
	wake   chan struct{}
	over   bool // the channel is closed, or the agent gone
	silent bool // nothing is heard of it
	ended  bool // its rank has
	pinged bool
	sent   []ctl.Message
}

// serve is the agent's life.
func (l *fakeAgent) serve() {
	l.emit(link.Event{Host: l.number, Started: &l.agent})
	l.script(l, nil)
	for range l.wake {
		l.mu.Lock()
		inbox, over := l.inbox, l.over
		l.inbox = nil
		l.mu.Unlock()
		for _, m := range inbox {
			l.script(l, m)
		}
		if over {
			l.emit(link.Event{Host: l.number, Err: io.EOF})
			return
		}
	}
}

// send sends messages to the job.
func (l *fakeAgent) send(messages ...ctl.Message) {
	for _, m := range messages {
		l.mu.Lock()
		l.pinged = true
		l.mu.Unlock()
		l.emit(link.Event{Host: l.number, Message: m})
	}
}

// Send implements Agent.
func (l *fakeAgent) Send(m ctl.Message) {
	l.update(func() { l.inbox, l.sent = append(l.inbox, m), append(l.sent, m) })
}

// Close implements Agent.
func (l *fakeAgent) Close() { l.update(func() { l.over = true }) }

// Continue implements Agent.
func (l *fakeAgent) Continue() {}

// Kill implements Agent.
func (l *fakeAgent) Kill() { l.Close() }

// update changes something of the agent, which then looks.
func (l *fakeAgent) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Received implements Agent.
func (l *fakeAgent) Received() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.pinged = false }()
	return l.pinged
}

// Flush implements Agent.
func (l *fakeAgent) Flush(time.Duration) {}

// Wait implements Agent.
func (l *fakeAgent) Wait() string { return "exited with status 0 (pid 1)" }

// got returns the messages of one type that an agent has been sent.
func got[M ctl.Message](l *fakeAgent) (all []M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.sent {
		if m, ok := m.(M); ok {
			all = append(all, m)
		}
	}
	return all
}

// passed returns the messages of one type that an agent has been sent for its ranks.
func passed[M wire.Message](l *fakeAgent) (all []M) {
	var frames [][]byte
	for _, m := range got[*ctl.Gathered](l) {
		frames = append(frames, m.Frame)
	}
	for _, m := range got[*ctl.ToRanks](l) {
		frames = append(frames, m.Frame)
	}
	for _, frame := range frames {
		m, err := wire.Parse(frame)
		if err != nil {
			panic(err)
		}
		if m, ok := m.(M); ok {
			all = append(all, m)
		}
	}
	return all
}

// fromRank is a message of a rank, now.
func fromRank(rank int, m wire.Message) *ctl.FromRank {
	return &ctl.FromRank{Rank: rank, Time: time.Now().UnixNano(), Frame: wire.Append(nil, m)}
}

// A testJob is a job on fake agents, in this process alone.
type testJob struct {
	*testing.T
	job     *Job
	signals chan os.Signal
	asks    chan monitor.Question
	links   [][]*fakeAgent // by run and host
	script  func(l *fakeAgent, m ctl.Message)
	agent   link.Started // each
	kept    string       // what keeps its process from running
	swept   int          // times that what lost agents have left was killed
	output  string       // the name of a file
}

// newTestJob returns a job that spec describes, by default of a rank on each of two hosts. Agents
// follow script.
func newTestJob(t *testing.T, spec *cmdline.Spec, script func(l *fakeAgent, m ctl.Message)) *testJob {
	k := &testJob{T: t, script: script, agent: link.Started{Via: "fake"}, signals: make(chan os.Signal, 8),
		asks: make(chan monitor.Question), output: filepath.Join(t.TempDir(), "output")}
	f, err := os.Create(k.output)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if spec.Programs == nil {
		spec.Programs = []cmdline.Program{{Argv: []string{"prog"}, NP: 2}}
	}
	spec.Stdin.Rank = -1
	world := &System{
		Stdout: f, Stderr: f,
		Connect: func(_ context.Context, hosts []hostfile.Host, events chan<- link.Event,
			done <-chan struct{}) ([]inventory.Agent, func([]int, ctl.Message)) {
			run := len(k.links)
			k.links = append(k.links, nil)
			var agents []inventory.Agent
			for number, h := range hosts {
				l := &fakeAgent{number: number, name: h.Name, run: run, script: k.script, agent: k.agent,
					wake: make(chan struct{}, 1)}
				l.emit = func(e link.Event) {
					select {
					case events <- e:
					case <-done:
					}
				}
				k.links[run] = append(k.links[run], l)
				agents = append(agents, l)
				go l.serve() // until it is closed
			}
			return agents, func(to []int, m ctl.Message) {
				for _, n := range to {
					agents[n].Send(m)
				}
			}
		},
		Signals:   func() <-chan os.Signal { return k.signals },
		Questions: k.asks,
		Sweep:     func([]int, []int) { k.swept++ },
		Process:   func(int) Process { return k },
	}
	k.job = New(spec, world)
	k.job.send = func(to []int, m ctl.Message) { // of hosts that a test sets itself
		for _, n := range to {
			k.job.hosts[n].Send(m)
		}
	}
	for _, p := range spec.Programs {
		k.job.Programs = append(k.job.Programs, plan.Program{Name: p.Name(), NP: p.NP})
	}
	k.job.Hosts = []hostfile.Host{{Name: "a", Slots: 1}, {Name: "b", Slots: 1}}
	return k
}

// Look implements Process.
func (k *testJob) Look() string { return k.kept }

// wants runs the job and checks its exit status and its printed lines: lines that begin like
// lines, in this order, and no more.
func (k *testJob) wants(status int, lines ...string) {
	k.Helper()
	got, last := k.job.Run()
	data, err := os.ReadFile(k.output)
	if err != nil {
		k.Fatal(err)
	}
	printed := slices.DeleteFunc(strings.Split(string(data), "\n"), func(s string) bool { return s == "" })
	begins := func(line, want string) bool { return strings.HasPrefix(line, want) }
	if got != status || !slices.EqualFunc(printed, lines, begins) {
		k.Errorf("status %d, want %d; said\n%q, want\n%q", got, status, printed, lines)
	}
	if status == 0 != (last == "") || !strings.HasSuffix(string(data), last) {
		k.Errorf("status %d, and the last words are %q", status, last)
	}
}

// hello is an agent's first message.
var hello = &ctl.Hello{Version: ctl.Version, Host: "vm", Cores: [][]int{{0}, {1}}, Port: 7}

// obedient is the script of an agent whose ranks start, meet the others and then do as then does.
// The order to end kills them. All their knowledge is in l.
func obedient(then func(l *fakeAgent, rank int)) func(l *fakeAgent, m ctl.Message) {
	return func(l *fakeAgent, m ctl.Message) {
		switch m := m.(type) {
		case nil:
			own := *hello
			own.Machine = l.name
			l.send(&own)
		case *ctl.Launch:
			cards := &ctl.Cards{}
			for _, r := range m.Ranks {
				cards.Data = append(cards.Data, fmt.Appendf(nil, "card %d", r.Rank))
			}
			l.send(&ctl.Started{PIDs: []int{100 + l.number}}, cards)
		case *ctl.Gathered:
			then(l, l.rank())
		case *ctl.Ping:
			if !l.silent {
				l.send(&ctl.Pong{Sent: m.Sent, Now: m.Sent})
			}
		case *ctl.Terminate:
			if !l.silent {
				l.exits(ctl.Exited{Signal: 15})
			}
		}
	}
}

// rank returns the first rank of an agent that has been told to start some.
func (l *fakeAgent) rank() int { return got[*ctl.Launch](l)[0].Ranks[0].Rank }

// exits ends the rank, once, of which m says how, and with it the agent's work.
func (l *fakeAgent) exits(m ctl.Exited) { l.crashes(m, "") }

// crashes is exits with the frames of a crash.
func (l *fakeAgent) crashes(m ctl.Exited, frames string) {
	if l.ended {
		return
	}
	l.ended = true
	m.Rank, m.PID, m.Time = l.rank(), 100+l.number, time.Now().UnixNano()
	l.send(&m, &ctl.Drained{Rank: m.Rank, Frames: frames})
}

// well ends a rank of gompi well.
func well(l *fakeAgent, _ int) { l.exits(ctl.Exited{Joined: true, Closed: true}) }
