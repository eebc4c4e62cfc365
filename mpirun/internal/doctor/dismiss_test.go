package doctor

import (
	"io"
	"testing"
	"time"

	"gompi/mpirun/internal/remote"
)

// A conn is an agent that has ended.
type conn struct{}

func (conn) Kill()        {}
func (conn) Wait() string { return "is gone" }

// The process between doctor and an agent may have a child that holds its output open.
func TestWhoHoldsTheOutputOfAnAgentIsNotWaitedFor(t *testing.T) {
	_, in := io.Pipe()
	out, _ := io.Pipe()
	p := &host{agent: remote.Connected(in, out, conn{})}
	done := make(chan struct{})
	go func() {
		p.dismiss()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it is waited for")
	}
}
