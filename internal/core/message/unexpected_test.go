package message_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// manyMessages is what takes more than a peer's credit, and less than MaxKept.
const manyMessages = 50_000

// Messages that nobody has received yet do not hold up one that is waited for, as programs expect
// of short ones, whatever their order. All of them are there in the end.
func TestAMessageBehindManyUnexpectedOnes(t *testing.T) {
	for _, size := range []int{0, 8, 500} {
		run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			if ch.Rank() == 0 {
				for i := range manyMessages {
					if err := ch.Send(ctx, 1, 1, mem.Bytes(pattern(size, i)), false); err != nil {
						return err
					}
				}
				return ch.Send(ctx, 1, 2, mem.Buffer{}, false)
			}
			if _, err := ch.Recv(ctx, 0, 2, mem.Buffer{}); err != nil {
				return err
			}
			got := make([]byte, size)
			for i := range manyMessages {
				if _, err := ch.Recv(ctx, 0, 1, mem.Bytes(got)); err != nil || !bytes.Equal(got, pattern(size, i)) {
					return fmt.Errorf("message %d of %d bytes: %v, or wrong bytes", i, size, err)
				}
			}
			return nil
		})
	}
}

// Where there is no memory for a message, its sender waits until enough of what it has sent before
// has been received, and its flight recorder says how many messages those are.
func TestASendWaitsWhereThereIsNoMemoryForItsMessage(t *testing.T) {
	const size, most, credit, all = 1000, 8 << 20, 4 << 20, 12_000
	s, err := seg.New([]world.Rank{0, 1})
	if err != nil {
		t.Skip("no host segment here: ", err)
	}
	defer s.Close()
	sent := 0
	runConfig(t, 2, func(cfg *message.Config) {
		cfg.Unexpected = func() int { return most }
		cfg.Boot.(*boot.Member).Record(s.Rank(world.LocalRank(cfg.Rank)))
	}, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			for ; sent < all; sent++ {
				if err := ch.Send(ctx, 1, 1, mem.Bytes(pattern(size, sent)), false); err != nil {
					return err
				}
			}
			return ch.Send(ctx, 1, 2, mem.Buffer{}, false)
		}
		late := errors.New("late")
		short, cancel := context.WithTimeoutCause(ctx, time.Second, late) // of the bubble's clock
		defer cancel()
		if _, err := ch.Recv(short, 0, 2, mem.Buffer{}); !errors.Is(err, late) {
			return fmt.Errorf("a message behind those for which there is no memory: %v", err)
		}
		if n := sent * (1024 + 256); n > most+credit || n < most {
			return fmt.Errorf("%d messages of %d bytes were sent, want about as many as fit in %d", sent, size,
				most+credit)
		}
		c, _ := seg.Running(s.Calls(0))
		if want := fmt.Sprintf("; rank 1 holds %d messages of this rank that it has not received)", sent); c == nil ||
			!strings.HasSuffix(c.Text(), want) {
			return fmt.Errorf("rank 0 is in %v, want it to end with %q", c, want)
		}
		return receiveAll(ctx, ch, size, all, sent*9/10)
	})
}

// All peers together have as much credit as is kept of one: the messages of many that nobody has
// received take that, and besides what there may be in all, but not the whole credit of each.
func TestUnexpectedMessagesOfManyPeersAreBoundedTogether(t *testing.T) {
	const size, most, credit, peers, each = 60_000, 8 << 20, 64 << 20, 32, 64 // 4 MiB each
	var sent [1 + peers]int
	runConfig(t, 1+peers, func(cfg *message.Config) {
		cfg.Unexpected = func() int { return most }
	}, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if me := ch.Rank(); me > 0 {
			b := mem.Bytes(pattern(size, me))
			for ; sent[me] < each; sent[me]++ {
				if err := ch.Send(ctx, 0, 1, b, false); err != nil {
					return err
				}
			}
			return nil
		}
		late := errors.New("late")
		short, cancel := context.WithTimeoutCause(ctx, time.Second, late) // of the bubble's clock
		defer cancel()
		if _, err := ch.Recv(short, message.Any, 2, mem.Buffer{}); !errors.Is(err, late) {
			return fmt.Errorf("a message that nobody sends: %v", err)
		}
		all := 0
		for _, n := range sent {
			all += n
		}
		if n := all * (64<<10 + 256); n > most+credit || n < credit*3/4 {
			return fmt.Errorf("%d messages of %d bytes were sent, want at most as many as fit in %d", all, size,
				most+credit)
		}
		got := make([]byte, size)
		for from := 1; from <= peers; from++ {
			want := pattern(size, from)
			for i := range each {
				if _, err := ch.Recv(ctx, from, 1, mem.Bytes(got)); err != nil || !bytes.Equal(got, want) {
					return fmt.Errorf("message %d of rank %d: %v, or wrong bytes", i, from, err)
				}
			}
		}
		return nil
	})
}

