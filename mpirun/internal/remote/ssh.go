package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/monitor"
)

const (
	// atOnce is the most simultaneous logins. Each costs the launcher some 10 ms of a processor and
	// three descriptors.
	atOnce = 64
	// sshd drops connections when too many come at once (MaxStartups). Start then tries again after
	// a growing pause; without retryUnreachable, at most tries times.
	tries      = 5
	firstPause = 200 * time.Millisecond
	longPause  = 5 * time.Second
	// connectTime bounds the time of a host to answer.
	connectTime = 10 * time.Second
)

// An SSH starts agents on other hosts by the user's ssh command, with its configuration. ssh's
// standard input and output are the channel. ssh may not ask for anything, and has no terminal
// that could stop the process.
type SSH struct {
	command          []string // ssh and its arguments
	agent            string   // the command that runs an agent; "" to find or send ours
	retryUnreachable bool     // keep trying hosts that refuse, drop connections or do not resolve
	self             self
	slots            chan struct{}
}

// NewSSH returns an SSH that logs in by command, which takes ssh's arguments. agent, if not
// empty, is the command that runs gompirun on the hosts. Otherwise hosts run the gompirun at this
// one's path, or a copy that is sent. With retryUnreachable, hosts that refuse, drop connections
// or do not resolve are tried again and again, because they may just be booting.
func NewSSH(command []string, agent string, retryUnreachable bool) (*SSH, error) {
	s := &SSH{command: command, agent: agent, retryUnreachable: retryUnreachable, slots: make(chan struct{}, atOnce)}
	var err error
	s.self, err = newSelf()
	return s, err
}

// errOther means that the gompirun on the host is another build.
var errOther = errors.New("it has another gompirun")

// Start implements Starter. It returns when the agent runs.
func (s *SSH) Start(ctx context.Context, h hostfile.Host) (*Process, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("no login was tried: %w", context.Cause(ctx))
	}
	send, pause := false, firstPause
	for try := 1; ; try++ {
		agent, err := s.login(ctx, h, send)
		if err == nil {
			return agent, nil
		}
		if errors.Is(err, errOther) && !send {
			send = true
			continue
		}
		if ctx.Err() != nil || !s.retries(err, try) {
			return nil, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return nil, err
		}
		pause = min(2*pause, longPause)
	}
}

// Relay starts a relay on h, as Start starts an agent.
func (s *SSH) Relay(ctx context.Context, h hostfile.Host) (*Process, error) {
	relay := *s
	relay.self.role = RelayFlag
	return relay.Start(ctx, h)
}

// Ways is the configuration with which a relay starts agents as s does.
type Ways struct {
	Command []string // the argument of NewSSH
	Agent   string
	Retry   bool
	Path    string // gompirun's path on hosts that have it
}

// Ways returns the configuration for relays.
func (s *SSH) Ways() Ways { return Ways{s.command, s.agent, s.retryUnreachable, s.self.path} }

// SSH returns an SSH that starts agents from this host.
func (w *Ways) SSH() (*SSH, error) {
	s, err := NewSSH(w.Command, w.Agent, w.Retry)
	if err == nil {
		s.self.path, s.self.name = w.Path, filepath.Base(w.Path)
	}
	return s, err
}

// Login returns the command that logs in to h from this machine.
func (s *SSH) Login(h hostfile.Host) []string { return login(s.command, h) }

// A refusal is the error of a login command that exited before ctx ended.
type refusal struct {
	text   string
	stderr string // all of standard error
}

func (r *refusal) Error() string { return r.text }

// retries reports whether a failed login may succeed on repetition.
func (s *SSH) retries(err error, try int) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	contains := func(what string) bool { return strings.Contains(r.stderr, what) }
	if isDropped(r.stderr) {
		return s.retryUnreachable || try < tries
	}
	notUpYet := []string{"Could not resolve", "Connection refused", "No route to host", "Connection timed out"}
	return s.retryUnreachable && slices.ContainsFunc(notUpYet, contains)
}

