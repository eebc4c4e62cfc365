package link

import (
	"bytes"
	"cmp"
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
	refused error  // why it is not started
	via     string // how it is reached, "" for a connection
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
	p := remote.Connected(in, out, a)
	p.Via = cmp.Or(a.via, p.Via)
	return p, nil
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

// An agent behind srun waits for the end of its channel once it has sent its last message. Others
// end by themselves, and theirs stays open until the job closes it.
func TestTheLastMessageClosesTheChannelThroughSrun(t *testing.T) {
	for _, via := range []string{remote.ViaSrun, "ssh"} {
		a := &fakeAgent{via: via, killed: make(chan struct{})}
		events, done := make(chan Event), make(chan struct{})
		l := Start(context.Background(), a, hostfile.Host{Name: "a"}, 0, events, done)
		if e := next(t, events); e.Started == nil || e.Started.Srun != (via == remote.ViaSrun) {
			t.Errorf("%s: %+v", via, e)
		}
		go a.reports.Write(ctl.Append([]byte(ctl.Magic), &ctl.Drained{}))
		if _, ok := next(t, events).Message.(*ctl.Drained); !ok {
			t.Errorf("%s: no last message", via)
		}
		want := ctl.Append(nil, &ctl.Credit{Bytes: 1})
		l.Send(&ctl.Credit{Bytes: 1})
		if via == remote.ViaSrun {
			want = nil
		} else {
			go func() { l.Flush(time.Hour); l.Close() }()
		}
		if got, err := io.ReadAll(a.orders); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v; want %x and the end of orders", via, got, err, want)
		}
		close(done)
		a.reports.Close()
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
