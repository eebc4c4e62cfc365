package message_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A message that no receive has matched leaves nothing behind when its sender gives it up, on a
// communicator that the receiver has not opened yet, too.
func TestASendThatIsGivenUpIsWithdrawn(t *testing.T) {
	long := make([]byte, 1<<20)
	sends := map[string]func(ctx context.Context, ch *message.Channel) error{
		"send": func(ctx context.Context, ch *message.Channel) error {
			return ch.Send(ctx, 1, 0, mem.Bytes(long), false)
		},
		"ssend": func(ctx context.Context, ch *message.Channel) error {
			return ch.Send(ctx, 1, 0, mem.Bytes(long[:8]), true)
		},
		"ssend to itself": func(ctx context.Context, ch *message.Channel) error {
			return ch.Send(ctx, 0, 0, mem.Bytes(long[:8]), true)
		},
		"sendrecv": func(ctx context.Context, ch *message.Channel) error {
			_, err := ch.Sendrecv(ctx, 1, 0, mem.Bytes(long), 1, 0, mem.Bytes(make([]byte, 8)))
			return err
		},
	}
	for name, send := range sends {
		for _, early := range []bool{false, true} {
			run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
				if early && ch.Rank() == 0 {
					ch = e.Open(2, nil)
					defer ch.Close()
				}
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if ch.Rank() == 0 {
					if err := send(short, ch); !errors.Is(err, context.DeadlineExceeded) {
						return fmt.Errorf("%s: got %v, want context.DeadlineExceeded", name, err)
					}
				} else {
					recv(short, ch, 0, 9) // which polls, and gets nothing
				}
				if early && ch.Rank() == 1 {
					ch = e.Open(2, nil)
					defer ch.Close()
				}
				return nothingIsLeft(ctx, ch, name)
			})
		}
	}
}

// nothingIsLeft fails if rank 0 or 1 has an unexpected message with tag 0, or ch is broken.
func nothingIsLeft(ctx context.Context, ch *message.Channel, name string) error {
	peer := 1 - ch.Rank()
	if err := ch.Send(ctx, peer, 1, mem.Bytes(pattern(10, 1)), false); err != nil {
		return err
	}
	if err := recv(ctx, ch, peer, 1); err != nil {
		return fmt.Errorf("after a %s: %w", name, err)
	}
	if m, _, _ := ch.Probe(ctx, message.Any, 0, false, false); m.Found() { // it may fail: the peer may have left
		return fmt.Errorf("rank %d: a message of a %s is left", ch.Rank(), name)
	}
	return nil
}

func recv(ctx context.Context, ch *message.Channel, from, tag int) error {
	_, err := ch.Recv(ctx, from, tag, mem.Bytes(make([]byte, 10)))
	return err
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		b, peer := mem.Bytes(make([]byte, 8)), 1-ch.Rank()
		_, both := ch.Sendrecv(ended, peer, 0, b, peer, 0, b)
		for _, err := range []error{both, ch.Send(ended, peer, 0, b, false), ch.Send(ended, peer, 0, b, true)} {
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %v, want context.Canceled", err)
			}
		}
		return nothingIsLeft(ctx, ch, "send whose context has ended")
	})
}

// A standstill is a transport whose peer sends the payload of a message late. An eager one has its
// envelope arrive at once.
type standstill struct {
	*script
	late  time.Duration
	begun uint64 // an eager message
	whole time.Time
}

func (s *standstill) Send(_ world.Rank, h *transport.Header, _ mem.Buffer, _ uint64) bool {
	if h.Kind == transport.CTS {
		to := h.B
		time.AfterFunc(s.late, func() { s.send(transport.Header{Kind: transport.Data, A: to, Len: 1 << 20}) })
	}
	return true
}

func (s *standstill) Poll(world.Rank) int {
	if token := s.begun; token != 0 && time.Now().After(s.whole) {
		s.begun = 0
		s.sink.Filled(token)
	}
	frames := s.take()
	for _, h := range frames {
		if _, token := s.sink.Arrive(1, &h); h.Kind == transport.Eager {
			s.begun, s.whole = token, time.Now().Add(s.late)
		} else if token != 0 {
			s.sink.Filled(token)
		}
	}
	return len(frames)
}

// A receive that has matched gets its message although its context ends, unless that stands still.
func TestAMatchedReceiveOutlivesItsContext(t *testing.T) {
	for late, want := range map[time.Duration]error{3 * time.Second: nil, time.Minute: context.DeadlineExceeded} {
		for _, h := range []transport.Header{
			{Kind: transport.RTS, Comm: 1, A: 1 << 20, B: 1<<32 | 1},
			{Kind: transport.Eager, Comm: 1, Len: 1 << 16, Flags: uint8(mem.U8)},
		} {
			synctest.Test(t, func(t *testing.T) {
				e := newScripted()
				s := &standstill{script: &script{sink: e}, late: late}
				e.Use(s)
				ch := e.Open(1, nil)
				defer ch.Close()
				s.send(h)
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := ch.Recv(short, 1, 0, mem.Bytes(make([]byte, 1<<20)))
				if !errors.Is(err, want) || (ch.Broken() != nil) != (want != nil) {
					t.Errorf("%v, payload %v late: got %v, broken %v; want %v", h.Kind, late, err, ch.Broken(), want)
				}
			})
		}
	}
}
