package message_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// A teller is a launcher with news, which takes back the memory of ranks that died.
type teller struct {
	boot.Boot
	news     []boot.Event
	detached []world.Rank
}

func (l *teller) Detached(rank world.Rank) error {
	l.detached = append(l.detached, rank)
	return nil
}

func (l *teller) Pending() bool { return len(l.news) > 0 }

func (l *teller) Events() (news []boot.Event) {
	news, l.news = l.news, nil
	return news
}

// A detached is a script whose peer 1 has left, and which notes what is detached.
type detached struct {
	*script
	detachedAll bool
	all         []world.Rank
}

func (d *detached) Poll(world.Rank) int {
	if d.detachedAll {
		return 0
	}
	d.detachedAll = true
	d.sink.Lost(1, transport.ErrGone)
	return 1
}

func (d *detached) Capabilities() transport.Capabilities { return transport.Capabilities{Detacher: d} }

func (d *detached) Detach(rank world.Rank) { d.all = append(d.all, rank) }

// A rank that has left in good order and died then does not break the communicators that it has
// left. When its memory is given up they are broken, and those that are opened later, too.
func TestWhoIsDetachedBreaksWhatItHadLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, launcher := inproc.NewParker(), &teller{Boot: boot.Group(3)[0]}
		e := message.New(message.Config{Rank: 0, Size: 3, Host: launcher.Info().Host, Boot: launcher, Parker: p,
			Yield: func() {}, Collectives: round.New, Eager: message.DefaultEager})
		tr := &detached{script: &script{sink: e}}
		e.Use(tr)
		ch, b := e.Open(1, nil), mem.Bytes(make([]byte, 8))
		ch.HoldMemory()
		if _, err := ch.Recv(t.Context(), 1, 0, b); !errors.Is(err, liveness.ErrLeft) {
			t.Fatalf("a receive from rank 1: %v, want %v", err, liveness.ErrLeft)
		}
		launcher.news = []boot.Event{{Kind: boot.Died, Rank: 1, Text: []byte("exited with status 3")}}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p.Wake()
		if _, err := ch.Recv(short, 2, 0, b); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a receive from rank 2: %v, want that it goes on", err)
		}
		if synctest.Wait(); ch.Err() != nil || len(tr.all) > 0 {
			t.Fatalf("%v is detached, error %v; want none and none", tr.all, ch.Err())
		}
		ch.ReleaseMemory()
		if !slices.Equal(tr.all, []world.Rank{1}) || !slices.Equal(launcher.detached, tr.all) {
			t.Errorf("%v is detached, the launcher is notified of %v; want rank 1", tr.all, launcher.detached)
		}
		for _, ch := range []*message.Channel{ch, e.Open(2, nil)} {
			if err := ch.Err(); !errors.Is(err, liveness.ErrRevoked) ||
				!strings.Contains(err.Error(), "exited with status 3") {
				t.Errorf("communicator %d: %v, want that rank 1 exited with status 3", ch.ID, err)
			}
			ch.Close()
		}
		late := e.Open(3, nil)
		late.HoldMemory()
		launcher.news = []boot.Event{{Kind: boot.Died, Rank: 2, Text: []byte("exited with status 4")}}
		e.Arm()
		err := e.Shutdown(t.Context())
		if late.ReleaseMemory(); err != nil || len(launcher.detached) > 1 {
			t.Errorf("at the end: %v, and %v is detached", err, launcher.detached)
		}
	})
}

// Whoever the launcher's news has woken may go without a poll. The next to sleep takes the news.
func TestArmTakesTheLaunchersNews(t *testing.T) {
	launcher := &teller{Boot: boot.Group(2)[0]}
	e := message.New(message.Config{Rank: 0, Size: 2, Host: launcher.Info().Host, Boot: launcher,
		Parker: inproc.NewParker(), Yield: func() {}, Collectives: round.New, Eager: message.DefaultEager})
	ch := e.Open(1, nil)
	launcher.news = []boot.Event{{Kind: boot.Died, Rank: 1, Text: []byte("exited with status 3")}}
	if e.Arm() || !errors.Is(ch.Err(), liveness.ErrRevoked) {
		t.Errorf("it sleeps, and the communicator's error is %v: want %v", ch.Err(), liveness.ErrRevoked)
	}
}
