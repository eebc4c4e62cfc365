package message_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
)

// A deaf transport hears from the launcher alone that a rank is gone. It says at once that the
// ranks it is to reach are silent, and does not close before it has heard of them.
type deaf struct {
	*script
	waits map[world.Rank]bool // for these
	ended []world.Rank
}

func (d *deaf) Send(rank world.Rank, _ *transport.Header, _ mem.Buffer, _ uint64) bool {
	if !d.waits[rank] {
		d.waits[rank] = true
		d.sink.(transport.SilenceSink).Silent(rank)
	}
	return true
}

func (d *deaf) Capabilities() transport.Capabilities { return transport.Capabilities{DeathObserver: d} }

func (d *deaf) Ended(rank world.Rank, err error) {
	d.ended = append(d.ended, rank)
	delete(d.waits, rank)
	d.sink.Lost(rank, err)
}

func (d *deaf) Close(force bool) bool { return force || len(d.waits) == 0 }

// A near transport reaches rank 1 alone.
type near struct{ *script }

func (n *near) Reaches(rank world.Rank) bool { return rank == 1 }

// leaving returns the engine of rank 0 of three, which reaches rank 1 by near and rank 2 by deaf.
func leaving() (e *message.Engine, d *deaf, n *near, boots []boot.Boot) {
	boots = boot.Group(3)
	e = message.New(message.Config{Rank: 0, Size: 3, Host: boots[0].Info().Host, Boot: boots[0],
		Parker: inproc.NewParker(), Yield: func() {}, Collectives: round.New, Eager: message.DefaultEager})
	d, n = &deaf{script: &script{sink: e}, waits: map[world.Rank]bool{}}, &near{&script{sink: e}}
	e.Use(n)
	e.Use(d)
	return e, d, n, boots
}

// A message to a rank that has left unseen was sent eagerly: who then leaves does not wait for it.
func TestLeavingDoesNotWaitForWhoHasLeft(t *testing.T) {
	for _, before := range []bool{true, false} {
		e, d, _, boots := leaving()
		if before {
			boots[2].Goodbye(true)
		}
		ch := e.Open(1, nil)
		if err := ch.Send(t.Context(), 2, 0, mem.Bytes(make([]byte, 1)), false); err != nil {
			t.Fatal(err)
		}
		ch.Close()
		if !before {
			boots[2].Goodbye(true)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := e.Shutdown(ctx); err != nil || len(d.ended) != 1 {
			t.Errorf("it left before: %v: %v, and the transport has heard of %v", before, err, d.ended)
		}
		cancel()
	}
}

// That a rank has left is told to the transport that reaches it, and to no other: what it has sent
// may still be on its way.
func TestWhoHasLeftIsReportedToItsTransport(t *testing.T) {
	e, d, n, boots := leaving()
	ch := e.Open(1, nil)
	n.send(transport.Header{Kind: transport.Eager, Comm: 1, Flags: uint8(mem.U8)})
	boots[1].Goodbye(true)
	boots[2].Inquire(1) // which reaches it over the other transport
	e.Live.HandleEvents()
	if len(d.ended) > 0 {
		t.Errorf("heard of %v by a transport that does not reach it", d.ended)
	}
	if _, err := ch.Recv(t.Context(), 1, 0, mem.Bytes(nil)); err != nil {
		t.Errorf("what it had sent: %v", err)
	}
	boots[2].Goodbye(true)
	boots[1].Inquire(2)
	e.Live.HandleEvents()
	if _, err := ch.Recv(t.Context(), 2, 0, mem.Bytes(nil)); !errors.Is(err, liveness.ErrLeft) || len(d.ended) != 1 {
		t.Errorf("from who has left: %v, heard of %v", err, d.ended)
	}
	ch.Close()
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
