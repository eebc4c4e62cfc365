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

// A foreignAgent says what no agent of this version does, and continues until it is killed.
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

// What the agent's output begins with is in the doctor's words, and the doctor does not wait for an
// agent that continues.
func TestAnAgentOfAnotherVersionIsReported(t *testing.T) {
	p := host{entry: hostfile.Host{Name: "node1"}}
	s := &foreignAgent{greeting: strings.Replace(ctl.Magic, "agent", "tribe", 1), killed: make(chan struct{})}
	p.examine(s, time.Minute, &ctl.Examine{})
	for _, want := range []string{"gompi tribe", "gompi agent", "was killed"} {
		if p.trouble == nil || !strings.Contains(p.trouble.Error(), want) {
			t.Errorf("%v: want %q in it", p.trouble, want)
		}
	}
}
