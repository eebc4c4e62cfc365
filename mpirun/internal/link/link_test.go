package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

// A fakeAgent is the far end of a link.
type fakeAgent struct {
	orders  *io.PipeReader
	reports *io.PipeWriter
	refused error // why it is not started
	killed  chan struct{}
}

// Start implements remote.Starter.
func (a *fakeAgent) Start(context.Context, hostfile.Host) (*remote.Process, error) {
	if a.refused != nil {
		return nil, a.refused
	}
	r, in := io.Pipe()
	out, w := io.Pipe()
	a.orders, a.reports = r, w
	return remote.Connected(in, out, a), nil
}

// Kill implements remote.Conn.
func (a *fakeAgent) Kill() { close(a.killed) }

// Wait implements remote.Conn.
func (a *fakeAgent) Wait() string { return "is gone" }

// next returns the next event, which must come soon.
func next(t *testing.T, events <-chan Event) Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
		return Event{}
	}
}

func TestALinkReportsItsAgentFromStartToEnd(t *testing.T) {
	a := &fakeAgent{killed: make(chan struct{})}
	events, done := make(chan Event), make(chan struct{})
	defer close(done)
	l := Start(context.Background(), a, hostfile.Host{Name: "a"}, 3, events, done)
	if e := next(t, events); e.Host != 3 || e.Started == nil || e.Started.Via != "connection" || e.Started.Here {
		t.Fatalf("%+v, want that the agent has been started", e)
	}
	if l.Received() {
		t.Error("something is heard before the agent speaks")
	}
	go a.reports.Write(ctl.Append([]byte(ctl.Magic), &ctl.Note{Text: "hello"}))
	if m, ok := next(t, events).Message.(*ctl.Note); !ok || m.Text != "hello" || !l.Received() || l.Received() {
		t.Errorf("%+v; want hello, which is heard once", m)
	}
	var want []byte
	for n := range 3 {
		m := &ctl.Signal{Number: n}
		l.Send(m) // not read yet
		want = ctl.Append(want, m)
	}
	l.Flush(time.Millisecond) // in vain
	got := make([]byte, len(want))
	if _, err := io.ReadFull(a.orders, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v; want %x", got, err, want)
	}
	l.Flush(time.Hour)
	l.Kill()
	<-a.killed
	l.Close()
	if _, err := a.orders.Read(got); err != io.EOF {
		t.Errorf("%v, want the end of orders", err)
	}
	a.reports.Close()
	if e := next(t, events); e.Err != io.EOF || l.Wait() != "is gone" {
		t.Errorf("%+v, want the end", e)
	}
}

func TestAnAgentThatCannotBeStarted(t *testing.T) {
	a := &fakeAgent{refused: errors.New("no route to host")}
	events := make(chan Event)
	l := Start(context.Background(), a, hostfile.Host{Name: "a"}, 0, events, nil)
	if e := next(t, events); e.Err != a.refused || e.Started != nil {
		t.Errorf("%+v, want %v", e, a.refused)
	}
	l.Kill() // does nothing
}
