package message_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A cutter is a script whose peers are all lost at the first Poll.
type cutter struct {
	*script
	peers world.Rank
	err   error
}

func (c *cutter) Poll(world.Rank) int {
	n := c.peers
	for ; c.peers > 0; c.peers-- {
		c.sink.Lost(c.peers, c.err)
	}
	return int(n)
}

// A silent launcher has nothing to say.
type silent struct{ boot.Boot }

// cutOff runs f as rank 0, whose peers are all cut off at once, or lost by another error. The
// launcher knows nothing of that.
func cutOff(t *testing.T, peers world.Rank, err error, f func(t *testing.T, boots []boot.Boot, ch *message.Channel)) {
	synctest.Test(t, func(t *testing.T) {
		boots, p := boot.Group(1+int(peers)), inproc.NewParker()
		e := message.New(message.Config{Rank: 0, Size: 1 + int(peers), Host: boots[0].Info().Host,
			Boot: silent{boots[0]}, Parker: p,
			Yield: func() {}, Collectives: round.New, Eager: message.DefaultEager})
		boots[0].SetWake(p.Wake)
		e.Use(&cutter{&script{sink: e}, peers, err})
		ch := e.Open(1, nil)
		f(t, boots, ch)
		ch.Close()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// However many are cut off, they are waited for at the same time, and a context ends in it.
func TestManyPeersCutOffAreWaitedForTogether(t *testing.T) {
	cutOff(t, 64, transport.ErrCut, func(t *testing.T, _ []boot.Boot, ch *message.Channel) {
		start, b := time.Now(), mem.Bytes(make([]byte, 8))
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := ch.Recv(short, 1, 0, b); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) > 200*time.Millisecond {
			t.Errorf("a context of 100 ms: got %v after %v", err, time.Since(start))
		}
		_, err := ch.Recv(t.Context(), 64, 0, b)
		if !errors.Is(err, liveness.ErrRevoked) || !strings.Contains(err.Error(), transport.ErrCut.Error()) {
			t.Errorf("got %v, want a revocation because of %v", err, transport.ErrCut)
		}
		if d := time.Since(start); d > 2*liveness.ReasonTimeout { // of the bubble's clock
			t.Errorf("it took %v", d)
		}
	})
}

// What the launcher says in time counts more than that the connection is cut, or that a rank has
// left: to a receive from that rank, and to one from any, which ends when all have left.
func TestLauncherSaysWhyAPeerIsLost(t *testing.T) {
	for _, lost := range []error{transport.ErrCut, transport.ErrGone} {
		for _, src := range []int{2, message.Any} {
			cutOff(t, 3, lost, func(t *testing.T, boots []boot.Boot, ch *message.Channel) {
				time.AfterFunc(200*time.Millisecond, func() { boots[2].(*boot.Member).Die("was eaten") })
				_, err := ch.Recv(t.Context(), src, 0, mem.Bytes(make([]byte, 8)))
				if err == nil || !strings.Contains(err.Error(), "was eaten") {
					t.Errorf("from %d, %v: got %v, want what the launcher says", src, lost, err)
				}
			})
		}
	}
}

// A transport lets go of a message that the launcher's news end at that moment.
func TestSendThatTheLaunchersNewsEndIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boots, p := boot.Group(3), inproc.NewParker()
		e := message.New(message.Config{Rank: 0, Size: 3, Host: boots[0].Info().Host, Boot: silent{boots[0]}, Parker: p,
			Yield: func() {}, Collectives: round.New, Eager: message.DefaultEager})
		boots[0].SetWake(p.Wake)
		x := &reach{script: &script{sink: e}, engine: e}
		e.Use(x)
		ch := e.Open(1, nil)
		s := ch.Isend(1, 3, mem.Bytes(make([]byte, 1<<20)), false)
		x.send(transport.Header{Kind: transport.CTS, A: x.sent[0].B, B: 7})
		x.progress()
		if len(x.held) != 1 {
			t.Fatalf("%d frames are held, want 1", len(x.held))
		}
		x.ends = append(x.ends, func() {
			boots[2].(*boot.Member).Die("was eaten")
			e.Sent(x.held[0], transport.ErrCut)
			e.Lost(1, transport.ErrCut)
		})
		x.progress()
		if !s.Done() {
			t.Error("the send is not done")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := wait(ctx, e, s); !errors.Is(err, liveness.ErrRevoked) {
			t.Errorf("got %v, want a revocation", err)
		}
		ch.Close()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// While a collective waits for the launcher's news of a rank that has left, other goroutines get
// the lock.
func TestNewsIsWaitedForWithoutTheLock(t *testing.T) {
	cutOff(t, 1, transport.ErrGone, func(t *testing.T, _ []boot.Boot, ch *message.Channel) {
		start := time.Now()
		var locked atomic.Int64
		// The rank is lost after ReasonTimeout, the Channel 200 ms later.
		between, over := liveness.ReasonTimeout+100*time.Millisecond, liveness.ReasonTimeout+200*time.Millisecond
		time.AfterFunc(between, func() {
			ch.Cancel(message.Handle{}, nil)
			locked.Store(int64(time.Since(start)))
		})
		err := collective(t.Context(), ch, func(rd *round.Round) error {
			rd.Irecv(1, mem.Bytes(make([]byte, 8)))
			return rd.Wait()
		})
		if !errors.Is(err, liveness.ErrRevoked) || !strings.Contains(err.Error(), "has left") {
			t.Errorf("got %v, want that the rank has left", err)
		}
		if took := time.Since(start); time.Duration(locked.Load()) != between || took != over {
			t.Errorf("the lock was free after %v and the collective over after %v: want %v and %v",
				time.Duration(locked.Load()), took, between, over)
		}
	})
}
