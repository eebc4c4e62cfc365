package message_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A flood is a transport whose peer always has sent something, but not what is waited for.
// It ends a context in the midst of that, and counts for how long it is polled then.
type flood struct {
	*script
	polls  int
	cancel context.CancelFunc
}

const (
	floodBefore = 1000 // polls until the context ends
	floodAfter  = 500  // and then, before whoever polls has to have noticed
)

func (f *flood) Poll(world.Rank) int {
	switch f.polls++; {
	case f.polls == floodBefore:
		f.cancel()
	case f.polls > floodBefore+floodAfter:
		return 0 // so that the test ends
	}
	f.sink.Arrive(1, &transport.Header{Kind: transport.Credit})
	return 1 + f.script.Poll(1)
}

// Send answers a Withdraw.
func (f *flood) Send(_ world.Rank, h *transport.Header, _ mem.Buffer, _ uint64) bool {
	if h.Kind == transport.Withdraw {
		f.send(transport.Header{Kind: transport.Withdrawn, A: h.A})
	}
	return true
}

func TestContextThatEndsIsNoticedWhileMessagesKeepComing(t *testing.T) {
	b := mem.Bytes(make([]byte, 8))
	for name, op := range map[string]func(ctx context.Context, e *message.Engine, ch *message.Channel) error{
		"recv": func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			_, err := ch.Recv(ctx, 1, 0, b)
			return err
		},
		"send": func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			return ch.Send(ctx, 1, 0, b, true)
		},
		"probe": func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			_, _, err := ch.Probe(ctx, 1, 0, true, false)
			return err
		},
		"wait": func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			return wait(ctx, e, ch.Irecv(1, 0, b))
		},
		"collective": func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			rd := round.Of(ch)
			err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Count: 8}, 0, false)
			rd.Irecv(1, b)
			return errors.Join(err, rd.End(rd.Wait()))
		},
	} {
		for _, spin := range []int{0, 100 * floodBefore} {
			// In fake time no grace ends while polls go on: the caller alone drives.
			synctest.Test(t, func(t *testing.T) {
				e := newScripted()
				ctx, cancel := context.WithCancel(t.Context())
				f := &flood{script: &script{sink: e}, cancel: cancel}
				e.Use(f)
				fits := func() bool { return true }
				e.Progress.SetSpin(spin, 0, spin > 0, fits, 0)
				ch := e.Open(1, nil)
				if err := op(ctx, e, ch); !errors.Is(err, context.Canceled) {
					t.Errorf("%s, spinning %d times: got %v, want context.Canceled", name, spin, err)
				}
				if f.polls > floodBefore+floodAfter {
					t.Errorf("%s, spinning %d times: polled on after the context had ended", name, spin)
				}
				ch.Close()
			})
		}
	}
}
