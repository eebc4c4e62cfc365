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

// A stranger says what no agent of this version does, and continues until it is killed.
type stranger struct {
	says   string
	killed chan struct{}
}

// Start implements remote.Starter.
func (s *stranger) Start(context.Context, hostfile.Host) (*remote.Process, error) {
	orders, in := io.Pipe()
	out, reports := io.Pipe()
	go io.Copy(io.Discard, orders)
	go io.WriteString(reports, s.says)
	return remote.Connected(in, out, s), nil
}

// Kill implements remote.Conn.
func (s *stranger) Kill() { close(s.killed) }

// Wait implements remote.Conn.
func (s *stranger) Wait() string {
	<-s.killed
	return "was killed"
}

// What the agent's output begins with is in the doctor's words, and the doctor does not wait for an
// agent that continues.
func TestAnAgentOfAnotherVersionIsToldOf(t *testing.T) {
	p := host{entry: hostfile.Host{Name: "node1"}}
	s := &stranger{says: strings.Replace(ctl.Magic, "agent", "tribe", 1), killed: make(chan struct{})}
	p.examine(s, time.Minute, &ctl.Examine{})
	for _, want := range []string{"gompi tribe", "gompi agent", "was killed"} {
		if p.trouble == nil || !strings.Contains(p.trouble.Error(), want) {
			t.Errorf("%v: want %q in it", p.trouble, want)
		}
	}
}