// login runs ssh up to the agent's greeting.
func (s *SSH) login(ctx context.Context, h hostfile.Host, send bool) (*Process, error) {
	argv := s.argv(ctx, h, send)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environment(os.Environ())
	agent, err := s.self.enter(ctx, cmd, filepath.Base(argv[0]))
	if err == nil {
		agent.Login = login(s.command, h)
	}
	return agent, err
}

// enter runs cmd, a login that runs our command on another host, up to the agent's greeting.
func (s self) enter(ctx context.Context, cmd *exec.Cmd, via string) (*Process, error) {
	agent, err := start(cmd, via)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		agent.Kill()
		agent.In.Close() // a process in another session may hold the other ends of both
		agent.Out.Close()
	})
	defer stop()
	greeting, err := s.greet(agent)
	if err == nil && stop() {
		agent.Out = &prefixed{strings.NewReader(greeting), agent.Out}
		return agent, nil
	}
	if err != io.EOF {
		agent.Kill()
	}
	agent.In.Close()
	status, how := agent.wait()
	stderr := agent.stderrEnd()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w%s%s", context.Cause(ctx), lastLines(stderr, ": "),
			lastLines(greeting, "; the host says: "))
	case err != io.EOF:
		return nil, err
	}
	return nil, &refusal{reason(agent.Via, how, status, stderr, greeting), stderr}
}

// greet returns the first line of the agent, or, with an error, other output. Before that, greet
// sends our program on every request: a second request comes if a folder could not be written.
func (s self) greet(agent *Process) (string, error) {
	for sent := 0; ; sent++ {
		greeting, err := readGreeting(agent.Out)
		if err != nil {
			return greeting, err
		}
		after := func(what string) (string, bool) {
			rest, ok := strings.CutPrefix(greeting, what)
			return strings.TrimSpace(rest), ok
		}
		if machine, ok := after(lineMachine); ok {
			return "", fmt.Errorf("its processors are %s, those here %s: want a gompirun built for them, named by -launch-agent", monitor.Plain(machine), s.machine)
		}
		if _, ok := after(lineOther); ok {
			return "", errOther
		}
		if _, ok := after(lineWant); !ok || sent == placesTried {
			return greeting, nil // ctl.Magic; otherwise ctl.Reader returns an error
		}
		s.send(agent.In) // a failure ends the login, which reports the reason
	}
}

// argv returns the command that logs in to h. The user's options come first, because ssh uses the
// first value of an option.
func (s *SSH) argv(ctx context.Context, h hostfile.Host, send bool) []string {
	argv := slices.Clone(s.command)
	if filepath.Base(argv[0]) == "ssh" {
		limit := connectTime
		if end, ok := ctx.Deadline(); ok {
			limit = min(limit, max(time.Until(end), time.Second))
		}
		argv = append(argv, "-x", "-T",
			"-o", "BatchMode=yes", "-o", "NumberOfPasswordPrompts=0",
			"-o", "ConnectTimeout="+strconv.Itoa(int(math.Ceil(limit.Seconds()))),
			"-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4",
			"-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes")
	}
	return append(login(argv, h), s.self.command(s.agent, send))
}

// environment returns the variables for ssh: without settings for the user's programs that may
// break ssh, and with a ban on password dialogs.
func environment(vars []string) []string {
	vars = slices.DeleteFunc(vars, func(kv string) bool {
		return strings.HasPrefix(kv, "LD_") || strings.HasPrefix(kv, "SSH_ASKPASS")
	})
	return append(vars, "SSH_ASKPASS_REQUIRE=never")
}

// prefixed is a stream whose beginning has been read already.
type prefixed struct {
	head io.Reader
	io.ReadCloser
}

func (p *prefixed) Read(b []byte) (int, error) {
	if n, err := p.head.Read(b); err == nil {
		return n, nil
	}
	return p.ReadCloser.Read(b)
}