// receiveAll receives messages with tag 1, and after some of them one with tag 2, which comes
// behind all.
func receiveAll(ctx context.Context, ch *message.Channel, size, all, some int) error {
	got := make([]byte, size)
	for i := range all {
		if i == some {
			if _, err := ch.Recv(ctx, 0, 2, mem.Buffer{}); err != nil {
				return err
			}
		}
		if _, err := ch.Recv(ctx, 0, 1, mem.Bytes(got)); err != nil || !bytes.Equal(got, pattern(size, i)) {
			return fmt.Errorf("message %d: %v, or wrong bytes", i, err)
		}
	}
	return nil
}

// A message whose payload is on its way is lost if its sender closes the Channel before it comes,
// as one that is announced: to a receive that has matched it, to one that follows a probe, and to
// none.
func TestAFetchWhoseSenderLeaves(t *testing.T) {
	short := transport.Header{Kind: transport.RTS, Comm: 1, Flags: uint8(mem.U8) | transport.Short, Tag: 5,
		A: 100, B: 7}
	left := transport.Header{Kind: transport.Left, Comm: 1}
	b := mem.Bytes(make([]byte, 100))
	for name, end := range map[string]func(ctx context.Context, e *message.Engine, ch *message.Channel,
		leave func()) error{
		"matched": func(ctx context.Context, e *message.Engine, ch *message.Channel, leave func()) error {
			r := ch.Irecv(1, 5, b)
			leave()
			return wait(ctx, e, r)
		},
		"probed": func(ctx context.Context, e *message.Engine, ch *message.Channel, leave func()) error {
			m, _, err := ch.Probe(ctx, 1, 5, true, true)
			leave()
			if err == nil {
				_, err = m.Claim(ctx, b)
			}
			return err
		},
		"kept": func(ctx context.Context, e *message.Engine, ch *message.Channel, leave func()) error {
			leave()
			_, _, err := ch.Probe(ctx, 1, 5, true, false)
			return err
		},
	} {
		for _, closed := range []bool{false, true} { // here, instead of at the sender
			e, s := scripted()
			ch, want := e.Open(1, nil), liveness.ErrLeft
			s.send(short)
			e.Advance(true)
			leave := func() {
				s.send(left)
				e.Advance(true)
			}
			if closed {
				leave, want = ch.Close, liveness.ErrClosed
			}
			if err := end(t.Context(), e, ch, leave); !errors.Is(err, want) {
				t.Errorf("%s, closed here: %v: got %v, want %v", name, closed, err, want)
			}
			if !closed {
				ch.Close()
			}
		}
	}
}

// A receive may match a message before its payload has come.
func TestAMessageIsReceivedWhileItIsFetched(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			for range manyMessages / 2 { // which take all credit
				ch.Isend(1, 1, mem.Buffer{}, false)
			}
			last := ch.Isend(1, 2, mem.Bytes(pattern(1000, 3)), false)
			return errors.Join(wait(ctx, e, last), ch.Send(ctx, 1, 3, mem.Buffer{}, true))
		}
		if _, _, err := ch.Probe(ctx, 0, 2, true, false); err != nil {
			return err
		}
		got := make([]byte, 1000)
		if _, err := ch.Recv(ctx, 0, 2, mem.Bytes(got)); err != nil || !bytes.Equal(got, pattern(1000, 3)) {
			return fmt.Errorf("%v, or wrong bytes", err)
		}
		_, err := ch.Recv(ctx, 0, 3, mem.Buffer{})
		return err
	})
}

// credits is a script that adds up the credit that its peer gets back.
type credits struct {
	*script
	returned uint64
}

func (c *credits) Send(_ world.Rank, h *transport.Header, _ mem.Buffer, _ uint64) bool {
	if h.Kind == transport.Credit {
		c.returned += h.A
	}
	return true
}

// A kept message has returned its credit: it does not return the credit again when its channel is
// closed.
func TestADroppedMessageReturnsItsCreditOnce(t *testing.T) {
	const size, n = 1000, 8192
	e := newScripted()
	c := &credits{script: &script{sink: e}}
	e.Use(c)
	ch := e.Open(1, nil)
	for range n {
		c.send(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 3, Len: size})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.send(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 4})
	if _, err := ch.Recv(ctx, 1, 4, mem.Buffer{}); err != nil {
		t.Fatal(err)
	}
	kept := c.returned
	if ch.Close(); kept == 0 || c.returned >= kept+kept/2 {
		t.Errorf("%d bytes of credit came back when messages were kept, and %d more when they were dropped", kept,
			c.returned-kept)
	}
}
