package doctor

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

// A foreignAgent sends a greeting of no agent of this version, and runs until it is killed.
type foreignAgent struct {
	greeting string
	killed   chan struct{}
}

// Start implements remote.Starter.
func (s *foreignAgent) Start(context.Context, hostfile.Host) (*remote.Process, error) {
	orders, in := io.Pipe()
	out, reports := io.Pipe()
	go io.Copy(io.Discard, orders)
	go io.WriteString(reports, s.greeting)
	return remote.Connected(in, out, s), nil
}

// Kill implements remote.Conn.
func (s *foreignAgent) Kill() { close(s.killed) }

// Wait implements remote.Conn.
func (s *foreignAgent) Wait() string {
	<-s.killed
	return "was killed"
}

// The doctor quotes the beginning of the agent's output, and does not wait for an agent that runs
// on.
func TestAnAgentOfAnotherVersionIsReported(t *testing.T) {
	p := host{entry: hostfile.Host{Name: "node1"}}
	s := &foreignAgent{greeting: strings.Replace(ctl.Magic, "agent", "tribe", 1), killed: make(chan struct{})}
	p.examine(s, time.Minute, ctl.Examine{})
	for _, want := range []string{"gompi tribe", "gompi agent", "was killed"} {
		if p.trouble == nil || !strings.Contains(p.trouble.Error(), want) {
			t.Errorf("%v: want %q in it", p.trouble, want)
		}
	}
}
