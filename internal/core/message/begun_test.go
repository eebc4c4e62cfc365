package message_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A halting is a transport from whose rank 1 half a message of threes with tag 5 is there; the rest
// comes with the first Poll behind go.
type halting struct {
	*script
	half, rest []byte
	token      uint64
	begun      chan bool // closed by Continue
	going      atomic.Bool
	forgotten  bool
}

func (h *halting) Capabilities() transport.Capabilities { return transport.Capabilities{Inline: h} }

func (h *halting) SendNow(world.Rank, *transport.Header, mem.Buffer) bool { return false }

func (h *halting) RecvNow(_ world.Rank, want *transport.Header, b mem.Buffer) transport.Look {
	if h.rest != nil {
		return transport.Nothing
	}
	n := copy(b.HostSlice(), h.half)
	want.Tag, want.Len, h.rest = 5, int64(2*n), b.HostSlice()[n:2*n]
	return transport.Begun
}

func (h *halting) Continue(_ world.Rank, token uint64) {
	h.token = token
	close(h.begun)
}

func (h *halting) Poll(world.Rank) int {
	if !h.going.Load() || h.token == 0 || h.forgotten {
		return 0
	}
	copy(h.rest, h.half)
	h.sink.Filled(h.token)
	h.token = 0
	return 1
}

// Arm is false as long as more of the message is to come.
func (h *halting) Arm() bool { return !h.going.Load() }

func (h *halting) Forget(_ world.Rank, token uint64) { h.forgotten = token == h.token }

// A message whose sender stops half-way, as where it loses its processor, is completed by the
// receive that has begun it, or given back when the receive ends.
func TestAMessageThatStopsHalfWayIsContinued(t *testing.T) {
	threes := bytes.Repeat([]byte{3}, 20_000)
	begin := func() (*message.Channel, *halting, []byte) {
		e := newScripted()
		h := &halting{script: &script{sink: e}, half: threes[:10_000], begun: make(chan bool)}
		e.Use(h)
		return e.Open(1, nil), h, make([]byte, 30_000)
	}
	check := func(t *testing.T, st message.Status, err error, got []byte) {
		t.Helper()
		if err != nil || st.Source != 1 || st.Tag != 5 || st.Bytes != len(threes) ||
			!bytes.Equal(got[:len(threes)], threes) {
			t.Errorf("received %+v, %v, want %d threes from rank 1 with tag 5", st, err, len(threes))
		}
	}
	t.Run("Recv", func(t *testing.T) {
		ch, h, got := begin()
		h.going.Store(true)
		st, err := ch.Recv(t.Context(), 1, message.Any, mem.Bytes(got))
		check(t, st, err, got)
	})
	t.Run("Irecv", func(t *testing.T) {
		ch, h, got := begin()
		r := ch.Irecv(1, 5, mem.Bytes(got))
		if r.Done() {
			t.Fatal("the receive is done after half of the message")
		}
		h.going.Store(true)
		st, _, err := ch.Engine.Wait(t.Context(), r)
		check(t, st, err, got)
	})
	t.Run("ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // patience passes at once
			ch, h, got := begin()
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-h.begun
				cancel()
			}()
			_, err := ch.Recv(ctx, 1, 5, mem.Bytes(got))
			if !errors.Is(err, context.Canceled) || !h.forgotten {
				t.Errorf("error %v, the memory is given back: %v; want %v and true", err, h.forgotten, context.Canceled)
			}
		})
	})
}
